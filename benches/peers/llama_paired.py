"""Steps of llama.cpp's decoding between reads of as many bytes in sequence, as `kernmill bench --paired` has them. Started by `run`, in
its environment.

Writes a JSON object: the median of the reads' time over the steps', with its interval of 95 %, and what it comes from. The reads decide
which steps count, never the steps: both reads around a step take the same time within 10 %, others get less than 2 % of the processors
meanwhile, and no page comes from disk.
"""

import ctypes
import mmap
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import llama_engine as engine
from llama_engine import Run, random_ids
from llama_worker import arguments, warm_up, write

WAYS = [(places, ahead) for places in (1, 2, 4, 8) for ahead in (0, 1024, 4096, 8192)]
TRIES = 3  # of every way, before anything is measured
APART, FOREIGN = 1.10, 0.02
BLOCK, BOOTSTRAPS = 16, 2000
DEEPEST = 64  # tokens before a sequence begins anew
TICK = 0.01  # seconds; the clock of foreign time is this coarse


class Reader:
    """Memory of its own, on huge pages where there are any, and the fastest way to read it."""

    def __init__(self, size: int, threads: int):
        self.size, self.threads = size, threads
        self._memory = mmap.mmap(-1, size)
        self._memory.madvise(mmap.MADV_HUGEPAGE)
        page = random.Random(0).randbytes(mmap.PAGESIZE)
        for at in range(0, size - mmap.PAGESIZE + 1, mmap.PAGESIZE):
            self._memory[at : at + mmap.PAGESIZE] = page
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._read = compiled().read_all
        self._read.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_size_t]
        times = {way: [] for way in WAYS}
        for _ in range(TRIES):
            for way, seconds in times.items():
                seconds.append(self.seconds(way))
        self.way = min(times, key=lambda way: statistics.median(times[way]))

    def seconds(self, way=None) -> float:
        start = time.perf_counter()
        if error := self._read(self._address, self.size, self.threads, *(way or self.way)):
            raise SystemExit(f"reads.c makes no {self.threads} threads: error {error}")
        return time.perf_counter() - start


def compiled() -> ctypes.CDLL:
    """reads.c, compiled for this CPU."""
    source = Path(__file__).with_name("reads.c")
    with tempfile.TemporaryDirectory() as directory:
        library = Path(directory) / "reads.so"
        command = ["cc", "-O3", "-march=native", "-shared", "-fPIC", "-pthread", "-o", str(library), str(source)]
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode:
            raise SystemExit(f"{source} does not compile:\n{process.stderr[-2000:]}")
        return ctypes.CDLL(str(library))


def order(units: int, source: random.Random) -> list[str]:
    """Reads around two steps, or two steps around reads, by a coin; a read first and last."""
    blocks = [source.choice((["read", "step", "step", "read"], ["step", "read", "read", "step"])) for _ in range(-(-units // 2))]
    return ["read", *(unit for block in blocks for unit in block), "read"]


def measure(context, reader: Reader, units: int, threads: int, seed: int) -> list[dict]:
    """Every unit in its order, with its seconds and what disturbed it."""
    source, samples, depth = random.Random(seed), [], DEEPEST
    for unit in order(units, source):
        if unit == "step" and depth == DEEPEST:
            context.clear()
            ids, depth = random_ids(source.randrange(1 << 30), DEEPEST, context.model.vocab), 0
        with Run() as run:
            if unit == "read":
                reader.seconds()
            else:
                context.decode([[ids[depth]]], depth)
                depth += 1
        samples.append({"unit": unit, "seconds": run.seconds, "foreign": run.foreign_seconds, "faults": run.major_faults})
    return samples


def ratios(samples: list[dict], threads: int) -> tuple[list[float], int]:
    """Reads' seconds over steps', of the steps that count, in order; and how many steps there were."""
    found, steps = [], 0
    for at, sample in enumerate(samples):
        if sample["unit"] != "step":
            continue
        steps += 1
        before = next(i for i in range(at, -1, -1) if samples[i]["unit"] == "read")
        behind = next(i for i in range(at, len(samples)) if samples[i]["unit"] == "read")
        first, last = samples[before]["seconds"], samples[behind]["seconds"]
        between = samples[before : behind + 1]
        seconds = sum(one["seconds"] for one in between)
        disturbed = sum(one["foreign"] for one in between) > max(FOREIGN * threads * seconds, TICK * len(between))
        if max(first, last) <= APART * min(first, last) and not disturbed and not any(one["faults"] for one in between):
            found.append((first * last) ** 0.5 / sample["seconds"])
    return found, steps


def estimate(values: list[float]) -> dict | None:
    """The median, and the interval that 95 % of the medians of moving blocks lie in."""
    if not values:
        return None
    source, count, length = random.Random(0), len(values), min(BLOCK, len(values))
    medians = []
    for _ in range(BOOTSTRAPS):
        starts = [source.randrange(count - length + 1) for _ in range(-(-count // length))]
        medians.append(statistics.median([value for start in starts for value in values[start : start + length]][:count]))
    medians.sort()
    return {"median": statistics.median(values), "low": medians[int(0.025 * BOOTSTRAPS)], "high": medians[int(0.975 * BOOTSTRAPS)],
            "pairs": count}


def main():
    parser = arguments(__doc__)
    parser.add_argument("--bytes", type=int, required=True, help="bytes of a read: those that a token's weights have")
    parser.add_argument("--units", type=int, default=100, help="steps")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    model = engine.Model(args.model, args.load, args.repack == "on", args.threads)
    reader = Reader(args.bytes, args.threads)
    with model.context(DEEPEST, args.flash == "on") as context:
        warm_up(context, args.seed)
        samples = measure(context, reader, args.units, args.threads, args.seed)
    values, steps = ratios(samples, args.threads)
    median = {unit: statistics.median(one["seconds"] for one in samples if one["unit"] == unit) for unit in ("read", "step")}
    write(args.out, {
        "engine": "llama.cpp", "load": args.load, "repack": args.repack, "flash": args.flash, "threads": args.threads,
        "bytes": args.bytes, "reads": dict(zip(("places", "ahead"), reader.way)), "sequential_gb_per_s": args.bytes / median["read"] / 1e9,
        "tokens_per_second": 1 / median["step"], "ratio_to_sequential": estimate(values), "valid_percent": 100 * len(values) / steps,
        "peak_resident": engine.peak_resident(), "system": engine.system_info()})


if __name__ == "__main__":
    main()
