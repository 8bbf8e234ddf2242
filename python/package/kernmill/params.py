"""How texts are made."""

from __future__ import annotations

from ._kernmill import InputError, Unsupported
from ._values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_SEED_BITS = 64


class StructuredOutputsParams(Values):
    """What a text is held to: exactly one of these."""

    def __init__(
        self,
        json: str | Mapping[str, Any] | None = None,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        grammar: str | None = None,
        json_object: bool = False,
    ) -> None:
        self.json = json
        """A JSON schema, as a mapping or as text."""
        self.regex = regex
        """A regular expression that matches the whole text."""
        self.choice = choice
        """Texts, one of which it is."""
        self.grammar = grammar
        """A grammar in Lark's syntax, whose first rule is `start`."""
        self.json_object = json_object
        """Whether the text is any JSON object."""

    def _rule(self) -> tuple[str, str]:
        given: list[tuple[str, str]] = []
        if self.json is not None:
            import json

            schema = self.json if isinstance(self.json, str) else json.dumps(self.json)
            given.append(("json", schema))
        if self.regex is not None:
            given.append(("regex", self.regex))
        if self.choice is not None:
            if isinstance(self.choice, str) or not self.choice:
                raise InputError(f"choice is {self.choice!r}, expected a list of at least one text")
            given.append(("regex", "|".join(_escaped(text) for text in self.choice)))
        if self.grammar is not None:
            given.append(("grammar", self.grammar))
        if self.json_object:
            given.append(("json_object", ""))
        if len(given) != 1:
            names = "json, regex, choice, grammar, json_object"
            raise InputError(f"{len(given)} forms of the text are given, expected one of {names}")
        return given[0]


def _escaped(text: str) -> str:
    """A regular expression of exactly this text, in the syntax of Rust's crate `regex`."""
    return "".join(f"\\{c}" if c in "\\.+*?()|[]{}^$#&-~" else c for c in text)


class SamplingParams(Values):
    """How the tokens of a text are chosen and where it ends, with vLLM's names and defaults.

    The same seed, prompt and model give the same text on every machine and beside any other text. Without a
    seed, every text has a fresh one.
    """

    def __init__(
        self,
        n: int = 1,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        repetition_penalty: float = 1.0,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
        stop_token_ids: Sequence[int] | None = None,
        include_stop_str_in_output: bool = False,
        ignore_eos: bool = False,
        max_tokens: int | None = 16,
        min_tokens: int = 0,
        logprobs: int | None = None,
        prompt_logprobs: int | None = None,
        detokenize: bool = True,
        skip_special_tokens: bool = True,
        spaces_between_special_tokens: bool = True,
        logit_bias: Mapping[int, float] | None = None,
        structured_outputs: StructuredOutputsParams | None = None,
        drafts: bool = True,
    ) -> None:
        self.n = n
        """Texts for each prompt. The second has the next seed, and so on."""
        self.presence_penalty = presence_penalty
        self.frequency_penalty = frequency_penalty
        self.repetition_penalty = repetition_penalty
        self.temperature = temperature
        """0 takes the likeliest token each time."""
        self.top_p = top_p
        self.top_k = top_k
        """0 and -1 are all tokens."""
        self.min_p = min_p
        self.seed = seed
        self.stop = stop
        """Strings that end the text."""
        self.stop_token_ids = stop_token_ids
        """Tokens that end the text."""
        self.include_stop_str_in_output = include_stop_str_in_output
        self.ignore_eos = ignore_eos
        """Whether the text goes on past the model's own end tokens."""
        self.max_tokens = max_tokens
        """Tokens at most; `None` goes on until the context is full."""
        self.min_tokens = min_tokens
        """Only 0 is supported."""
        self.logprobs = logprobs
        """How many of the likeliest tokens are given at each token of the text; 0 gives its own logarithm."""
        self.prompt_logprobs = prompt_logprobs
        """The same for the tokens of the prompt."""
        self.detokenize = detokenize
        self.skip_special_tokens = skip_special_tokens
        self.spaces_between_special_tokens = spaces_between_special_tokens
        self.logit_bias = logit_bias
        """What is added to the logits of tokens; minus infinity forbids one."""
        self.structured_outputs = structured_outputs
        """What the text is held to."""
        self.drafts = drafts
        """Whether steps may check guesses of how the text goes on. The text is the same."""
        self._check()

    def _check(self) -> None:
        if not isinstance(self.n, int) or self.n < 1:
            raise InputError(f"n is {self.n!r}, expected a whole number from 1")
        if self.max_tokens is not None and not 1 <= self.max_tokens < 2**32:
            raise InputError(f"max_tokens is {self.max_tokens!r}, expected at least 1, or None")
        if self.min_tokens:
            raise Unsupported("min_tokens is not supported: leave it 0")
        for name in ("logprobs", "prompt_logprobs"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1000:
                raise InputError(f"{name} is {value!r}, expected 0 to 1000, or None")
        if self.seed is not None and not -(2 ** (_SEED_BITS - 1)) <= self.seed < 2**_SEED_BITS:
            raise InputError(f"seed is {self.seed!r}, expected a whole number of {_SEED_BITS} bits")
        if any(not text for text in self._stops()):
            raise InputError("stop has an empty string, expected at least one character")

    def clone(self) -> SamplingParams:
        """A copy."""
        return SamplingParams(**vars(self))

    def _stops(self) -> list[str]:
        if self.stop is None:
            return []
        return [self.stop] if isinstance(self.stop, str) else list(self.stop)

    def _native(self, number: int = 0) -> dict[str, Any]:
        """What the native half reads, for the text of that number."""
        seed = None if self.seed is None else (self.seed + number) % 2**_SEED_BITS
        return {
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "min_p": self.min_p,
            "repetition_penalty": self.repetition_penalty,
            "presence_penalty": self.presence_penalty,
            "frequency_penalty": self.frequency_penalty,
            "seed": seed,
            "logit_bias": None if self.logit_bias is None else dict(self.logit_bias),
            "logprobs": self.logprobs,
            "prompt_logprobs": self.prompt_logprobs,
            "stop": self._stops(),
            "stop_token_ids": list(self.stop_token_ids or ()),
            "ignore_eos": self.ignore_eos,
            "skip_special_tokens": self.skip_special_tokens,
            "drafts": self.drafts,
            "rule": None if self.structured_outputs is None else self.structured_outputs._rule(),
        }


def default_params() -> SamplingParams:
    """The parameters of `kernmill run`, which hold where none are given."""
    return SamplingParams(temperature=0.6, top_p=0.9, seed=0, max_tokens=200)
