"""Texts that are saved in files and go on from there."""

from __future__ import annotations

import os
from collections.abc import Sequence

from . import _kernmill
from ._values import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._base import Adapter, Base

Path = str | os.PathLike[str]


class SavedSession(Values):
    """A sequence that came back from a file."""

    def __init__(self, token_ids: list[int], note: str, restored_tokens: int) -> None:
        self.token_ids = token_ids
        """The tokens, which the next prompt begins with."""
        self.note = note
        """What was saved with them."""
        self.restored_tokens = restored_tokens
        """Tokens that need not be computed again."""


class Sessions:
    """Saved sequences of a model that was loaded with `sessions=True`."""

    def __init__(self, llm: Base) -> None:
        self._llm = llm

    def save(
        self, path: Path, token_ids: Sequence[int], *, adapter: Adapter = None, note: str = ""
    ) -> int:
        """Saves a sequence of tokens with what is cached of it; of how many tokens that is.

        The tokens are those of a prompt and of its text. The file appears whole or not at all, and only its
        owner can read it.
        """
        llm = self._llm
        return llm._engine.save_session(path, list(token_ids), llm._adapters(adapter), note)

    def load(self, path: Path, *, adapter: Adapter = None) -> SavedSession:
        """Brings back a sequence. What belongs to another model, or other adapters, is computed again."""
        token_ids, note = _kernmill.read_session(path)
        llm = self._llm
        restored = llm._engine.restore_session(path, llm._adapters(adapter))
        return SavedSession(token_ids, note, restored)
