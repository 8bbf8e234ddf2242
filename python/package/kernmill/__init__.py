"""GPT-OSS and other language models on x86-64 CPUs: kernels compiled for the CPU at hand.

Five lines make a text::

    from kernmill import LLM, SamplingParams

    llm = LLM("gpt-oss-20b.plan")  # a plan, a checkpoint's directory, a GGUF file; nothing for a tiny model
    params = SamplingParams(temperature=0, max_tokens=40)
    for output in llm.generate(["A slice is", "A vector is"], params):
        print(output.outputs[0].text)

Names and fields are those of vLLM, so that its offline scripts run after a change of the import.
"""

from __future__ import annotations

from ._kernmill import Defect, InputError, Overloaded, Unsupported, __version__
from .llm import LLM, Stream
from .outputs import CompletionOutput, Delta, Logprob, RequestMetrics, RequestOutput, Scores, ToolCall
from .params import SamplingParams, StructuredOutputsParams
from .sessions import SavedSession
from .tools import compile, explain, import_spec, inspect

# As of `typing`, which takes longer to import than all of this package; type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .async_llm import AsyncLLM, AsyncStream

__all__ = [
    "LLM",
    "AsyncLLM",
    "AsyncStream",
    "CompletionOutput",
    "Defect",
    "Delta",
    "InputError",
    "Logprob",
    "Overloaded",
    "RequestMetrics",
    "RequestOutput",
    "SamplingParams",
    "SavedSession",
    "Scores",
    "Stream",
    "StructuredOutputsParams",
    "ToolCall",
    "Unsupported",
    "__version__",
    "compile",
    "explain",
    "import_spec",
    "inspect",
]


def __getattr__(name: str) -> Any:
    # `asyncio` takes several times as long to import as all else here, and many programs need none of it.
    if name in ("AsyncLLM", "AsyncStream"):
        from . import async_llm

        return getattr(async_llm, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
