"""Bits per byte of SmolLM2 on model-specs/nano/heldout.txt: by transformers in float32, and by kernmill in each preset.

    python tools/smollm2/bits.py MODEL.gguf KERNMILL [--presets exact faithful] [--chunks N]

KERNMILL is the program. As tools/nano does it: the text's tokens are cut into chunks of 512, each is evaluated from an empty context with
<|endoftext|> before it, and every token of a chunk is scored. The sum of -ln p, over ln 2, over the bytes of the text. With --chunks, the first
N only. Also prints the mean KL divergence from float32, in nats, over the same positions.
"""

import argparse
import json
import math
import subprocess
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("kernmill", type=Path)
    parser.add_argument("--presets", nargs="+", default=["exact", "faithful"])
    parser.add_argument("--chunks", type=int)
    args = parser.parse_args()
    file = File(args.model)
    pieces, size = chunks(file.tokenizer(), args.chunks)
    model = file.model()
    nats, kl = dict.fromkeys(["float32", *args.presets], 0.0), dict.fromkeys(args.presets, 0.0)
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        for preset in args.presets:
            subprocess.run(
                [args.kernmill, "compile", "--weights", args.model, "--preset", preset, "-o", scratch / f"{preset}.plan", "--quiet"],
                check=True,
            )
        for ids, scored in pieces:
            expected = logits(model, ids).log_softmax(dim=1)
            at = torch.tensor(scored)[:, None]
            nats["float32"] -= expected.gather(1, at).double().sum().item()
            for preset in args.presets:
                actual = by_kernmill(args.kernmill, scratch / f"{preset}.plan", ids, scratch).log_softmax(dim=1)
                nats[preset] -= actual.gather(1, at).double().sum().item()
                kl[preset] += (expected.exp() * (expected - actual)).double().sum().item()
    positions = sum(len(scored) for _, scored in pieces)
    print(f"{size} bytes, {positions} tokens")
    for name, value in nats.items():
        bits = value / math.log(2) / size
        more = 100 * (value / nats["float32"] - 1)
        print(f"{name:10} {bits:.4f} bits per byte ({more:+.2f} %)" + (f", mean KL {kl[name] / positions:.2e}" if name in kl else ""))


if __name__ == "__main__":
    main()
