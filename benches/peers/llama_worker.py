"""One round of llama.cpp: loads the model once, runs the workloads, and writes a JSON object. Started by `run`, in its environment.

A workload is `prompt:TOKENS`, `decode:DEPTH` or `batch:SEQUENCES`. The JSON file is written anew after every measurement.
"""

import argparse
import json
import time
from pathlib import Path

import llama_engine as engine
from llama_engine import Run, random_ids

WARM_UPS = 2  # unmeasured generations before a workload, each of these prompt and decoded tokens
WARM_PROMPT, WARM_DECODE = 32, 8
PREFILL_STEP = 256  # a saved sequence whose length is a multiple of this can be gone on from
ATTEMPTS = 3  # a void measurement is repeated, this often in all
CLOCK = 0.1  # seconds; processor time is counted in hundredths, per core


def warm_up(context, seed):
    vocab = context.model.vocab
    for generation in range(WARM_UPS):
        context.clear()
        context.prompt(random_ids(seed + generation, WARM_PROMPT, vocab))
        context.decode([random_ids(seed + 7 + generation, WARM_DECODE, vocab)], WARM_PROMPT)
    context.clear()


def prompt(model, args, flash, tokens, seed):
    with model.context(tokens, flash) as context:
        warm_up(context, seed)
        for repeat in range(args.repeat):
            ids = random_ids(seed + 100 + repeat, tokens, model.vocab)
            yield from measured(args, tokens, context.clear, lambda: context.prompt(ids))


def decode(model, args, flash, depth, seed):
    state = state_file(model, args, flash, depth)
    with model.context(depth + args.tg, flash) as context:
        warm_up(context, seed)
        if depth and not state.exists():
            prefill(model, args, flash, depth, context)
            context.save(state)
        before = (lambda: context.restore(state)) if depth else context.clear
        for repeat in range(args.repeat):
            ids = random_ids(seed + 200 + repeat, args.tg, model.vocab)
            yield from measured(args, args.tg, before, lambda: context.decode([ids], depth))


def prefill(model, args, flash, depth, context):
    """Runs the first `depth` tokens of one fixed text, on from the longest part of it that an earlier process has saved."""
    start = max((d for d in range(PREFILL_STEP, depth, PREFILL_STEP) if state_file(model, args, flash, d).exists()), default=0)
    if start:
        context.restore(state_file(model, args, flash, start))
    context.prompt(random_ids(0, depth, model.vocab)[start:], start)


def batch(model, args, flash, sequences, seed):
    with model.context(args.tg, flash, sequences) as context:
        warm_up(context, seed)
        for repeat in range(args.repeat):
            streams = [random_ids(seed + 300 + 10 * repeat + s, args.tg, model.vocab) for s in range(sequences)]
            yield from measured(args, args.tg * sequences, context.clear, lambda: context.decode(streams, 0))


def measured(args, tokens, before, work):
    """Runs until nothing spoils it; every attempt is recorded."""
    for _ in range(ATTEMPTS):
        before()
        with Run() as run:
            work()
        allowed = max(args.foreign * args.threads * run.seconds, CLOCK)
        void = f"{run.major_faults} major page faults" if run.major_faults else ""
        if run.foreign_seconds > allowed:
            void = f"other processes took {run.foreign_seconds:.2f} of {args.threads} x {run.seconds:.2f} processor seconds"
        yield {"tokens_per_second": tokens / run.seconds, "seconds": run.seconds, "major_faults": run.major_faults,
               "foreign_seconds": run.foreign_seconds, "void": void}
        if not void:
            return


def state_file(model, args, flash, depth):
    stat = args.model.stat()
    return args.state / f"{args.model.stem}-{stat.st_size}-{int(stat.st_mtime)}-{depth}-{'flash' if flash else 'plain'}.state"


KINDS = {"prompt": prompt, "decode": decode, "batch": batch}


def arguments(description):
    """What every run of llama.cpp is asked for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--load", choices=engine.LOAD_MODES, default="mmap")
    parser.add_argument("--repack", choices=["on", "off"], default="on")
    parser.add_argument("--flash", choices=["on", "off"], default="on")
    parser.add_argument("--threads", type=int, default=2)
    return parser


def main():
    parser = arguments(__doc__)
    parser.add_argument("--work", nargs="+", required=True, metavar="KIND:N[@on|@off]", help="with a flash attention of its own")
    parser.add_argument("--tg", type=int, default=32, help="tokens decoded per sequence")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--foreign", type=float, default=0.05, help="void above this share of the threads' time in other processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, required=True, help="directory of the sequences of decode:DEPTH, made when missing")
    args = parser.parse_args()
    args.state.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    model = engine.Model(args.model, args.load, args.repack == "on", args.threads)
    report = {"engine": "llama.cpp", "load": args.load, "repack": args.repack, "threads": args.threads, "seed": args.seed,
              "load_seconds": time.perf_counter() - start, "buffers": model.buffers(), "system": engine.system_info(), "results": []}
    for work in args.work:
        name, _, own = work.partition("@")
        flash = own or args.flash
        kind, number = name.split(":")
        result = {"work": name, "flash": flash, "runs": []}
        report["results"].append(result)
        for run in KINDS[kind](model, args, flash == "on", int(number), args.seed * 1000):
            result["runs"].append(run)
            report["peak_resident"] = engine.peak_resident()
            write(args.out, report)


def write(path, report):
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(report, indent=1) + "\n")
    partial.rename(path)


if __name__ == "__main__":
    main()
