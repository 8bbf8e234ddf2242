"""What comes of a request, with vLLM's names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass
class Logprob:
    """The logarithm of a token's probability."""

    logprob: float
    rank: int | None = None
    """1 for the likeliest token."""
    decoded_token: str | None = None


Logprobs = list[dict[int, Logprob]]
"""By token: the token itself and the likeliest ones."""


@dataclass
class ToolCall:
    """A call of a tool that the model asks for."""

    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON."""

    def message(self) -> dict[str, Any]:
        """The call as an assistant's message has it."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass
class CompletionOutput:
    """One text that was made."""

    index: int
    text: str
    """The text. Of a conversation it is what the user is to read."""
    token_ids: list[int]
    """The tokens; one that ends the text is not among them."""
    cumulative_logprob: float | None = None
    logprobs: Logprobs | None = None
    finish_reason: str | None = None
    """`stop`, `length`, or `abort` for a text that was cancelled."""
    stop_reason: int | str | None = None
    """The token or string that ended the text."""
    reasoning: str | None = None
    """What the model thought before it answered, in a conversation."""
    tool_calls: list[ToolCall] = field(default_factory=list)
    """Tools that the model calls, in a conversation."""

    def finished(self) -> bool:
        """Whether the text has ended."""
        return self.finish_reason is not None

    def message(self) -> dict[str, Any]:
        """The answer as a message, for the next turn of its conversation."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.reasoning:
            message["reasoning"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [call.message() for call in self.tool_calls]
        else:
            message["content"] = self.text
        return message


@dataclass
class RequestMetrics:
    """How long a request took, and what was saved."""

    seconds: float
    """From the request to its end."""
    queued_seconds: float | None = None
    """Until it first ran."""
    first_token_seconds: float | None = None
    """Until its first token."""
    disk_tokens: int = 0
    """Tokens of the prompt that only the store on disk had."""
    draft_tokens: int = 0
    """Guessed tokens that were checked."""
    accepted_tokens: int = 0
    """Guessed tokens that were right."""


@dataclass
class RequestOutput:
    """What came of a prompt."""

    request_id: str
    prompt: str | None
    """The prompt as it was given; `None` for token ids and conversations."""
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]
    finished: bool
    prompt_logprobs: list[dict[int, Logprob] | None] | None = None
    """By token of the prompt; `None` for the first."""
    metrics: RequestMetrics | None = None
    num_cached_tokens: int | None = None
    """Tokens of the prompt that were not computed again."""


@dataclass
class Delta:
    """What came of a text since the last delta."""

    text: str
    token_ids: list[int]
    logprobs: Logprobs | None = None
    finish_reason: str | None = None
    """Why the text ended: the last delta says so."""
    part: str | None = None
    """`reasoning`, `preamble`, `answer` or `call`, in a conversation."""
    name: str | None = None
    """The tool that a call is for."""


@dataclass
class Scores:
    """How likely a model holds the tokens of a text, each after those before it."""

    token_ids: list[int]
    logprobs: npt.NDArray[np.float32]
    """By token but the first, to the base e."""
    ranks: npt.NDArray[np.uint32]
    """By token but the first: 1 for the likeliest."""
    top_ids: npt.NDArray[np.uint32]
    """By token but the first: the likeliest tokens."""
    top_logprobs: npt.NDArray[np.float32]

    @property
    def total(self) -> float:
        """The logarithm of the probability of all but the first token."""
        return float(self.logprobs.sum(dtype="float64"))

    @property
    def perplexity(self) -> float:
        """The perplexity of all but the first token."""
        import numpy as np

        return float(np.exp(-self.logprobs.mean(dtype="float64"))) if len(self.logprobs) else float("nan")
