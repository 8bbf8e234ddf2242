"""Writes llama.cpp's logits after every token of a sequence: "logits" [T, vocab] f32, as `kernmill logits` does."""

import argparse
import json
from pathlib import Path

from safetensors.numpy import save_file

import llama_engine as engine


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="GGUF file")
    parser.add_argument("--tokens", type=Path, required=True, help="JSON array of ids")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--load", choices=engine.LOAD_MODES, default="mmap")
    parser.add_argument("--repack", choices=["on", "off"], default="on")
    parser.add_argument("--flash", choices=["on", "off"], default="on")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    ids = json.loads(args.tokens.read_text())
    model = engine.Model(args.model, args.load, args.repack == "on", args.threads)
    with model.context(len(ids), args.flash == "on") as context:
        save_file({"logits": context.logits(ids)}, args.out)


if __name__ == "__main__":
    main()
