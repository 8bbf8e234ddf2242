"""What `LLM` and `AsyncLLM` share: loading, prompts, and outputs."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence

from ._kernmill import Engine, InputError
from ._messages import conversation
from .outputs import CompletionOutput, Delta, Logprob, Logprobs, RequestMetrics, RequestOutput, ToolCall
from .params import SamplingParams, default_params
from .sessions import Sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Iterable
    from typing import Any

    from ._kernmill import Bell, Request
    from ._messages import Message

    Prompt = str | Sequence[int] | Mapping[str, Any]
    """A text, token ids, or a mapping with `prompt` or `prompt_token_ids` as vLLM has it."""

Path = str | os.PathLike[str]
Adapter = str | Sequence[str] | Mapping[str, float] | None
"""The name of an adapter, several names, or names with their weights."""

Piece = tuple[str, str | None, str | None, str]


def _log() -> logging.Logger:
    # Most programs never get here, and it takes milliseconds to import.
    import logging

    return logging.getLogger("kernmill")


# Options of vLLM that change nothing here.
_PASSED_OVER = {
    "async_scheduling",
    "disable_log_stats",
    "download_dir",
    "dtype",
    "enable_chunked_prefill",
    "enable_lora",
    "enable_prefix_caching",
    "enforce_eager",
    "gpu_memory_utilization",
    "max_lora_rank",
    "max_loras",
    "max_num_batched_tokens",
    "revision",
    "seed",
    "swap_space",
    "tokenizer_mode",
    "trust_remote_code",
}


class Base:
    """A model in memory, with its engine on a thread of its own."""

    def __init__(
        self,
        model: Path | None = None,
        *,
        spec: Path | None = None,
        preset: str = "faithful",
        target: str = "native",
        threads: int | None = None,
        context: int | None = None,
        kv_bytes: int | None = None,
        max_memory: int | None = None,
        max_sequences: int = 8,
        max_queue: int | None = None,
        adapters: Mapping[str, Path] | None = None,
        sessions: bool = False,
        kv_disk: Path | None = None,
        plan_cache: Path | None = None,
        chat_template: Path | None = None,
        vectors: str | None = None,
        **others: Any,
    ) -> None:
        """Loads a model: a plan, a checkpoint's directory or a GGUF file; without one, the embedded one.

        `context` is the longest text with its prompt in tokens, up to 8192 by default. `max_sequences` texts
        run at once and the others wait; with `max_queue`, more than so many that wait are refused.
        `adapters` are names with directories of LoRA adapters. `sessions` allows saving sequences, `kv_disk`
        and `plan_cache` are directories that keep what is computed and compiled. Without `plan_cache`, a
        checkpoint or GGUF file is packed at every start, which takes some 20 s for 13 GB. `chat_template` is
        a file with a template (Jinja) for conversations in place of the model's own. `vectors` is last, mean or
        first: the model makes vectors, pooled so; models for vectors are known by their files. The names that vLLM has
        for the same are taken too, and those that change nothing here are passed over.
        """
        context = others.pop("max_model_len", context)
        max_sequences = others.pop("max_num_seqs", max_sequences)
        if others.pop("tensor_parallel_size", 1) != 1:
            raise InputError("tensor_parallel_size is not 1: all cores of the machine work on one model")
        for name in others:
            if name not in _PASSED_OVER:
                raise TypeError(f"LLM got an unexpected option {name!r}")
            _log().info("the option %s changes nothing here", name)
        self._engine = Engine(
            {
                "model": model,
                "spec": spec,
                "preset": preset,
                "target": target,
                "threads": threads,
                "context": context,
                "kv_bytes": kv_bytes,
                "max_memory": max_memory,
                "max_sequences": max_sequences,
                "max_queue": max_queue,
                "adapters": [(name, path, 1.0) for name, path in (adapters or {}).items()],
                "sessions": sessions,
                "kv_disk": kv_disk,
                "plan_cache": plan_cache,
                "chat_template": chat_template,
                "vectors": vectors,
            }
        )
        for note in self._engine.notes:
            _log().warning("%s", note)
        self._end_tokens = set(self._engine.end_tokens)
        self._number = 0
        # The thread ends with this object or with the interpreter, whichever is first.
        self._finalizer = weakref.finalize(self, self._engine.close)

    def __repr__(self) -> str:
        return f"<kernmill.{type(self).__name__} {self.model}, context {self.context}>"

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._engine.model

    @property
    def context(self) -> int:
        """Most tokens of a text with its prompt."""
        return self._engine.context

    @property
    def vocab_size(self) -> int:
        """Number of logits."""
        return self._engine.vocab

    @property
    def target(self) -> str:
        """Instruction set that the code is for."""
        return self._engine.target

    @property
    def chat_format(self) -> str:
        """How conversations are written for the model: `harmony`, `template` or `plain`."""
        return self._engine.chat_format

    @property
    def sessions(self) -> Sessions:
        """Sequences in files; the model has to be loaded with `sessions=True`."""
        return Sessions(self)

    def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """Token ids of a text; with `special`, what the tokenizer puts at its start is among them."""
        return self._engine.encode(text, special)

    def detokenize(self, token_ids: Iterable[int]) -> str:
        """The text of token ids."""
        return self._engine.decode(list(token_ids))

    def chat_prompt(
        self,
        messages: Sequence[Message],
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        reasoning_effort: str | None = None,
        date: str | None = None,
    ) -> list[int]:
        """Token ids of the prompt that a conversation makes."""
        return self._engine.chat_prompt(conversation(messages, tools, reasoning_effort, date))

    def _end(self) -> None:
        self._finalizer()

    def _adapters(self, adapter: Adapter) -> list[tuple[str, float]]:
        if adapter is None:
            return []
        if isinstance(adapter, str):
            return [(adapter, 1.0)]
        if isinstance(adapter, Mapping):
            return [(name, float(weight)) for name, weight in adapter.items()]
        return [(name, 1.0) for name in adapter]

    def _ids(self, prompt: Prompt) -> tuple[str | None, list[int]]:
        """The text of a prompt, if it is one, and its token ids."""
        if isinstance(prompt, Mapping):
            text, ids = prompt.get("prompt"), prompt.get("prompt_token_ids")
            if ids is not None:
                return text, list(ids)
            if not isinstance(text, str):
                raise InputError("the prompt is a mapping without prompt and prompt_token_ids")
        elif isinstance(prompt, str):
            text = prompt
        else:
            return None, list(prompt)
        return text, self._engine.encode(text, True)

    def _metrics(self) -> dict[str, float]:
        import json

        found: dict[str, float] = json.loads(self._engine.metrics())
        return found


def prompts_of(prompts: Any) -> list[Prompt]:
    """The prompts of a call: one of them, or a list."""
    if isinstance(prompts, (str, Mapping)):
        return [prompts]
    listed = list(prompts)
    if listed and all(isinstance(item, int) for item in listed):
        return [listed]
    return listed


def params_of(params: Any, count: int) -> list[SamplingParams]:
    """Parameters for each of `count` prompts."""
    if params is None:
        return [default_params()] * count
    if isinstance(params, SamplingParams):
        return [params] * count
    listed = list(params)
    if len(listed) != count:
        raise InputError(f"{len(listed)} parameters for {count} prompts, expected one or as many")
    return listed


class Job:
    """A prompt whose texts are made."""

    def __init__(
        self,
        llm: Base,
        params: SamplingParams,
        *,
        prompt: Prompt | None = None,
        conversation: str | None = None,
        adapter: Adapter = None,
        priority: int = 0,
        interactive: bool = False,
        bell: Bell | None = None,
    ) -> None:
        engine, adapters = llm._engine, llm._adapters(adapter)
        self.params, self.text = params, None
        self._llm = llm
        self._parts: list[Parts] = [Parts() for _ in range(params.n)]
        llm._number += 1
        self.request_id = str(llm._number)
        self.requests: list[Request] = []
        if prompt is not None:
            self.text, ids = llm._ids(prompt)
        for number in range(params.n):
            native = params._native(number)
            if conversation is not None:
                request = engine.submit_chat(
                    conversation, native, adapters, interactive=interactive, priority=priority, bell=bell
                )
            else:
                request = engine.submit(
                    ids, native, adapters, interactive=interactive, priority=priority, bell=bell
                )
            self.requests.append(request)
        self.is_chat = conversation is not None

    def cancel(self) -> None:
        """Ends the texts at the next step."""
        for request in self.requests:
            request.cancel()

    def take(self, pieces: list[Piece], number: int = 0) -> None:
        """Notes pieces that were read elsewhere."""
        for piece in pieces:
            self._parts[number].take(piece)

    def output(self) -> RequestOutput:
        """What came of it, once every text has ended."""
        first = self.requests[0]
        outputs = [self._completion(number) for number in range(len(self.requests))]
        result = first.result()
        metrics = RequestMetrics(
            seconds=result["seconds"],
            queued_seconds=result["queued_seconds"],
            first_token_seconds=result["first_token_seconds"],
            disk_tokens=result["disk_tokens"],
            draft_tokens=result["draft_tokens"],
            accepted_tokens=result["accepted_tokens"],
        )
        return RequestOutput(
            request_id=self.request_id,
            prompt=self.text,
            prompt_token_ids=first.prompt_token_ids,
            outputs=outputs,
            finished=True,
            prompt_logprobs=self._prompt_logprobs(first),
            metrics=metrics,
            num_cached_tokens=result["cached_tokens"],
        )

    def _completion(self, number: int) -> CompletionOutput:
        request, params = self.requests[number], self.params
        if self.is_chat:
            self.take(request.poll()[0], number)
        result = request.result()
        output = CompletionOutput(
            index=number,
            text=result["text"],
            token_ids=result["token_ids"],
            finish_reason=result["finish_reason"],
            stop_reason=self.stop_reason(result),
        )
        if self.is_chat:
            self._parts[number].into(output, f"{self.request_id}-{number}")
        elif params.include_stop_str_in_output and isinstance(output.stop_reason, str):
            output.text += output.stop_reason
        if params.logprobs is not None:
            scored = request.logprobs()
            output.logprobs = self.logprobs(scored)
            output.cumulative_logprob = sum(logprob for _, logprob, _, _ in scored)
        return output

    def stop_reason(self, result: Mapping[str, Any]) -> int | str | None:
        """What ended a text, unless it was the model's own end."""
        token, text = result["stop_token"], result["stop_text"]
        if text is not None:
            return text if text in self.params._stops() else None
        return token if token in (self.params.stop_token_ids or ()) else None

    def logprobs(self, scored: list[tuple[int, float, int, list[tuple[int, float]]]]) -> Logprobs:
        """Logarithms as vLLM has them."""
        return [self._logprob(one, self.params.logprobs or 0) for one in scored]

    def _logprob(
        self, one: tuple[int, float, int, list[tuple[int, float]]], most: int
    ) -> dict[int, Logprob]:
        token, logprob, rank, top = one
        found = {token: Logprob(logprob, rank, self._token(token))}
        for place, (other, value) in enumerate(top[:most]):
            found.setdefault(other, Logprob(value, place + 1, self._token(other)))
        return found

    def _token(self, token: int) -> str | None:
        known = self._llm._engine.token_bytes(token)
        return None if known is None else bytes(known).decode("utf-8", "replace")

    def _prompt_logprobs(self, request: Request) -> list[dict[int, Logprob] | None] | None:
        most = self.params.prompt_logprobs
        if most is None:
            return None
        logprobs, ranks, top_ids, top_logprobs = request.prompt_scores(most)
        found: list[dict[int, Logprob] | None] = [None]
        for at, token in enumerate(request.prompt_token_ids[1 : len(logprobs) + 1]):
            top = list(zip(top_ids[at].tolist(), top_logprobs[at].tolist(), strict=True))
            found.append(self._logprob((token, float(logprobs[at]), int(ranks[at]), top), most))
        return found


class Parts:
    """The parts of an answer, as they come."""

    def __init__(self) -> None:
        self.part: str | None = None
        self.name: str | None = None
        self._texts: dict[str, str] = {}
        self._calls: list[tuple[str, str]] = []

    def take(self, piece: Piece) -> None:
        """Adds a piece."""
        kind, part, name, text = piece
        if kind == "begin":
            self.part, self.name = part, name
            if part == "call":
                self._calls.append((name or "", ""))
        elif kind == "end":
            self.part = self.name = None
        elif self.part == "call":
            tool, arguments = self._calls[-1]
            self._calls[-1] = (tool, arguments + text)
        else:
            key = "reasoning" if self.part == "reasoning" else "answer"
            self._texts[key] = self._texts.get(key, "") + text

    def into(self, output: CompletionOutput, name: str) -> None:
        """Puts the parts into an output."""
        output.text = self._texts.get("answer", "")
        output.reasoning = self._texts.get("reasoning")
        for number, (tool, arguments) in enumerate(self._calls):
            output.tool_calls.append(ToolCall(f"call-{name}-{number}", tool, arguments))


class Deltas:
    """Makes deltas of one text's pieces."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.output: RequestOutput | None = None
        """What came of it, once it has ended."""
        self._ready: list[Delta] = []
        self._parts = Parts()
        self._seen = 0

    def take(self, come: tuple[list[Piece], list[int], bool]) -> None:
        """Takes what has come; the deltas are ready then."""
        pieces, ids, has_ended = come
        self.job.take(pieces)
        deltas: list[Delta] = []
        for piece in pieces:
            self._parts.take(piece)
            kind, _, name, text = piece
            if kind == "delta" or (kind == "begin" and name is not None):
                deltas.append(Delta(text, [], part=self._parts.part, name=self._parts.name))
        if not deltas and (ids or has_ended):
            deltas.append(Delta("", [], part=self._parts.part, name=self._parts.name))
        if ids:
            deltas[0].token_ids = ids
            if self.job.params.logprobs is not None:
                scored = self.job.requests[0].logprobs(self._seen)[: len(ids)]
                deltas[0].logprobs = self.job.logprobs(scored)
            self._seen += len(ids)
        if has_ended:
            self.output = self.job.output()
            deltas[-1].finish_reason = self.output.outputs[0].finish_reason
        self._ready.extend(deltas)

    def next(self) -> Delta | None:
        """The next delta that is ready."""
        return self._ready.pop(0) if self._ready else None
