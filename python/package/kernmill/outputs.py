"""What comes of a request, with vLLM's names."""

from __future__ import annotations

from ._values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    import numpy.typing as npt


class Logprob(Values):
    """The logarithm of a token's probability."""

    def __init__(
        self,
        logprob: float,
        rank: int | None = None,
        decoded_token: str | None = None,
    ) -> None:
        self.logprob = logprob
        self.rank = rank
        """1 for the likeliest token."""
        self.decoded_token = decoded_token


Logprobs = list[dict[int, Logprob]]
"""By token: the token itself and the likeliest ones."""


class ToolCall(Values):
    """A call of a tool that the model asks for."""

    def __init__(self, id: str, name: str, arguments: str) -> None:
        self.id = id
        self.name = name
        self.arguments = arguments
        """As the model wrote them: JSON."""

    def message(self) -> dict[str, Any]:
        """The call as an assistant's message has it."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


class CompletionOutput(Values):
    """One text that was made."""

    def __init__(
        self,
        index: int,
        text: str,
        token_ids: list[int],
        cumulative_logprob: float | None = None,
        logprobs: Logprobs | None = None,
        finish_reason: str | None = None,
        stop_reason: int | str | None = None,
        reasoning: str | None = None,
        tool_calls: list[ToolCall] | None = None,
    ) -> None:
        self.index = index
        self.text = text
        """The text. Of a conversation it is what the user is to read."""
        self.token_ids = token_ids
        """The tokens; one that ends the text is not among them."""
        self.cumulative_logprob = cumulative_logprob
        self.logprobs = logprobs
        self.finish_reason = finish_reason
        """`stop`, `length`, or `abort` for a text that was cancelled."""
        self.stop_reason = stop_reason
        """The token or string that ended the text."""
        self.reasoning = reasoning
        """What the model thought before it answered, in a conversation."""
        self.tool_calls = [] if tool_calls is None else tool_calls
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


class RequestMetrics(Values):
    """How long a request took, and what was saved."""

    def __init__(
        self,
        seconds: float,
        queued_seconds: float | None = None,
        first_token_seconds: float | None = None,
        disk_tokens: int = 0,
        draft_tokens: int = 0,
        accepted_tokens: int = 0,
    ) -> None:
        self.seconds = seconds
        """From the request to its end."""
        self.queued_seconds = queued_seconds
        """Until it first ran."""
        self.first_token_seconds = first_token_seconds
        """Until its first token."""
        self.disk_tokens = disk_tokens
        """Tokens of the prompt that only the store on disk had."""
        self.draft_tokens = draft_tokens
        """Guessed tokens that were checked."""
        self.accepted_tokens = accepted_tokens
        """Guessed tokens that were right."""


class RequestOutput(Values):
    """What came of a prompt."""

    def __init__(
        self,
        request_id: str,
        prompt: str | None,
        prompt_token_ids: list[int],
        outputs: list[CompletionOutput],
        finished: bool,
        prompt_logprobs: list[dict[int, Logprob] | None] | None = None,
        metrics: RequestMetrics | None = None,
        num_cached_tokens: int | None = None,
    ) -> None:
        self.request_id = request_id
        self.prompt = prompt
        """The prompt as it was given; `None` for token ids and conversations."""
        self.prompt_token_ids = prompt_token_ids
        self.outputs = outputs
        self.finished = finished
        self.prompt_logprobs = prompt_logprobs
        """By token of the prompt; `None` for the first."""
        self.metrics = metrics
        self.num_cached_tokens = num_cached_tokens
        """Tokens of the prompt that were not computed again."""


class Delta(Values):
    """What came of a text since the last delta."""

    def __init__(
        self,
        text: str,
        token_ids: list[int],
        logprobs: Logprobs | None = None,
        finish_reason: str | None = None,
        part: str | None = None,
        name: str | None = None,
    ) -> None:
        self.text = text
        self.token_ids = token_ids
        self.logprobs = logprobs
        self.finish_reason = finish_reason
        """Why the text ended: the last delta says so."""
        self.part = part
        """`reasoning`, `preamble`, `answer` or `call`, in a conversation."""
        self.name = name
        """The tool that a call is for."""


class Scores(Values):
    """How likely a model holds the tokens of a text, each after those before it."""

    def __init__(
        self,
        token_ids: list[int],
        logprobs: npt.NDArray[np.float32],
        ranks: npt.NDArray[np.uint32],
        top_ids: npt.NDArray[np.uint32],
        top_logprobs: npt.NDArray[np.float32],
    ) -> None:
        self.token_ids = token_ids
        self.logprobs = logprobs
        """By token but the first, to the base e."""
        self.ranks = ranks
        """By token but the first: 1 for the likeliest."""
        self.top_ids = top_ids
        """By token but the first: the likeliest tokens."""
        self.top_logprobs = top_logprobs

    @property
    def total(self) -> float:
        """The logarithm of the probability of all but the first token."""
        return float(self.logprobs.sum(dtype="float64"))

    @property
    def perplexity(self) -> float:
        """The perplexity of all but the first token."""
        import numpy as np

        return float(np.exp(-self.logprobs.mean(dtype="float64"))) if len(self.logprobs) else float("nan")
