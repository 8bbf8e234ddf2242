"""How many prompts are done, on a terminal."""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

# What is done by then needs no bar.
_SECONDS = 0.5
_WIDTH = 30


class Bar:
    """A line on standard error, if that is a terminal, which goes when the work ends."""

    def __init__(self, is_wanted: bool, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_shown = is_wanted and _is_terminal(self._stream)
        self._is_drawn = False
        self._start = time.monotonic()

    def show(self, done: int, every: int) -> None:
        """Draws that `done` of `every` prompts are done."""
        seconds = time.monotonic() - self._start
        if self._is_shown and seconds >= _SECONDS:
            bar = "#" * (_WIDTH * done // every)
            left = seconds / done * (every - done)
            self._write(f"\r{done} of {every} [{bar:{_WIDTH}}] {seconds:.0f} s, {left:.0f} s to go \x1b[K")
            self._is_drawn = True

    def end(self) -> None:
        """Takes the line away."""
        if self._is_drawn:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _is_terminal(stream: TextIO | None) -> bool:
    # A program without a console has no stream.
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
