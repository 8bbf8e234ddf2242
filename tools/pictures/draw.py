#!/usr/bin/env python3
"""Draws the pictures of the documents as SVG files: boxes, arrows and text.

    tools/pictures/draw.py

It refuses to write a picture in which two texts overlap, or a text leaves its box or the picture. Needs nothing but Python.
"""

from pathlib import Path
from xml.sax.saxutils import escape

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLUE, YELLOW, GREEN, RED, GREY, WHITE = "#cfe2f3", "#fff2cc", "#d9ead3", "#f4cccc", "#eeeeee", "#ffffff"
# Widths of a character and of a line, in units of the font size; a little more than most sans-serif fonts take.
CHARACTER, LINE = 0.56, 1.3


class Picture:
    def __init__(self, width: int, height: int, title: str):
        self.width, self.height, self.title = width, height, title
        self.shapes: list[str] = []
        self.lines: list[str] = []
        self.texts: list[str] = []
        self.taken: list[tuple[float, float, float, float, str]] = []

    def text(self, x: float, y: float, content: str, size: float = 13, anchor: str = "start", bold: bool = False) -> None:
        """Text whose baseline is at y."""
        width = len(content) * size * CHARACTER * (1.08 if bold else 1)
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        area = (left, y - size * 0.8, left + width, y + size * 0.2, content)
        if area[0] < 0 or area[2] > self.width or area[1] < 0 or area[3] > self.height:
            raise ValueError(f"{self.title}: `{content}` leaves the picture")
        for other in self.taken:
            if area[0] < other[2] and other[0] < area[2] and area[1] < other[3] and other[1] < area[3]:
                raise ValueError(f"{self.title}: `{content}` overlaps `{other[4]}`")
        self.taken.append(area)
        weight = ' font-weight="bold"' if bold else ""
        self.texts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}"{weight}>{escape(content)}</text>')

    def box(self, x: float, y: float, width: float, height: float, fill: str, *lines: str, size: float = 13, dash: bool = False) -> None:
        """A box with lines of text in its middle; the first is bold if there are several."""
        dashes = ' stroke-dasharray="4 3"' if dash else ""
        self.shapes.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"{dashes}/>')
        for n, line in enumerate(lines):
            bold = n == 0 and len(lines) > 1
            if len(line) * size * CHARACTER * (1.08 if bold else 1) > width:
                raise ValueError(f"{self.title}: `{line}` is wider than its box")
            middle = y + height / 2 + size * 0.35
            self.text(x + width / 2, middle + (n - (len(lines) - 1) / 2) * size * LINE, line, size, "middle", bold)

    def arrow(self, *points: tuple[float, float], dash: bool = False) -> None:
        path = "M " + " L ".join(f"{x:g} {y:g}" for x, y in points)
        dashes = ' stroke-dasharray="4 3"' if dash else ""
        self.lines.append(f'<path d="{path}" marker-end="url(#head)"{dashes}/>')

    def line(self, *points: tuple[float, float], dash: bool = False) -> None:
        path = "M " + " L ".join(f"{x:g} {y:g}" for x, y in points)
        dashes = ' stroke-dasharray="4 3"' if dash else ""
        self.lines.append(f'<path d="{path}"{dashes}/>')

    def save(self, name: str) -> None:
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" font-family="sans-serif">',
            f"<title>{escape(self.title)}</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M 0 0 L 8 4 L 0 8 z" fill="#555555"/></marker></defs>',
            f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>',
            '<g stroke="#333333" stroke-width="1">', *self.shapes, "</g>",
            '<g stroke="#555555" stroke-width="1.2" fill="none">', *self.lines, "</g>",
            '<g fill="#111111">', *self.texts, "</g>", "</svg>", "",
        ]
        (DOCS / name).write_text("\n".join(parts))


def pipeline() -> None:
    rows = [
        ("read and lower the spec", "Graph", "legal ops and types"),
        ("quantise", "roundings are nodes", "form of the preset"),
        ("adapters", "branches of products", "with the next one"),
        ("fuse", "groups of nodes", "graph, groups, their order"),
        ("place weights", "offsets of tensors", "by the last check"),
        ("select", "a kernel per group", "when kernels are made"),
        ("schedule", "steps and buffers", "sizes; the last check"),
        ("plan memory", "places in the arena", "sweep over the steps"),
        ("choose micro-kernels", "versions of these", "none: all give the same bits"),
        ("generate", "machine code", "descriptions; assembled code"),
        ("assemble", "Program", "every step, every operand"),
    ]
    p = Picture(820, 70 + 44 * len(rows), "The passes of the compiler, and what checks each result")
    for x, head in ((125, "pass"), (395, "its result"), (675, "checked by")):
        p.text(x, 24, head, 14, "middle", True)
    for n, (name, result, check) in enumerate(rows):
        y = 40 + 44 * n
        p.box(20, y, 210, 30, BLUE, name)
        p.box(290, y, 210, 30, YELLOW, result)
        bare = check.startswith(("none", "by the", "with the", "when"))
        p.box(560, y, 240, 30, GREY if bare else GREEN, check, dash=bare)
        p.arrow((230, y + 15), (289, y + 15))
        p.arrow((560, y + 15), (501, y + 15))
        if n + 1 < len(rows):
            p.arrow((300, y + 30), (300, y + 37), (125, y + 37), (125, y + 43))
    p.text(20, 62 + 44 * len(rows) - 4, "green: a check right after the pass; grey: the result is checked later, as part of another one", 12)
    p.save("dev/pipeline.svg")


def kernel() -> None:
    p = Picture(860, 400, "A kernel: prologue, body with micro-kernel, epilogue, over the workers")
    p.box(20, 50, 180, 150, BLUE)
    p.text(110, 72, "prologue", 14, "middle", True)
    for n, name in enumerate(("rms_norm", "quantize_q8")):
        p.box(40, 88 + 48 * n, 140, 34, WHITE, name)
    p.arrow((110, 122), (110, 135))
    p.text(110, 190, "operations on rows", 11, "middle")
    p.box(260, 50, 330, 150, YELLOW)
    p.text(425, 72, "body: loop over work items", 14, "middle", True)
    p.box(280, 88, 130, 82, WHITE, "16 or 32 rows", "of the matrix", size=12)
    p.box(440, 88, 130, 82, GREEN, "micro-kernel", "one tile, its", "block loop", size=12)
    p.arrow((410, 129), (439, 129))
    p.text(425, 190, "one call per tile and token", 11, "middle")
    p.box(650, 50, 190, 150, RED)
    p.text(745, 72, "epilogue", 14, "middle", True)
    for n, name in enumerate(("bias, rope", "kv write, store")):
        p.box(670, 88 + 48 * n, 150, 34, WHITE, name)
    p.arrow((745, 122), (745, 135))
    p.text(745, 190, "on the item's results", 11, "middle")
    p.arrow((200, 125), (259, 125))
    p.arrow((590, 125), (649, 125))
    p.text(20, 30, "one kernel, the same code on every worker", 13)
    p.text(20, 232, "over the workers, in time", 13, bold=True)
    shares = [(118, ("0", "1", "2", "3", "11")), (158, ("4", "5", "6")), (118, ("7", "8", "9", "10"))]
    for n, (width, items) in enumerate(shares):
        y = 246 + 38 * n
        p.text(20, y + 20, f"worker {n}")
        p.box(90, y, 110, 28, BLUE, "prologue", size=12)
        for i, item in enumerate(items):
            p.box(200 + width * i, y, width, 28, YELLOW, f"item {item}", size=12)
        end = 200 + width * len(items)
        if 822 - end > 60:
            p.box(end, y, 822 - end, 28, GREY, "waits", size=12)
    p.line((822, 240), (822, 358))
    p.text(822, 374, "barrier", 11, "end")
    p.text(90, 374, "every worker can compute the prologue of a small batch itself; otherwise it is a step of its own", 11)
    p.save("dev/kernel.svg")


def tiles() -> None:
    p = Picture(880, 560, "A packed tile of each weight format, byte by byte")
    p.text(20, 24, "a tile: 16 rows of the matrix; a line: 64 bytes, 4 for each row, so that a vector lane is a row", 13)
    rows = [
        ("mxfp4", "16 scales of 1 byte", "4 lines of 8 k", ("k 8L | k 8L+4", "k 8L+1 | k 8L+5", "k 8L+2 | k 8L+6", "k 8L+3 | k 8L+7"), "a byte: low nibble | high nibble"),
        ("int4", "16 scales of f16", "4 lines of 8 k", ("k 8L | k 8L+4", "k 8L+1 | k 8L+5", "k 8L+2 | k 8L+6", "k 8L+3 | k 8L+7"), "a nibble holds q + 8"),
        ("int8", "16 scales of f16", "8 lines of 4 k", ("k 4L", "k 4L+1", "k 4L+2", "k 4L+3"), "a byte holds q + 128"),
        ("bf16", "no scales", "1 line for 2 k", ("k 2L", "k 2L+1"), "2 bytes each"),
        ("f32", "no scales", "1 line for 1 k", ("k L",), "4 bytes"),
    ]
    p.text(20, 54, "format", 13, bold=True)
    p.text(110, 54, "scale plane", 13, bold=True)
    p.text(290, 54, "data plane", 13, bold=True)
    p.text(450, 54, "the 4 bytes of a row in line L", 13, bold=True)
    for n, (name, scales, lines, cells, note) in enumerate(rows):
        y = 70 + 68 * n
        p.text(20, y + 26, name, 14, bold=True)
        p.box(110, y, 150, 40, GREY if scales == "no scales" else YELLOW, scales, size=12, dash=scales == "no scales")
        p.box(290, y, 130, 40, BLUE, lines, size=12)
        width = 408 / len(cells)
        for i, cell in enumerate(cells):
            p.box(450 + width * i, y, width, 40, GREEN, cell, size=11)
        p.text(450, y + 55, note, 11)
    p.text(110, 428, "scale plane and lines are those of one block of 32 k (mxfp4, int4, int8)", 11)
    p.text(20, 456, "one line of int8, L = 0", 13, bold=True)
    for row in range(16):
        x = 20 + 52.5 * row
        p.box(x, 468, 52.5, 44, GREEN, f"row {row}", "k 0..3", size=11)
    p.text(20, 530, "byte 0", 11)
    p.text(860, 530, "byte 63", 11, "end")
    p.text(440, 548, "a tile is its whole scale plane, padded to 64 bytes, and then its data plane", 12, "middle")
    p.save("dev/tiles.svg")


def decode_step() -> None:
    p = Picture(900, 330, "One layer of a decode step over three workers")
    steps = [("qkv", 150), ("attention", 130), ("o + residual", 120), ("gate, up", 190), ("down", 140)]
    slack = [(0, 14, 8), (22, 0, 12), (8, 16, 0), (14, 0, 24), (0, 18, 10)]
    colours = [BLUE, YELLOW, BLUE, GREEN, GREEN]
    p.text(20, 26, "one token, one layer; time goes to the right", 13)
    x = 100
    for worker in range(3):
        p.text(20, 92 + 60 * worker, f"worker {worker}")
    for (name, width), waits, colour in zip(steps, slack, colours):
        p.text(x + width / 2, 54, name, 13, "middle", True)
        for worker in range(3):
            y = 68 + 60 * worker
            busy = width - waits[worker]
            p.box(x, y, busy * 0.75, 40, colour)
            p.box(x + busy * 0.75, y, busy * 0.25, 40, colour, dash=True)
            if waits[worker]:
                p.box(x + busy, y, waits[worker], 40, RED)
        x += width
        p.line((x, 62), (x, 236))
    p.text(100, 256, "vertical line: barrier; no worker goes on before all have come", 12)
    for n, (fill, dash, label) in enumerate((
        (BLUE, False, "equal share of the work items, three quarters of the step"),
        (BLUE, True, "the rest, taken piece by piece from a counter"),
        (RED, False, "waiting: the worker prefetches the first weights of its next step"),
    )):
        p.box(100, 266 + 20 * n, 26, 14, fill, dash=dash)
        p.text(136, 278 + 20 * n, label, 12)
    p.save("dev/decode-step.svg")


def kv_blocks() -> None:
    p = Picture(880, 400, "Block tables of two sequences with a shared prefix, full and sliding layers")
    p.text(20, 24, "full layers: every block stays", 14, bold=True)
    p.text(20, 214, "sliding layers, a window of 32 tokens: blocks behind the window are given back", 14, bold=True)
    gone = "given back"
    tables = [
        (40, ["7", "3", "9", "4", "12"], ["7", "3", "9", "6"]),
        (230, [gone, gone, "2", "5", "8"], [gone, "10", "2", "1"]),
    ]
    for base, first, second in tables:
        for y, name, note, blocks in ((base, "sequence A", "72 tokens", first), (base + 100, "sequence B", "a fork at 56", second)):
            p.text(20, y + 20, name)
            p.text(20, y + 36, note, 11)
            for n, block in enumerate(blocks):
                copied = y > base and n == 3
                fill = GREY if block == gone else YELLOW if copied else BLUE
                p.box(120 + 100 * n, y, 100, 40, fill, block, size=12, dash=block == gone)
        for n in range(3):
            if first[n] == second[n] != gone:
                p.line((170 + 100 * n, base + 40), (170 + 100 * n, base + 100))
        p.text(376, base + 80, "one block, two users", 11)
        for n in range(5):
            p.text(122 + 100 * n, base + 54, f"{16 * n}..{16 * n + 15}", 10)
        p.text(640, base + 18, "number of the block,", 12)
        p.text(640, base + 34, "by position / 16", 12)
    p.text(640, 152, "yellow: B wrote into the shared", 12)
    p.text(640, 168, "last block, so it has a copy", 12)
    p.text(640, 342, "A needs block 10 no longer,", 12)
    p.text(640, 358, "but B still does", 12)
    p.save("dev/kv-blocks.svg")


def trust() -> None:
    p = Picture(860, 470, "When the machine code of a plan is run")
    questions = [
        ("Do you or root own the open file?", "somebody else may have made it"),
        ("Can only its owner write it?", "others may have changed it"),
        ("Is its file system mounted without noexec?", "an administrator forbids programs there"),
        ("Do the bytes have the hashes of the file?", "the file is damaged: refused"),
    ]
    for n, (question, reason) in enumerate(questions):
        y = 20 + 84 * n
        p.box(40, y, 340, 44, BLUE, question)
        p.box(540, y, 300, 44, RED, reason, size=12)
        p.arrow((380, y + 22), (539, y + 22))
        p.text(460, y + 14, "no", 12, "middle")
        p.arrow((210, y + 44), (210, y + 83))
        p.text(220, y + 68, "yes", 12)
    p.box(40, 356, 340, 60, GREEN, "the code is copied, the copy hashed,", "then run", size=12)
    p.box(540, 356, 300, 60, YELLOW, "--regenerate", "new code from the spec of the file", size=12)
    p.text(690, 350, "the first three have a way out", 11, "middle")
    p.line((840, 42), (850, 42), (850, 210), (840, 210), dash=True)
    p.arrow((850, 210), (850, 386), (841, 386), dash=True)
    p.line((840, 126), (850, 126), dash=True)
    p.text(540, 440, "otherwise: refused, with exit status 2", 11)
    p.text(40, 440, "a copy that you make is yours: cp, chmod go-w", 11)
    p.save("user/trust.svg")


def carry() -> None:
    p = Picture(880, 190, "How carry leads a value from layer to layer")
    p.text(20, 26, 'carry = { x = "y" }: what a layer computes as y is the x of the next one', 13)
    boxes = [(20, "[before]", "computes x"), (220, "layer 0", "x in, y out"), (420, "layer 1", "x in, y out"), (700, "[after]", "reads x")]
    for x, name, what in boxes:
        p.box(x, 60, 130, 60, BLUE if name.startswith("layer") else GREEN, name, what, size=13)
    p.text(635, 95, "...", 16, "middle")
    for start, end, name in ((150, 219, "x"), (350, 419, "y = x"), (550, 615, "y = x"), (655, 699, "y = x")):
        p.arrow((start, 90), (end, 90))
        p.text((start + end) / 2, 82, name, 12, "middle")
    p.text(20, 160, "the names are those of the spec: x and y may be any; several values can be carried", 12)
    p.save("user/carry.svg")


def blocks() -> None:
    p = Picture(900, 350, "A layer with a place for a block, and what each layer has there")
    p.text(110, 26, "[layer]", 14, "middle", True)
    for y, name, fill in ((60, "rms_norm n", GREEN), (140, "attention", YELLOW), (220, "block mlp", RED), (290, "add, add: y", WHITE)):
        p.box(40, y, 140, 36, fill, name, size=13)
    p.text(110, 46, "x", 12, "middle")
    p.arrow((110, 50), (110, 59))
    p.arrow((110, 96), (110, 139))
    p.line((180, 78), (200, 78), (200, 238))
    p.arrow((200, 238), (181, 238))
    p.line((40, 158), (20, 158), (20, 308))
    p.arrow((20, 308), (39, 308))
    p.arrow((110, 256), (110, 289))
    p.text(430, 26, "[layer.values]", 14, "middle", True)
    for x, head in ((310, "layer"), (380, "window"), (460, "turn"), (540, "mlp")):
        p.text(x, 52, head, 12, "middle", True)
    rows = [("0", "64", "main", "dense"), ("1", "64", "main", "experts"), ("2", "64", "main", "experts"), ("3", "full", "none", "experts")]
    for n, row in enumerate(rows):
        for x, value in zip((310, 380, 460, 540), row):
            fill = WHITE if x == 310 else RED if x == 540 else YELLOW
            p.box(x - 34, 62 + 44 * n, 68, 34, fill, value, size=12)
    p.arrow((276, 238), (201, 238), dash=True)
    p.text(284, 262, "each layer has the nodes that its values name", 12)
    p.text(760, 26, "[block.NAME]", 14, "middle", True)
    p.box(650, 60, 220, 60, BLUE, "dense", "gate, up, glu, down", size=13)
    p.box(650, 170, 220, 60, BLUE, "experts", "router, top k, experts", size=13)
    p.arrow((574, 79), (649, 90))
    for y in (123, 167, 211):
        p.arrow((574, y), (649, 200))
    p.text(650, 140, "only layer 0 needs its tensors", 11)
    p.text(650, 250, "tensors of layers 1 to 3", 11)
    p.save("user/blocks.svg")


def pattern() -> None:
    p = Picture(900, 400, "The bilinear pattern beside the nodes that it matches")
    p.text(150, 24, "nodes of the model", 14, "middle", True)
    p.text(600, 24, "one kernel", 14, "middle", True)
    nodes = [("rms_norm", 60, 150), ("quantize_q8", 116, 150), ("quant_linear a", 172, 75), ("quant_linear b", 172, 225), ("mul", 228, 150), ("add", 284, 150)]
    for name, y, x in nodes:
        p.box(x - 65, y, 130, 34, WHITE, name, size=12)
    p.text(150, 46, "x", 12, "middle")
    for a, b in (((150, 94), (150, 115)), ((130, 150), (85, 171)), ((170, 150), (215, 171)), ((85, 206), (130, 227)), ((215, 206), (170, 227)), ((150, 262), (150, 283)), ((150, 318), (150, 345))):
        p.arrow(a, b)
    p.arrow((150, 50), (150, 59))
    p.line((158, 52), (298, 52), (298, 301))
    p.arrow((298, 301), (216, 301))
    p.text(150, 362, "sum", 12, "middle")
    parts = [("prologue", "norm, quant", BLUE, 60, 90), ("roots", "a and b, sixteen rows of each at a time", YELLOW, 172, 34), ("epilogue", "product, sum: a * b + x in one pass", RED, 228, 90)]
    for name, what, fill, y, height in parts:
        p.box(430, y, 340, height, fill, name, what, size=12)
    p.arrow((600, 150), (600, 171))
    p.arrow((600, 206), (600, 227))
    p.arrow((600, 318), (600, 345))
    p.text(600, 362, "only sum is written to memory", 12, "middle")
    for y in (105, 189, 273):
        p.line((310, y), (425, y), dash=True)
    p.text(20, 390, "x feeds the norm and the sum; quant is optional, and missing in preset exact", 12)
    p.save("user/pattern.svg")


def block() -> None:
    p = Picture(880, 372, "One block of 32 weights in each format, and what it takes")
    p.text(20, 26, "32 neighbours of a row share a scale: weight = number * scale", 14, bold=True)
    for x, head in ((20, "format"), (150, "one block"), (690, "bytes"), (760, "bits per weight")):
        p.text(x, 56, head, 12, bold=True)
    rows = [
        ("bf16", None, ("0.0213", "-0.0448", "0.0071"), 64, "16", "every weight has its own exponent"),
        ("int8", "scale, f16", ("60", "-127", "20"), 34, "8.5", "whole numbers from -127 to 127"),
        ("int4", "scale, f16", ("3", "-7", "1"), 18, "4.5", "whole numbers from -8 to 7"),
        ("mxfp4", "scale, 2^n", ("3", "-6", "1"), 17, "4.25", "0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives"),
    ]
    for n, (name, scale, weights, size, bits, note) in enumerate(rows):
        y = 70 + 70 * n
        width = 500 * size / 64
        p.text(20, y + 25, name, 14, bold=True)
        left = 150.0
        if scale:
            p.box(left, y, 84, 38, YELLOW, scale, size=12)
            left += 84
        cell = 76 if size > 30 else 46
        for weight in weights:
            p.box(left, y, cell, 38, BLUE, weight, size=12)
            left += cell
        p.box(left, y, max(150 + width - left, 60), 38, GREY, "...", size=12)
        p.text(150, y + 53, note, 11)
        p.text(690, y + 25, str(size), 14)
        p.text(760, y + 25, bits, 14)
    p.text(20, 360, "numbers are those of the same three weights, -0.0448 being the largest of the block", 12)
    p.save("user/block.svg")


def layer() -> None:
    p = Picture(900, 470, "A layer with attention and MLP side by side, beside its lines in the spec")
    p.text(190, 24, "y = x + Attention(norm(x)) + MLP(norm(x))", 13, "middle", True)
    for name, x, y, width, fill in (
        ("rms_norm", 190, 70, 110, GREEN), ("linear q, k, v", 100, 130, 130, BLUE), ("rope q, k", 100, 190, 130, WHITE),
        ("attention", 100, 250, 130, YELLOW), ("linear o", 100, 310, 130, BLUE), ("linear gate, up", 285, 130, 130, BLUE),
        ("glu", 285, 220, 130, WHITE), ("linear down", 285, 310, 130, BLUE), ("add", 100, 380, 60, RED), ("add", 285, 380, 60, RED),
    ):
        p.box(x - width / 2, y, width, 34, fill, name, size=12)
    p.text(190, 48, "x", 13, "middle")
    p.arrow((190, 52), (190, 69))
    p.line((190, 104), (190, 117))
    for side in (100, 285):
        p.arrow((190, 117), (side, 117), (side, 129))
    for top, bottom in ((164, 189), (224, 249), (284, 309), (344, 379)):
        p.arrow((100, top), (100, bottom))
    for top, bottom in ((164, 219), (254, 309), (344, 379)):
        p.arrow((285, top), (285, bottom))
    p.arrow((182, 56), (16, 56), (16, 397), (69, 397))
    p.arrow((130, 397), (254, 397))
    p.arrow((285, 414), (285, 440))
    p.text(285, 456, "y", 13, "middle")
    p.text(400, 24, "in the spec", 13, bold=True)
    lines = [
        ("n = rms_norm(x)", 91), ("q, k, v = linear(n)", 151), ("gate, up = linear(n)", 171), ("q_rot, k_rot = rope(q), rope(k)", 211),
        ("act = glu(gate, up)", 241), ("attn = attention(q_rot, k_rot, v)", 271), ("o = linear(attn)", 322), ("down = linear(act)", 342),
        ("with_attn = add(x, o)", 391), ("y = add(with_attn, down)", 411),
    ]
    for line, y in lines:
        p.text(400, y, line, 13)
    p.line((640, 84), (650, 84), (650, 248), (640, 248))
    p.text(662, 160, "one kernel, by the rule", 12)
    p.text(662, 176, "parallel_block", 12, bold=True)
    p.save("user/layer.svg")


def scheduler() -> None:
    p = Picture(900, 260, "The states of a request")
    for x, fill, name, what in ((190, YELLOW, "waiting", "no sequence"), (420, BLUE, "prefilling", "prompt in pieces"), (650, GREEN, "decoding", "a token a step")):
        p.box(x, 70, 140, 56, fill, name, what)
    p.box(20, 70, 100, 56, WHITE, "arrive", size=12)
    p.arrow((120, 98), (189, 98))
    p.arrow((330, 98), (419, 98))
    p.text(375, 90, "start", 12, "middle")
    p.arrow((560, 98), (649, 98))
    p.text(605, 90, "last piece", 12, "middle")
    p.arrow((720, 70), (720, 36), (260, 36), (260, 69))
    p.line((490, 70), (490, 36))
    p.text(490, 26, "preempted: its blocks stay as cache, its tokens are known", 12, "middle")
    p.box(20, 196, 100, 40, RED, "refused", size=12)
    p.arrow((70, 126), (70, 195))
    p.box(420, 196, 370, 40, GREY, "ended, for a reason", size=12)
    p.line((260, 126), (260, 216))
    p.arrow((260, 216), (419, 216))
    p.text(345, 208, "cancelled, deadline", 12, "middle")
    p.arrow((490, 126), (490, 195))
    p.arrow((720, 126), (720, 195))
    p.text(505, 165, "cancelled, deadline, no memory", 12)
    p.text(732, 165, "also: all tokens", 12)
    p.save("dev/scheduler.svg")


if __name__ == "__main__":
    for draw in (pipeline, kernel, tiles, decode_step, kv_blocks, trust, carry, blocks, pattern, block, layer, scheduler):
        draw()
