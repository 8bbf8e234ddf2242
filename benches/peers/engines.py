"""The two engines as processes: their commands, and what their JSON says. Needs nothing but Python."""

import json
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from plan import Config, Failure, Plan, Workload

ATTEMPTS = 3  # a process with a void figure is run again, this often in all
KERNMILL_RUNS = 2  # of which the last counts: with the one that `kernmill bench` makes before them, two are not measured


@dataclass(frozen=True)
class Figure:
    """Tokens per second of one workload in one process; several measurements are represented by their median."""

    tokens_per_second: float
    void: str = ""  # why it does not count
    of_bound: float | None = None  # share of what memory and arithmetic allow, by the engine's own account in the same process


# --- llama.cpp


def llama(plan: Plan, out: Path, load: str, repack: str, work: list[str], seed: int) -> dict:
    """One process; each workload names its flash attention after an `@`."""
    command = [plan.python, plan.here / "llama_worker.py", "--model", plan.gguf, "--out", "{out}", "--load", load, "--repack", repack,
               "--threads", plan.threads, "--tg", plan.tg, "--seed", seed, "--foreign", plan.foreign, "--state",
               plan.states, "--work", *work]
    return measure(plan, command, out, lambda report: [figure for _, figure in llama_figures(report)])


def llama_figures(report: dict) -> list[tuple[tuple[Workload, Config], Figure]]:
    figures = []
    for result in report["results"]:
        runs = result["runs"]
        valid = [run["tokens_per_second"] for run in runs if not run["void"]]
        key = (Workload.parse(result["work"]), Config(report["load"], report["repack"], result["flash"]))
        if valid:
            figures.append((key, Figure(statistics.median(valid))))
        else:
            figures.append((key, Figure(runs[-1]["tokens_per_second"], void=runs[-1]["void"])))
    return figures


# --- kernmill


def kernmill(plan: Plan, out: Path, prompts: list[int], depth: int, batches: list[int]) -> dict:
    """One process of `kernmill bench`."""
    command = [plan.kernmill, "bench", "--json", "--quiet", *kernmill_model(plan), "--threads", plan.threads,
               "--pp", joined(prompts or [0]), "--tg", plan.tg, "--depth", depth, "--batch", joined(batches),
               "--repeat", KERNMILL_RUNS]
    return measure(plan, command, out, lambda report: [figure for _, figure in kernmill_figures(report)])


def kernmill_model(plan: Plan) -> list:
    model = ["--preset", plan.preset]
    if plan.kernmill_weights == "gguf":
        return [*model, "--weights", plan.gguf]
    return [*model, "--spec", plan.spec, "--weights", plan.checkpoint]


def kernmill_figures(report: dict) -> list[tuple[Workload, Figure]]:
    """Of the last run of every workload."""
    bandwidth = report["bandwidth"]["gb_per_s"]
    figures = []
    for result in report["results"]:
        if result["kind"] == "prompt":
            work = Workload("prompt", result["tokens"])
        elif result["batch"] > 1:
            work = Workload("batch", result["batch"])
        else:
            work = Workload("decode", result["depth"])
        rate, faults = result["runs"][-1], result["major_faults"][-1]
        read = rate * result["bytes_per_token"] / 1e9
        void = f"{faults} major page faults" if faults else ""
        if read > bandwidth and report["bandwidth"]["memory"] != "buffer":  # a small model stays in the caches
            void = f"{read:.1f} GB/s read where {bandwidth:.1f} were measured to be possible"
        # By memory or by arithmetic, whichever is slower.
        bound = result["median"] / result["percent_of_bound"] * 100 if result.get("percent_of_bound") else None
        figures.append((work, Figure(rate, void, rate / bound if bound else None)))
    return figures


def joined(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


# --- steps between reads


LEAST_VALID = 50  # percent of the steps that must count


@dataclass(frozen=True)
class Paired:
    """Steps of decoding set against reads of as many bytes in sequence, right before and behind them."""

    ratio: float  # a read's time over a step's
    low: float
    high: float
    tokens_per_second: float
    read_gb_per_s: float
    valid_percent: float

    @property
    def void(self) -> str:
        return "" if self.valid_percent >= LEAST_VALID else f"{self.valid_percent:.0f} % of the steps count, expected {LEAST_VALID}"


def kernmill_paired(plan: Plan, out: Path) -> tuple[Paired, int]:
    """Also the bytes that a step reads."""
    command = [plan.kernmill, "bench", "--json", "--quiet", *kernmill_model(plan), "--threads", plan.threads, "--paired", "--units", plan.units]
    report = measure(plan, command, out, lambda report: [paired_of(report)])
    return paired_of(report), report["results"][0]["bytes"]


def llama_paired(plan: Plan, out: Path, config: Config, size: int, seed: int) -> Paired:
    command = [plan.python, plan.here / "llama_paired.py", "--model", plan.gguf, "--out", "{out}", "--load", config.load, "--repack",
               config.repack, "--flash", config.flash, "--threads", plan.threads, "--bytes", size, "--units", plan.units, "--seed", seed]
    return paired_of(measure(plan, command, out, lambda report: [paired_of(report)]))


def paired_of(report: dict) -> Paired:
    """Of either engine's report. kernmill sets steps against replays, and these against sequences."""
    if report.get("engine") == "llama.cpp":
        ratio, scale, rate = report["ratio_to_sequential"], 1, report["sequential_gb_per_s"]
    else:
        report = report["results"][0]
        ratio, scale, rate = report["ratio"], report["replay_of_sequential"], report["sequential_gb_per_s"]["median"]
    low, median, high = (ratio[name] * scale for name in ("low", "median", "high")) if ratio else (0, 0, 0)
    return Paired(median, low, high, report["tokens_per_second"], rate, report["valid_percent"])


# --- processes


def measure(plan: Plan, command: list, out: Path, figures) -> dict:
    """The JSON report of a process, which is kept in `out`; what is there already is not run again.

    The process writes the file in the place of `{out}`, or else to standard output. A report with a void figure is kept under another
    name and the process run again.
    """
    if out.exists():
        return json.loads(out.read_text())
    out.parent.mkdir(parents=True, exist_ok=True)
    writing = out.with_name(out.name + ".running")
    for attempt in range(1, ATTEMPTS + 1):
        filled = [*plan.wrap, *(str(writing) if word == "{out}" else str(word) for word in command)]
        note(plan, filled[len(plan.wrap):], out)
        start = time.monotonic()
        process = subprocess.run(filled, capture_output=True, text=True)
        if process.returncode:
            raise Failure(f"{' '.join(filled)}\nreturned {process.returncode}:\n{process.stderr[-2000:]}")
        report = json.loads(writing.read_text() if "{out}" in command else process.stdout)
        reasons = sorted({figure.void for figure in figures(report) if figure.void})
        kept = out.with_name(f"{out.stem}.void-{attempt}.json") if reasons else out
        writing.write_text(json.dumps(report, indent=1) + "\n")
        writing.rename(kept)
        print(f"   {kept.relative_to(plan.out)}  {time.monotonic() - start:.0f} s  {'; '.join(reasons)}", flush=True)
        time.sleep(plan.pause)
        if not reasons:
            return report
    raise Failure(f"{out.name}: void {ATTEMPTS} times, the last time for: {'; '.join(reasons)}")


def note(plan: Plan, command: list[str], out: Path) -> None:
    """Adds to OUT/commands.txt, with names in the place of this machine's paths."""
    plan.out.mkdir(parents=True, exist_ok=True)
    text = " ".join(command)
    for path, name in [(plan.out, "OUT"), (plan.gguf, "GGUF"), (plan.checkpoint, "CHECKPOINT"), (plan.kernmill, "kernmill"),
                       (plan.python, "python"), (plan.work, "WORK"), (plan.here.parents[1], ".")]:
        text = text.replace(str(path), name)
    with open(plan.out / "commands.txt", "a") as file:
        file.write(f"{out.relative_to(plan.out)}: {text}\n")
