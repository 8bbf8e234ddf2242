"""What is done with models that are not loaded."""

from __future__ import annotations

import os

from . import _kernmill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

Path = str | os.PathLike[str]


def compile(
    model: Path | None,
    output: Path,
    *,
    preset: str = "faithful",
    target: str | Sequence[str] = "native",
    spec: Path | None = None,
    threads: int | None = None,
    chunk: int | None = None,
) -> None:
    """Compiles a model into a plan, which starts at once from then on.

    `model` is a checkpoint's directory or a GGUF file; `None` is the embedded model. `target` is an
    instruction set, several of them, `native` or `all`. The file appears when it is whole.
    """
    targets = [target] if isinstance(target, str) else list(target)
    _kernmill.compile(
        model, output, spec=spec, preset_name=preset, targets=targets, threads=threads, chunk=chunk
    )


def inspect(model: Path | None = None, *, preset: str = "fast", threads: int | None = None) -> dict[str, Any]:
    """What is in a plan; or, of another model, the format and size of every tensor with a preset.

    The fields are those of `kernmill inspect --json`.
    """
    import json

    found: dict[str, Any] = json.loads(_kernmill.inspect(model, preset, threads))
    return found


def explain(
    model: Path | None = None,
    *,
    preset: str = "faithful",
    target: str = "native",
    context: int | None = None,
    chunk: int | None = None,
) -> dict[str, Any]:
    """What a model compiles to and why: the fields of `kernmill explain --json`. No weights are needed."""
    import json

    found: dict[str, Any] = json.loads(_kernmill.explain(model, preset, target, context, chunk))
    return found


def import_spec(path: Path) -> str:
    """The spec, in TOML, of a published checkpoint's directory or of a GGUF file."""
    return _kernmill.import_spec(path)
