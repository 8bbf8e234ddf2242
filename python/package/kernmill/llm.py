"""`LLM`: texts while the caller waits."""

from __future__ import annotations

from ._base import prompts_of
from ._progress import Bar
from ._texts import StreamBase, Texts, outputs, scores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

    import numpy as np
    import numpy.typing as npt

    from ._base import Adapter, Base, Job, Path, Prompt
    from ._texts import Jobs, Messages, Params, Tools
    from .outputs import Delta, RequestOutput, Scores
    from .params import SamplingParams

    OnProgress = Callable[[int, int], object] | None


class LLM(Texts["Stream"]):
    """A model that makes texts.

    All threads may use one object at once: what they ask for runs together. Leaving a call by an exception,
    Ctrl-C among them, cancels what it asked for, and the model goes on.
    """

    _is_interactive = False

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
        use_tqdm: bool = True,
    ) -> list[RequestOutput]:
        """Continues prompts, together. The text of each is the one that it gets alone.

        Without parameters they are those of `kernmill run`: temperature 0.6, top-p 0.9, seed 0, 200 tokens.
        `on_progress` is called with the number of prompts that are done, and of all. `use_tqdm`, by its name
        in vLLM, is a bar on standard error, if that is a terminal and the work takes more than a moment.
        """
        with self._generated(prompts, sampling_params, adapter=adapter, priority=priority) as jobs:
            return _finished(jobs, on_progress, use_tqdm)

    def chat(
        self,
        messages: Messages | Sequence[Messages],
        sampling_params: Params = None,
        *,
        tools: Tools = None,
        reasoning_effort: str | None = None,
        date: str | None = None,
        adapter: Adapter = None,
        priority: int = 0,
        on_progress: OnProgress = None,
        use_tqdm: bool = True,
    ) -> list[RequestOutput]:
        """Answers a conversation, or several together.

        Messages and tools are those of OpenAI's chat API. The text of an output is what the user is to read;
        `reasoning` and `tool_calls` stand beside it. `reasoning_effort` is low, medium or high; `date`, as
        YYYY-MM-DD, is the day that the model is told.
        """
        told = (tools, reasoning_effort, date)
        with self._answered(messages, sampling_params, *told, adapter=adapter, priority=priority) as jobs:
            return _finished(jobs, on_progress, use_tqdm)

    def score(self, prompt: Prompt, *, top: int = 0, adapter: Adapter = None) -> Scores:
        """How likely the model holds each token of a text, after those before it."""
        with self._scored(prompt, top, adapter) as jobs:
            _wait(jobs)
            return scores(jobs, top)

    def logits(
        self, prompt: Prompt, *, last: bool = False, adapter: Adapter = None
    ) -> npt.NDArray[np.float32]:
        """The logits after every token, `[tokens, vocabulary]`; with `last` those after the last, `[1, ..]`.

        The array is the engine's own memory, handed over and not copied. Other texts wait meanwhile.
        """
        return self._engine.logits(self._ids(prompt)[1], last, self._adapters(adapter))

    def embed(
        self, prompts: Prompt | Sequence[Prompt], *, dimensions: int | None = None, adapter: Adapter = None
    ) -> npt.NDArray[np.float32]:
        """The vectors of texts, `[texts, dimensions]`, of a model for vectors."""
        ids = [self._ids(prompt)[1] for prompt in prompts_of(prompts)]
        return self._engine.embed(ids, dimensions, self._adapters(adapter))

    @property
    def adapters(self) -> Adapters:
        """The adapters that are loaded."""
        return Adapters(self)

    def metrics(self) -> dict[str, float]:
        """What there is to do, and what was done: requests, the KV cache, steps, tokens."""
        return self._metrics()

    def _stream(self, job: Job) -> Stream:
        return Stream(job)


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


class Stream(StreamBase):
    """A text as it comes: an iterator of `Delta`, and a context manager that cancels what is left."""

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
        self._cancel()


def _finished(jobs: Jobs, on_progress: OnProgress, has_bar: bool) -> list[RequestOutput]:
    bar = Bar(has_bar)
    try:
        _wait(jobs, bar.show, on_progress)
    finally:
        bar.end()
    return outputs(jobs)


def _wait(jobs: Jobs, *told: OnProgress) -> None:
    for done, job in enumerate(jobs):
        for request in job.requests:
            request.wait()
        for tell in told:
            if tell is not None:
                tell(done + 1, len(jobs))
