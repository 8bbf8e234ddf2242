#!/usr/bin/env python3
"""Draws where the time goes: an SVG of bars from `kernmill bench --profile --json`.

    kernmill bench --profile --json > bench.json
    benches/picture.py bench.json docs/user/performance.svg

One bar per result, as long as the time per token; one piece per kind of step. A thin bar under each piece is the time that its bytes
(decode) or multiply-adds (prompt) need at the measured limit. Needs nothing but Python.
"""

import json
import sys
from pathlib import Path

WIDTH, LEFT, BAR, GAP = 900, 150, 34, 40
COLOURS = ["#4878a8", "#e49444", "#5ba053", "#d1615d", "#85b6b2", "#e7ca60", "#a87c9f", "#967662", "#b8b0ac", "#6a9f58"]


def name(result: dict) -> str:
    if result["kind"] == "prompt":
        return f"prompt of {result['tokens']}"
    text = "decode" if result["depth"] == 0 else f"decode after {result['depth']}"
    return text if result["batch"] == 1 else f"{text}, {result['batch']} sequences"


def needed_ms(step: dict, result: dict, bandwidth: float, peak: float) -> float:
    """What the step's work takes at the limit that bounds the result."""
    rate, limit = (step.get("gb_per_s", 0), bandwidth) if result["bound"] == "memory" else (step.get("gops", 0), peak * 1000)
    return step["ms"] * min(1.0, (rate or 0) / limit)


def text(x: float, y: float, content: str, anchor: str = "start", size: int = 13) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{content}</text>'


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    report = json.loads(Path(sys.argv[1]).read_text())
    bandwidth, peak = report["bandwidth"]["gb_per_s"], report["integer_peak"]["tops_per_s"]
    results = [result for result in report["results"] if result.get("steps")]
    kinds = list(dict.fromkeys(step["step"] for result in results for step in result["steps"]))
    colour = {kind: COLOURS[i % len(COLOURS)] for i, kind in enumerate(kinds)}
    parts = [text(LEFT, 22, f"{report['model']}, {report['preset']}, {report['level']}, {report['threads']} threads: {bandwidth:.1f} GB/s, {peak:.2f} TOPS")]
    y = 40
    for result in results:
        total = sum(step["ms"] for step in result["steps"])
        scale = (WIDTH - LEFT - 20) / total
        bound = "memory" if result["bound"] == "memory" else "arithmetic"
        parts.append(text(LEFT - 10, y + BAR / 2 + 1, name(result), "end"))
        parts.append(text(LEFT - 10, y + BAR / 2 + 17, f"{result['median']:.1f} tokens/s", "end", 11))
        x = LEFT
        for step in result["steps"]:
            length = step["ms"] * scale
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour[step["step"]]}"/>')
            needed = needed_ms(step, result, bandwidth, peak) * scale
            parts.append(f'<rect x="{x:.1f}" y="{y + BAR}" width="{needed:.1f}" height="6" fill="#333"/>')
            x += length
        parts.append(text(WIDTH - 20, y + BAR + 19, f"dark: the same work at the limit of {bound}", "end", 10))
        y += BAR + GAP
    x = LEFT
    for kind in kinds:
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="12" height="12" fill="{colour[kind]}"/>')
        parts.append(text(x + 16, y + 11, kind, size=11))
        x += 26 + 7 * len(kind)
        if x > WIDTH - 120:
            x, y = LEFT, y + 20
    body = "\n".join(parts)
    height = y + 24
    Path(sys.argv[2]).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    main()
