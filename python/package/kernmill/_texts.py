"""What `LLM` and `AsyncLLM` ask for alike: texts of prompts and conversations, streams, and scores."""

from __future__ import annotations

from ._base import Base, Deltas, Job, params_of, prompts_of
from ._kernmill import Unsupported
from ._messages import conversation, is_conversation
from .outputs import Scores
from .params import SamplingParams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Generic, Self, TypeVar

    from ._base import Adapter, Prompt
    from ._kernmill import Bell
    from ._messages import Message
    from .outputs import RequestOutput

    Messages = Sequence[Message]
    Params = SamplingParams | Sequence[SamplingParams] | None
    Tools = Iterable[Mapping[str, Any]] | None
    S = TypeVar("S")

    class _Streaming(Generic[S]):
        """Makes streams of the class `S`."""

else:
    S = None

    class _Streaming:
        """Takes the class of streams, which only type checkers look at."""

        def __class_getitem__(cls, _):
            return cls


class Jobs(list[Job]):
    """Texts that are made together. Leaving the block by an exception cancels them."""

    def __init__(self, started: Iterable[Job]) -> None:
        super().__init__()
        try:
            for job in started:
                self.append(job)
        except BaseException:
            self._cancel()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._cancel()

    def _cancel(self) -> None:
        for job in self:
            job.cancel()


class Texts(Base, _Streaming[S]):
    """A model whose streams are of the class `S`."""

    _is_interactive: bool
    """Whether somebody looks on while a list of texts is made."""

    def stream(
        self,
        prompt: Prompt,
        sampling_params: SamplingParams | None = None,
        *,
        adapter: Adapter = None,
        priority: int = 0,
    ) -> S:
        """Continues a prompt, piece by piece. Leaving the stream cancels the text."""
        params = _single(sampling_params)
        return self._stream(
            self._job(params, prompt=prompt, adapter=adapter, priority=priority, interactive=True)
        )

    def stream_chat(
        self,
        messages: Messages,
        sampling_params: SamplingParams | None = None,
        *,
        tools: Tools = None,
        reasoning_effort: str | None = None,
        date: str | None = None,
        adapter: Adapter = None,
        priority: int = 0,
    ) -> S:
        """Answers a conversation, piece by piece; each says which part of the answer it belongs to."""
        params = _single(sampling_params)
        text = conversation(messages, tools, reasoning_effort, date)
        return self._stream(
            self._job(params, conversation=text, adapter=adapter, priority=priority, interactive=True)
        )

    def _stream(self, job: Job) -> S:
        raise NotImplementedError

    def _bell(self) -> Bell | None:
        """What rings when a text has news; nothing where the caller waits for it."""
        return None

    def _job(self, params: SamplingParams, *, interactive: bool | None = None, **options: Any) -> Job:
        interactive = self._is_interactive if interactive is None else interactive
        return Job(self, params, interactive=interactive, bell=self._bell(), **options)

    def _generated(self, prompts: Prompt | Sequence[Prompt], params: Params, **options: Any) -> Jobs:
        """The texts of a call of `generate`."""
        listed = prompts_of(prompts)
        each = zip(listed, params_of(params, len(listed)), strict=True)
        return Jobs(self._job(how, prompt=one, **options) for one, how in each)

    def _answered(
        self,
        messages: Messages | Sequence[Messages],
        params: Params,
        tools: Tools,
        reasoning_effort: str | None,
        date: str | None,
        **options: Any,
    ) -> Jobs:
        """The texts of a call of `chat`."""
        listed: list[Any] = [messages] if is_conversation(messages) else list(messages)
        each = zip(listed, params_of(params, len(listed)), strict=True)
        tools = None if tools is None else list(tools)

        def started() -> Iterator[Job]:
            for one, how in each:
                text = conversation(one, tools, reasoning_effort, date)
                yield self._job(how, conversation=text, **options)

        return Jobs(started())

    def _scored(self, prompt: Prompt, top: int, adapter: Adapter) -> Jobs:
        """The one text of a call of `score`; `scores` reads it once it has ended."""
        params = SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=top, drafts=False)
        return Jobs([self._job(params, prompt=prompt, adapter=adapter)])


class StreamBase:
    """A text as it comes, and what becomes of it."""

    def __init__(self, job: Job) -> None:
        self._deltas = Deltas(job)

    @property
    def output(self) -> RequestOutput | None:
        """What came of the text, once it has ended."""
        return self._deltas.output

    def _cancel(self) -> None:
        if self._deltas.output is None:
            self._deltas.job.cancel()


def outputs(jobs: Jobs) -> list[RequestOutput]:
    """What came of texts that have ended."""
    return [job.output() for job in jobs]


def scores(jobs: Jobs, top: int) -> Scores:
    """The scores that the text of `score` has."""
    request = jobs[0].requests[0]
    return Scores(request.prompt_token_ids, *request.prompt_scores(top))


def _single(params: SamplingParams | None) -> SamplingParams:
    one = params_of(params, 1)[0]
    if one.n != 1:
        raise Unsupported("a stream has one text: leave n at 1")
    return one
