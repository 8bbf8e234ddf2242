#!/usr/bin/env python3
"""Draws a terminal in which somebody talks with nano, from a real run of `kernmill chat`.

    tools/pictures/terminal.py [KERNMILL]

KERNMILL is the program, target/release/kernmill by default. The picture is docs/user/chat.svg; `tests/docs/pictures.rs`
compares its text with what the program says. The window has colours of its own, so that light and dark pages both show it.
Needs nothing but Python.
"""

import os
import pty
import re
import select
import struct
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[2]
COLUMNS, ROWS = 96, 30
# Units of the picture: a character, a line, the edge around the text, and the window's bar.
WIDTH, HEIGHT, EDGE, BAR = 8.4, 19, 16, 30
TYPED = ["What is a slice?", "What is 17 + 25?", "Sort pear, apple, fig"]
PROMPT = "> "
SECONDS = 60
BACKGROUND, PLAIN, DIM = "#1e2127", "#dcdfe4", "#8b93a1"


class Screen:
    """What a terminal shows: characters, each with whether it is dim and bold."""

    def __init__(self):
        self.lines, self.row, self.column, self.style = [[]], 0, 0, (False, False)

    def feed(self, text):
        for part in re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b.|[^\x1b]", text, re.S):
            if part.startswith("\x1b["):
                self.control(part[2:-1], part[-1])
            elif part == "\r":
                self.column = 0
            elif part == "\n":
                self.move(self.row + 1)
            elif part == "\b":
                self.column -= 1
            elif part >= " ":
                line = self.lines[self.row]
                line.extend([(" ", (False, False))] * (self.column + 1 - len(line)))
                line[self.column] = (part, self.style)
                self.column += 1

    def move(self, row):
        self.row = max(row, 0)
        while len(self.lines) <= self.row:
            self.lines.append([])

    def control(self, arguments, kind):
        numbers = [int(number) for number in arguments.split(";") if number.isdigit()]
        count = numbers[0] if numbers else 1
        if kind == "m":
            for number in numbers or [0]:
                dim, bold = self.style
                self.style = {0: (False, False), 1: (dim, True), 2: (True, bold), 22: (False, False)}.get(number, self.style)
        elif kind in "AB":
            self.move(self.row + (count if kind == "B" else -count))
        elif kind in "CD":
            self.column += count if kind == "C" else -count
        elif kind == "K":
            del self.lines[self.row][self.column:]
        elif kind == "J":
            del self.lines[self.row][self.column:]
            del self.lines[self.row + 1:]

    def text(self):
        return "".join(character for character, _ in self.lines[self.row]).rstrip("\n")


def talk(program):
    """The screen after a talk, line by line as it is typed."""
    child, terminal = pty.fork()
    if child == 0:
        environment = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
        os.execve(program, ["kernmill", "chat"], environment)
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    screen, todo, last = Screen(), [*TYPED, ""], time.monotonic()
    while True:
        ready, _, _ = select.select([terminal], [], [], 0.3)
        try:
            text = os.read(terminal, 65536).decode() if ready else ""
        except OSError:
            break
        screen.feed(text)
        if ready:
            last = time.monotonic()
        elif screen.text() == PROMPT and todo:
            line = todo.pop(0)
            # Ctrl-D leaves.
            os.write(terminal, line.encode() + b"\r" if line else b"\x04")
        elif time.monotonic() - last > SECONDS:
            sys.exit(f"kernmill chat says nothing for {SECONDS} s at `{screen.text()}`")
    os.waitpid(child, 0)
    lines = [[("$ kernmill chat", (False, True))]]
    for line in screen.lines:
        runs = []
        for character, style in line:
            if runs and runs[-1][1] == style:
                runs[-1] = (runs[-1][0] + character, style)
            else:
                runs.append((character, style))
        lines.append(runs)
    while lines and not "".join(text for text, _ in lines[-1]).strip(" >"):
        lines.pop()
    return lines


def draw(lines):
    longest = max(sum(len(text) for text, _ in runs) for runs in lines)
    width, height = 2 * EDGE + longest * WIDTH, BAR + 2 * EDGE + len(lines) * HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="ui-monospace, Menlo, Consolas, '
           'DejaVu Sans Mono, monospace" font-size="14">',
           "<title>A terminal in which kernmill chat answers</title>",
           f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="{BACKGROUND}" stroke="#5c6370"/>']
    out += [f'<circle cx="{18 + 18 * n}" cy="{BAR / 2:g}" r="5" fill="{fill}"/>' for n, fill in enumerate(["#e06c75", "#e5c07b", "#98c379"])]
    for n, runs in enumerate(lines):
        column, y = 0, BAR + EDGE + n * HEIGHT + 14
        for text, (dim, bold) in runs:
            if text.strip():
                weight = ' font-weight="bold"' if bold else ""
                # As wide as its characters in every font.
                out.append(f'<text x="{EDGE + column * WIDTH:g}" y="{y:g}" textLength="{len(text) * WIDTH:g}" xml:space="preserve" '
                           f'fill="{DIM if dim else PLAIN}"{weight}>{escape(text)}</text>')
            column += len(text)
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    program = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/kernmill").resolve()
    (ROOT / "docs/user/chat.svg").write_text(draw(talk(program)))
