"""`LLM`: texts while the caller waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ._base import Adapter, Base, Deltas, Job, Path, Prompt, params_of, prompts_of
from ._kernmill import Unsupported
from ._messages import Message, conversation, is_conversation
from .outputs import Delta, RequestOutput, Scores
from .params import SamplingParams

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Params = SamplingParams | Sequence[SamplingParams] | None
OnProgress = Callable[[int, int], object] | None


class LLM(Base):
    """A model that makes texts.

    All threads may use one object at once: what they ask for runs together. Leaving a call by an exception,
    Ctrl-C among them, cancels what it asked for, and the model goes on.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(
        self, prompt: Prompt, params: SamplingParams | None = None, *, adapter: Adapter = None
    ) -> str:
        """The text that follows a prompt."""
        return self.generate([prompt], params, adapter=adapter)[0].outputs[0].text

    def close(self) -> None:
        """Cancels what runs and frees the model. The object cannot be used any more."""
        self._end()

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: Params = None,
        *,
        adapter: Adapter = None,
        priority: int = 0,
        on_progress: OnProgress = None,
        use_tqdm: bool = False,
    ) -> list[RequestOutput]:
        """Continues prompts, together. The text of each is the one that it gets alone.

        Without parameters they are those of `kernmill run`: temperature 0.6, top-p 0.9, seed 0, 200 tokens.
        `on_progress` is called with the number of prompts that are done, and of all. `use_tqdm` is for
        scripts of vLLM and shows nothing.
        """
        del use_tqdm
        listed = prompts_of(prompts)
        params = params_of(sampling_params, len(listed))
        jobs: list[Job] = []
        try:
            for prompt, one in zip(listed, params, strict=True):
                jobs.append(Job(self, one, prompt=prompt, adapter=adapter, priority=priority))
            return _finished(jobs, on_progress)
        except BaseException:
            _cancel(jobs)
            raise

    def chat(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        sampling_params: Params = None,
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        reasoning_effort: str | None = None,
        date: str | None = None,
        adapter: Adapter = None,
        priority: int = 0,
        on_progress: OnProgress = None,
        use_tqdm: bool = False,
    ) -> list[RequestOutput]:
        """Answers a conversation, or several together.

        Messages and tools are those of OpenAI's chat API. The text of an output is what the user is to read;
        `reasoning` and `tool_calls` stand beside it. `reasoning_effort` is low, medium or high; `date`, as
        YYYY-MM-DD, is the day that the model is told.
        """
        del use_tqdm
        listed: list[Any] = [messages] if is_conversation(messages) else list(messages)
        params = params_of(sampling_params, len(listed))
        tools = None if tools is None else list(tools)
        jobs: list[Job] = []
        try:
            for one, how in zip(listed, params, strict=True):
                text = conversation(one, tools, reasoning_effort, date)
                jobs.append(Job(self, how, conversation=text, adapter=adapter, priority=priority))
            return _finished(jobs, on_progress)
        except BaseException:
            _cancel(jobs)
            raise

    def stream(
        self,
        prompt: Prompt,
        sampling_params: SamplingParams | None = None,
        *,
        adapter: Adapter = None,
        priority: int = 0,
    ) -> Stream:
        """Continues a prompt, piece by piece. Leaving the stream cancels the text."""
        params = _single(sampling_params)
        return Stream(Job(self, params, prompt=prompt, adapter=adapter, priority=priority, interactive=True))

    def stream_chat(
        self,
        messages: Sequence[Message],
        sampling_params: SamplingParams | None = None,
        *,
        tools: Iterable[Mapping[str, Any]] | None = None,
        reasoning_effort: str | None = None,
        date: str | None = None,
        adapter: Adapter = None,
        priority: int = 0,
    ) -> Stream:
        """Answers a conversation, piece by piece; each says which part of the answer it belongs to."""
        params = _single(sampling_params)
        text = conversation(messages, tools, reasoning_effort, date)
        job = Job(self, params, conversation=text, adapter=adapter, priority=priority, interactive=True)
        return Stream(job)

    def score(self, prompt: Prompt, *, top: int = 0, adapter: Adapter = None) -> Scores:
        """How likely the model holds each token of a text, after those before it."""
        params = scoring(top)
        job = Job(self, params, prompt=prompt, adapter=adapter)
        try:
            job.requests[0].wait()
        except BaseException:
            job.cancel()
            raise
        return scores(job, top)

    def logits(
        self, prompt: Prompt, *, last: bool = False, adapter: Adapter = None
    ) -> npt.NDArray[np.float32]:
        """The logits after every token, `[tokens, vocabulary]`; with `last` those after the last, `[1, ..]`.

        The array is the engine's own memory, handed over and not copied. Other texts wait meanwhile.
        """
        return self._engine.logits(self._ids(prompt)[1], last, self._adapters(adapter))

    @property
    def adapters(self) -> Adapters:
        """The adapters that are loaded."""
        return Adapters(self)

    def metrics(self) -> dict[str, float]:
        """What there is to do, and what was done: requests, the KV cache, steps, tokens."""
        return self._metrics()


class Adapters:
    """Adapters (LoRA, DoRA) that are loaded beside a model."""

    def __init__(self, llm: Base) -> None:
        self._llm = llm

    def load(self, name: str, path: Path, *, scale: float = 1.0) -> int:
        """Loads the adapter in a directory under a name; how many bytes it takes. Texts go on meanwhile."""
        return self._llm._engine.load_adapter(name, path, scale)

    def unload(self, name: str) -> bool:
        """Forgets an adapter; whether there was one. Texts that use it end with an error."""
        return self._llm._engine.unload_adapter(name)

    def names(self) -> list[str]:
        """Names of the adapters."""
        return self._llm._engine.adapters()

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())


class Stream:
    """A text as it comes: an iterator of `Delta`, and a context manager that cancels what is left."""

    def __init__(self, job: Job) -> None:
        self._deltas = Deltas(job)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delta:
        deltas = self._deltas
        while True:
            if (delta := deltas.next()) is not None:
                return delta
            if deltas.output is not None:
                raise StopIteration
            try:
                deltas.take(deltas.job.requests[0].step())
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancels the text, if it has not ended."""
        if self._deltas.output is None:
            self._deltas.job.cancel()

    @property
    def output(self) -> RequestOutput | None:
        """What came of the text, once it has ended."""
        return self._deltas.output


def scoring(top: int) -> SamplingParams:
    """Parameters of a request that scores its prompt."""
    return SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=top, drafts=False)


def scores(job: Job, top: int) -> Scores:
    """The scores that such a request has."""
    request = job.requests[0]
    return Scores(request.prompt_token_ids, *request.prompt_scores(top))


def _single(params: SamplingParams | None) -> SamplingParams:
    one = params_of(params, 1)[0]
    if one.n != 1:
        raise Unsupported("a stream has one text: leave n at 1")
    return one


def _finished(jobs: list[Job], on_progress: OnProgress) -> list[RequestOutput]:
    for done, job in enumerate(jobs):
        for request in job.requests:
            request.wait()
        if on_progress is not None:
            on_progress(done + 1, len(jobs))
    return [job.output() for job in jobs]


def _cancel(jobs: list[Job]) -> None:
    for job in jobs:
        job.cancel()
