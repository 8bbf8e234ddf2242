"""Medians, quartiles and ratios of a record, as a table and as JSON. Needs nothing but Python."""

import json
import statistics
from dataclasses import dataclass

import engines
from engines import Figure
from plan import Config, Plan, Workload


@dataclass
class Pair:
    ours: Figure
    theirs: Figure

    @property
    def ratio(self) -> float:
        return self.ours.tokens_per_second / self.theirs.tokens_per_second


def write(plan: Plan, best: dict[Workload, Config]) -> str:
    """Writes summary.json and summary.md and returns the latter."""
    reports = {path.stem: json.loads(path.read_text()) for path in sorted((plan.out / "pairs").glob("*.json")) if ".void-" not in path.name}
    works = {work: summary(pairs_of(work, best[work], reports), best[work]) for work in plan.workloads}
    memory = {engine: max((peak(report) for name, report in reports.items() if f"-{engine}" in name), default=0)
              for engine in ("kernmill", "llama")}
    voided = len(list(plan.out.glob("*/*.void-*.json")))
    between_reads = paired(plan)
    whole = {"preset": plan.preset, "threads": plan.threads, "tg": plan.tg, "void_processes": voided, "peak_resident_bytes": memory,
             "workloads": {str(work): figures for work, figures in works.items()}, "paired": between_reads}
    (plan.out / "summary.json").write_text(json.dumps(whole, indent=1) + "\n")
    text = markdown(plan, whole, sweep_table(plan))
    (plan.out / "summary.md").write_text(text)
    return text


def pairs_of(work: Workload, config: Config, reports: dict) -> list[Pair]:
    """The rounds in which both engines have a valid figure."""
    ours, theirs = {}, {}
    for name, report in reports.items():
        round_number, engine = name.split("-")[:2]  # stages.py names the files
        if engine == "kernmill":
            found = engines.kernmill_figures(report)
            side, wanted = ours, work
        else:
            found = engines.llama_figures(report)
            side, wanted = theirs, (work, config)
        side |= {round_number: figure for key, figure in found if key == wanted and not figure.void}
    return [Pair(ours[number], theirs[number]) for number in sorted(ours.keys() & theirs.keys())]


def summary(pairs: list[Pair], config: Config) -> dict:
    shares = [100 * pair.ours.of_bound for pair in pairs if pair.ours.of_bound]
    return {
        "pairs": len(pairs),
        "kernmill": spread([pair.ours.tokens_per_second for pair in pairs]),
        "llama.cpp": spread([pair.theirs.tokens_per_second for pair in pairs]),
        "ratio": spread([pair.ratio for pair in pairs]),
        "percent_of_bound": spread(shares),
        "llama.cpp_config": vars(config),
    }


def spread(values: list[float]) -> dict | None:
    """Median and quartiles, and all of the values."""
    if not values:
        return None
    first, median, third = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return {"median": median, "q1": first, "q3": third, "values": values}


def paired(plan: Plan) -> list[dict]:
    """Of every round with both engines: each one's decoding set against reads of as many bytes."""
    rounds = []
    for ours in sorted((plan.out / "paired").glob("*-kernmill.json")):
        theirs = ours.with_name(ours.name.replace("kernmill", "llama"))
        if theirs.exists():
            both = {"kernmill": ours, "llama.cpp": theirs}
            rounds.append({engine: vars(engines.paired_of(json.loads(path.read_text()))) for engine, path in both.items()})
    return rounds


def peak(report: dict) -> int:
    return report.get("peak_resident") or (report.get("memory") or {}).get("peak_rss_bytes") or 0


def sweep_table(plan: Plan) -> dict[Config, dict[Workload, float]]:
    table = {}
    for path in sorted((plan.out / "sweep").glob("*.json")):
        if path.name.startswith("prefill-") or ".void-" in path.name:
            continue
        for (work, config), figure in engines.llama_figures(json.loads(path.read_text())):
            table.setdefault(config, {})[work] = figure.tokens_per_second
    return table


def markdown(plan: Plan, whole: dict, sweep: dict) -> str:
    lines = [
        f"# {plan.spec.stem}: kernmill ({plan.preset}) against llama.cpp, {plan.threads} threads",
        "",
        "Tokens/s: median [quartiles]. The ratio is the median of the pairs' ratios. The bound is what the memory bandwidth and the "
        "integer peak that kernmill measures in the same process allow.",
        "",
        "| workload | pairs | kernmill | llama.cpp | ratio | kernmill of bound | llama.cpp at its best |",
        "|---|---|---|---|---|---|---|",
    ]
    for work, figures in whole["workloads"].items():
        lines.append(f"| {work} | {figures['pairs']} | {cell(figures['kernmill'])} | {cell(figures['llama.cpp'])} | "
                     f"{cell(figures['ratio'])} | {cell(figures['percent_of_bound'], '%')} | {Config(**figures['llama.cpp_config'])} |")
    memory = whole["peak_resident_bytes"]
    lines += ["", f"Peak resident memory: kernmill {memory['kernmill'] / 1e9:.2f} GB, llama.cpp {memory['llama'] / 1e9:.2f} GB. "
                  f"Void processes, run again: {whole['void_processes']}."]
    if whole["paired"]:
        lines += ["", "Decoding from empty, a read's time over a step's that reads as many bytes (median of each round's pairs, with its interval "
                      "of 95 %), and the reads' rate in GB/s:", "",
                  "| round | kernmill | its reads | llama.cpp | its reads | ratio |", "|---|---|---|---|---|---|"]
        for number, both in enumerate(whole["paired"], 1):
            cells = [f"{one['ratio']:.3f} [{one['low']:.3f}, {one['high']:.3f}] | {one['read_gb_per_s']:.1f}" for one in both.values()]
            lines.append(f"| {number} | {' | '.join(cells)} | {both['kernmill']['ratio'] / both['llama.cpp']['ratio']:.2f} |")
        medians = [statistics.median(both[engine]["ratio"] for both in whole["paired"]) for engine in ("kernmill", "llama.cpp")]
        lines.append(f"| median | {medians[0]:.3f} | | {medians[1]:.3f} | | {medians[0] / medians[1]:.2f} |")
    if sweep:
        lines += ["", "The sweep that chose llama.cpp's best, tokens/s, one measurement each (flash attention off only where on was fastest):", "",
                  "| llama.cpp | " + " | ".join(map(str, plan.workloads)) + " |", "|---|" + "---|" * len(plan.workloads)]
        for config, row in sweep.items():
            lines.append(f"| {config} | " + " | ".join(f"{row[work]:.2f}" if work in row else "" for work in plan.workloads) + " |")
    return "\n".join(lines) + "\n"


def cell(spread: dict | None, unit: str = "") -> str:
    if not spread:
        return ""
    return f"{spread['median']:.2f}{unit} [{spread['q1']:.2f}, {spread['q3']:.2f}]"
