"""Bits per byte of SmolLM2 on model-specs/nano/heldout.txt: by transformers in float32, and by kernmill in each preset.

    python tools/smollm2/bits.py MODEL.gguf KERNMILL [--presets exact faithful] [--chunks N] [--record FILE]

KERNMILL is the program. As tools/nano does it: the text's tokens are cut into chunks of 512, each is evaluated from an empty context with
<|endoftext|> before it, and every token of a chunk is scored. The sum of -ln p, over ln 2, over the bytes of the text. With --chunks, the first
N only. Also prints the mean KL divergence from float32, in nats, over the same positions.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file

from reference import TEXT, File, logits

CHUNK, START = 512, "<|endoftext|>"


def chunks(tokenizer, count):
    """Input and scored tokens of each chunk, and the bytes that they stand for."""
    ids = tokenizer.encode(TEXT.read_text()).ids
    start = tokenizer.token_to_id(START)
    pieces = [ids[at : at + CHUNK] for at in range(0, len(ids), CHUNK)][:count]
    size = len(tokenizer.decode([number for piece in pieces for number in piece], skip_special_tokens=False).encode())
    return [([start, *piece[:-1]], piece) for piece in pieces], size


def by_kernmill(program, plan, ids, scratch):
    (scratch / "ids.json").write_text(json.dumps(ids))
    command = [program, "logits", plan, "--tokens", scratch / "ids.json", "--out", scratch / "logits.safetensors", "--quiet"]
    subprocess.run(command, check=True)
    return load_file(scratch / "logits.safetensors")["logits"]


class Record:
    """Sums of each chunk, as lines of a JSON file: what a run that was cut off has done already."""

    def __init__(self, path, key):
        self.path, self.key, self.sums = path, key, []
        if path and path.exists():
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            if lines and lines[0] != key:
                raise SystemExit(f"{path} is the record of {lines[0]}, and this is {key}")
            self.sums = lines[1:]
        elif path:
            path.write_text(json.dumps(key) + "\n")

    def add(self, sums):
        self.sums.append(sums)
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps(sums) + "\n")


def measure(model, by_preset, ids, scored):
    """Of a chunk: its positions, -ln p of its tokens in all (`nats`), and the KL divergence from float32 (`kl`), by preset."""
    expected = logits(model, ids).log_softmax(dim=1)
    at = torch.tensor(scored)[:, None]
    loss = lambda logp: -logp.gather(1, at).double().sum().item()
    sums = {"positions": len(scored), "nats": {"float32": loss(expected)}, "kl": {}}
    for preset, evaluate in by_preset.items():
        actual = evaluate(ids).log_softmax(dim=1)
        sums["nats"][preset] = loss(actual)
        sums["kl"][preset] = (expected.exp() * (expected - actual)).sum(dim=1).double().sum().item()
    return sums


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("kernmill", type=Path)
    parser.add_argument("--presets", nargs="+", default=["exact", "faithful"])
    parser.add_argument("--chunks", type=int)
    parser.add_argument("--record", type=Path, help="JSON file of each chunk's sums; a later run goes on from there")
    args = parser.parse_args()
    file = File(args.model)
    pieces, size = chunks(file.tokenizer(), args.chunks)
    model = file.model()
    record = Record(args.record, {"model": args.model.name, "presets": args.presets})
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        by_preset = {}
        for preset in args.presets:
            plan = scratch / f"{preset}.plan"
            command = [args.kernmill, "compile", "--weights", args.model, "--preset", preset, "-o", plan, "--quiet"]
            subprocess.run(command, check=True)
            by_preset[preset] = lambda ids, plan=plan: by_kernmill(args.kernmill, plan, ids, scratch)
        for ids, scored in pieces[len(record.sums) :]:
            record.add(measure(model, by_preset, ids, scored))
            print(f"{len(record.sums)} of {len(pieces)} chunks", file=sys.stderr)
    sums = record.sums[: len(pieces)]
    total = lambda kind, name: sum(chunk[kind][name] for chunk in sums)
    positions = sum(chunk["positions"] for chunk in sums)
    print(f"{size} bytes, {positions} tokens")
    for name in ["float32", *args.presets]:
        bits = total("nats", name) / math.log(2) / size
        more = 100 * (total("nats", name) / total("nats", "float32") - 1)
        divergence = f", mean KL {total('kl', name) / positions:.2e}" if name in args.presets else ""
        print(f"{name:10} {bits:.4f} bits per byte ({more:+.2f} %){divergence}")


if __name__ == "__main__":
    main()
