"""`AsyncLLM`: texts while an event loop goes on."""

from __future__ import annotations

import asyncio
import weakref

from ._base import prompts_of
from ._kernmill import Bell
from ._texts import StreamBase, Texts, outputs, scores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Any, Self

    import numpy as np
    import numpy.typing as npt

    from ._base import Adapter, Base, Job, Path, Prompt
    from ._kernmill import Request
    from ._texts import Jobs, Messages, Params, Tools
    from .outputs import Delta, RequestOutput, Scores


class _Ringer:
    """Wakes the tasks of one event loop when their requests have news."""

    def __init__(self) -> None:
        self.bell = Bell()
        self._events: weakref.WeakValueDictionary[int, asyncio.Event] = weakref.WeakValueDictionary()
        self._is_watched = False

    def event(self, request: Request, loop: asyncio.AbstractEventLoop) -> asyncio.Event:
        """What is set whenever the request has news, for as long as somebody holds it."""
        event = self._events[request.ticket] = asyncio.Event()
        if not self._is_watched:
            loop.add_reader(self.bell.fileno(), self._rung, loop)
            self._is_watched = True
        return event

    def _rung(self, loop: asyncio.AbstractEventLoop) -> None:
        for ticket in self.bell.answer():
            if (event := self._events.get(ticket)) is not None:
                event.set()
        if not self._events:
            loop.remove_reader(self.bell.fileno())
            self._is_watched = False


class AsyncLLM(Texts["AsyncStream"]):
    """A model that makes texts for tasks of event loops.

    A task that is cancelled cancels what it asked for. Making the object loads the model, which takes a
    while; `AsyncLLM.create` does that on another thread.
    """

    _is_interactive = True

    def __init__(self, *args: Any, **options: Any) -> None:
        """Loads a model; the options are those of `LLM`."""
        super().__init__(*args, **options)
        self._ringers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Ringer]
        self._ringers = weakref.WeakKeyDictionary()

    @classmethod
    async def create(cls, model: Path | None = None, **options: Any) -> Self:
        """Loads a model while the loop goes on; the options are those of `LLM`."""
        return await asyncio.to_thread(cls, model, **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancels what runs and frees the model. The object cannot be used any more."""
        await asyncio.to_thread(self._end)

    async def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: Params = None,
        *,
        adapter: Adapter = None,
        priority: int = 0,
    ) -> list[RequestOutput]:
        """Continues prompts, as `LLM.generate` does."""
        with self._generated(prompts, sampling_params, adapter=adapter, priority=priority) as jobs:
            await self._wait(jobs)
            return outputs(jobs)

    async def chat(
        self,
        messages: Messages | Sequence[Messages],
        sampling_params: Params = None,
        *,
        tools: Tools = None,
        reasoning_effort: str | None = None,
        date: str | None = None,
        adapter: Adapter = None,
        priority: int = 0,
    ) -> list[RequestOutput]:
        """Answers a conversation, or several together, as `LLM.chat` does."""
        told = (tools, reasoning_effort, date)
        with self._answered(messages, sampling_params, *told, adapter=adapter, priority=priority) as jobs:
            await self._wait(jobs)
            return outputs(jobs)

    async def score(self, prompt: Prompt, *, top: int = 0, adapter: Adapter = None) -> Scores:
        """How likely the model holds each token of a text, after those before it."""
        with self._scored(prompt, top, adapter) as jobs:
            await self._wait(jobs)
            return scores(jobs, top)

    async def logits(
        self, prompt: Prompt, *, last: bool = False, adapter: Adapter = None
    ) -> npt.NDArray[np.float32]:
        """The logits after every token, or after the last, as `LLM.logits` gives them."""
        ids, adapters = self._ids(prompt)[1], self._adapters(adapter)
        return await asyncio.to_thread(self._engine.logits, ids, last, adapters)

    async def embed(
        self, prompts: Prompt | Sequence[Prompt], *, dimensions: int | None = None, adapter: Adapter = None
    ) -> npt.NDArray[np.float32]:
        """The vectors of texts, as `LLM.embed` gives them."""
        ids, adapters = [self._ids(prompt)[1] for prompt in prompts_of(prompts)], self._adapters(adapter)
        return await asyncio.to_thread(self._engine.embed, ids, dimensions, adapters)

    @property
    def adapters(self) -> AsyncAdapters:
        """The adapters that are loaded."""
        return AsyncAdapters(self)

    async def metrics(self) -> dict[str, float]:
        """What there is to do, and what was done: requests, the KV cache, steps, tokens."""
        return await asyncio.to_thread(self._metrics)

    def _ringer(self) -> _Ringer:
        return self._ringers.setdefault(asyncio.get_running_loop(), _Ringer())

    def _bell(self) -> Bell:
        return self._ringer().bell

    def _stream(self, job: Job) -> AsyncStream:
        return AsyncStream(self, job)

    def _event(self, request: Request) -> asyncio.Event:
        return self._ringer().event(request, asyncio.get_running_loop())

    async def _wait(self, jobs: Jobs) -> None:
        requests = [(request, self._event(request)) for job in jobs for request in job.requests]
        for request, event in requests:
            while not request.wait(0):
                await event.wait()
                event.clear()


class AsyncAdapters:
    """Adapters (LoRA, DoRA) that are loaded beside a model."""

    def __init__(self, llm: Base) -> None:
        self._engine = llm._engine

    async def load(self, name: str, path: Path, *, scale: float = 1.0) -> int:
        """Loads the adapter in a directory under a name; how many bytes it takes. Texts go on meanwhile."""
        return await asyncio.to_thread(self._engine.load_adapter, name, path, scale)

    async def unload(self, name: str) -> bool:
        """Forgets an adapter; whether there was one. Texts that use it end with an error."""
        return await asyncio.to_thread(self._engine.unload_adapter, name)

    async def names(self) -> list[str]:
        """Names of the adapters."""
        return await asyncio.to_thread(self._engine.adapters)


class AsyncStream(StreamBase):
    """A text as it comes: an asynchronous iterator of `Delta` that cancels what is left."""

    def __init__(self, llm: AsyncLLM, job: Job) -> None:
        super().__init__(job)
        self._event = llm._event(job.requests[0])

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        deltas = self._deltas
        try:
            while True:
                if (delta := deltas.next()) is not None:
                    return delta
                if deltas.output is not None:
                    raise StopAsyncIteration
                self._event.clear()
                deltas.take(deltas.job.requests[0].poll())
                if (delta := deltas.next()) is None:
                    await self._event.wait()
                else:
                    return delta
        except StopAsyncIteration:
            raise
        except BaseException:
            self.cancel()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()

    async def aclose(self) -> None:
        """Cancels the text, if it has not ended."""
        self.cancel()

    def cancel(self) -> None:
        """Cancels the text, if it has not ended."""
        self._cancel()
