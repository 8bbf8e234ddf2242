#!/usr/bin/env python3
"""Pairs of runs that differ in one thing: a built-in activation, and the same formula as a function of a fused-op spec.

    benches/activation.py KERNMILL [PAIRS]

A dense model (4 layers of 256, inner 1024: it fits the cache, so that memory does not hide the arithmetic) with random weights decodes and reads a
prompt, with two threads; pairs alternate in order. Of each run the best of its repetitions counts. Prints each pair, the medians of the ratios
(TOML over built-in), and how much of the machine code is the same."""

import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

SPEC = """
[model]
name = "activation"
vocab = 512
max_context = 2048
[rope.main]
head_dim = 64
theta = 10000.0
[tensors]
embed = { from = "embed", shape = [512, 256], format = "bf16" }
norm = { from = "norm", shape = [256], format = "bf16" }
unembed = { from = "unembed", shape = [512, 256], format = "bf16" }
[before]
node = [{ out = "x", op = "embed", table = "embed" }]
[layer]
count = 4
carry = { x = "y" }
node = [
  { out = "n1", op = "rms_norm", input = "x", weight = "n1", eps = 1e-5 },
  { out = "q", op = "linear", input = "n1", weight = "q" },
  { out = "k", op = "linear", input = "n1", weight = "k" },
  { out = "v", op = "linear", input = "n1", weight = "v" },
  { out = "qr", op = "rope", input = "q", rope = "main" },
  { out = "kr", op = "rope", input = "k", rope = "main" },
  { out = "a", op = "attention", q = "qr", k = "kr", v = "v", heads = 4, kv_heads = 1 },
  { out = "o", op = "linear", input = "a", weight = "o" },
  { out = "r", op = "add", inputs = ["x", "o"] },
  { out = "n2", op = "rms_norm", input = "r", weight = "n2", eps = 1e-5 },
  { out = "g", op = "linear", input = "n2", weight = "gate" },
  { out = "u", op = "linear", input = "n2", weight = "up" },
  { out = "h", op = "glu", gate = "g", up = "u", expr = "ACTIVATION(gate) * up" },
  { out = "d", op = "linear", input = "h", weight = "down" },
  { out = "y", op = "add", inputs = ["r", "d"] },
]
[layer.tensors]
n1 = { from = "{layer}.n1", shape = [256], format = "bf16" }
n2 = { from = "{layer}.n2", shape = [256], format = "bf16" }
q = { from = "{layer}.q", shape = [256, 256], format = "bf16" }
k = { from = "{layer}.k", shape = [64, 256], format = "bf16" }
v = { from = "{layer}.v", shape = [64, 256], format = "bf16" }
o = { from = "{layer}.o", shape = [256, 256], format = "bf16" }
gate = { from = "{layer}.gate", shape = [1024, 256], format = "bf16" }
up = { from = "{layer}.up", shape = [1024, 256], format = "bf16" }
down = { from = "{layer}.down", shape = [256, 1024], format = "bf16" }
[after]
node = [
  { out = "last", op = "select_rows", input = "x" },
  { out = "n", op = "rms_norm", input = "last", weight = "norm", eps = 1e-5 },
  { out = "logits", op = "logits", input = "n", weight = "unembed" },
]
"""

FUNCTION = """
name = "own"
doc = "GELU as a formula, by its tanh form"
[[function]]
name = "own"
doc = "GELU by its tanh form"
params = ["x"]
expr = "(0.5 * x) * (1 + tanh(0.7978845608 * (x + 0.044715 * ((x * x) * x))))"
"""


def main():
    kernmill, pairs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        specs = {}
        for activation in ["gelu", "own"]:
            specs[activation] = work / f"{activation}.toml"
            specs[activation].write_text(SPEC.replace("ACTIVATION", activation))
        (work / "function.toml").write_text(FUNCTION)
        subprocess.run([kernmill, "synth", specs["gelu"], "-o", work / "weights", "-q"], check=True)

        def more(activation):
            return ["--fused", work / "function.toml"] if activation == "own" else []

        def code(activation):
            command = [kernmill, "explain", specs[activation], *more(activation), "--emit", "asm", "-q"]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            # Maps are called after a hash of their definition.
            return sorted(re.sub(r"map_n(\d+)_[0-9a-f]{16}", r"map_n\1", function) for function in text.split("\n\n"))

        codes = [code("gelu"), code("own")]
        same = sum(a == b for a, b in zip(*codes))
        sizes = [sum(len(function.splitlines()) for function in one) for one in codes]
        print(f"machine code: {same} of {len(codes[0])} functions are the same; lines in all: {sizes[0]} and {sizes[1]}")

        def measure(activation):
            command = [kernmill, "bench", "--spec", specs[activation], "--weights", work / "weights", *more(activation)]
            command += ["--pp", "512", "--tg", "192", "--depth", "0", "--batch", "1", "--repeat", "9", "--threads", "2", "--json", "-q"]
            return figures(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))

        ratios = {}
        for pair in range(pairs):
            order = ["gelu", "own"] if pair % 2 == 0 else ["own", "gelu"]
            found = {activation: measure(activation) for activation in order}
            for what, built_in in found["gelu"].items():
                own = found["own"][what]
                ratios.setdefault(what, []).append(own / built_in)
                print(f"pair {pair + 1} {what}: built-in {built_in:.1f}, TOML {own:.1f} tokens/s, ratio {own / built_in:.3f}")
        for what, all_ratios in ratios.items():
            print(f"median of {pairs} pairs, {what}: {statistics.median(all_ratios):.3f}")


def figures(report):
    """Tokens per second by what was measured."""
    return {result["kind"]: max(result["runs"]) for result in report["results"]}


if __name__ == "__main__":
    main()
