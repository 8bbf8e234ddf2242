"""What one LoRA costs llama.cpp: decoding from empty and a prompt, with it and without it in turn, in one process. Prints a JSON object.

Runs in the environment that `run` makes; `tools/gguf/write_lora.py` makes the LoRA's file. Weights are read and repacked, flash attention is on,
which is llama.cpp's best here.
"""

import argparse
import json
import statistics
from pathlib import Path

import llama_engine as engine
from llama_engine import Run, random_ids
from llama_worker import warm_up


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--lora", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=7, help="of decoding")
    parser.add_argument("--prompt-pairs", type=int, default=3)
    parser.add_argument("--tg", type=int, default=32)
    parser.add_argument("--pp", type=int, default=512)
    args = parser.parse_args()
    model = engine.Model(args.model, "read", True, args.threads)
    adapter = model.adapter(args.lora)
    report = {"engine": "llama.cpp", "threads": args.threads, "system": engine.system_info()}
    with model.context(args.tg + 64, True) as context:
        text = lambda pair: [random_ids(pair, args.tg, model.vocab)]
        report["decode"] = pairs(context, adapter, args.pairs, args.tg, lambda pair: context.decode(text(pair), 0))
    with model.context(args.pp, True) as context:
        text = lambda pair: random_ids(pair, args.pp, model.vocab)
        report["prompt"] = pairs(context, adapter, args.prompt_pairs, args.pp, lambda pair: context.prompt(text(pair)))
    print(json.dumps(report, indent=1))


def pairs(context, adapter, count, tokens, work):
    """Tokens per second of every run; the one that goes first changes from pair to pair."""
    for warm in (None, adapter):
        context.use(warm)
        warm_up(context, 0)
    rates = {"without": [], "with": []}
    for pair in range(count):
        for name in ("without", "with") if pair % 2 == 0 else ("with", "without"):
            context.use(adapter if name == "with" else None)
            context.clear()
            with Run() as run:
                work(pair)
            rates[name].append(tokens / run.seconds)
    ratios = [on / off for on, off in zip(rates["with"], rates["without"])]
    return rates | {"ratio": statistics.median(ratios)}


if __name__ == "__main__":
    main()
