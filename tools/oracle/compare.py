"""Compares logits with an oracle file.

    python tools/oracle/compare.py LOGITS.safetensors NAME/oracle.safetensors [--json]

LOGITS holds `logits` f32 [T, vocab], as `kernmill logits` writes it. Against each reference of the oracle (float32 and the
faithful simulation): median, 95th percentile and maximum over positions of the position's largest absolute difference, mean
and largest KL divergence in nats of the position's distribution from the reference's, and how many positions have another argmax.
"""

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file

REFERENCES = {"float32": "logits", "faithful": "faithful_logits"}


def compare(logits: torch.Tensor, reference: torch.Tensor) -> dict:
    """Both f32 [T, vocab] -> figures; `per_position` is the largest absolute difference at each position."""
    if logits.shape != reference.shape:
        raise SystemExit(f"logits have shape {tuple(logits.shape)}, the oracle has {tuple(reference.shape)}")
    per_position = (logits.double() - reference.double()).abs().amax(dim=1)  # [T]
    ours, theirs = logits.double().log_softmax(dim=1), reference.double().log_softmax(dim=1)
    kl = (theirs.exp() * (theirs - ours)).sum(dim=1)  # [T]
    flips = (logits.argmax(dim=1) != reference.argmax(dim=1)).sum()
    return {
        "positions": len(per_position),
        "median_diff": per_position.quantile(0.5).item(),
        "p95_diff": per_position.quantile(0.95).item(),
        "max_diff": per_position.max().item(),
        "mean_kl": kl.mean().item(),
        "max_kl": kl.max().item(),
        "argmax_flips": int(flips),
        "per_position": per_position.tolist(),
    }


def table(figures: dict[str, dict]) -> str:
    """Rows by name, without the per-position figures."""
    lines = [f"{'against':20} {'median':>9} {'p95':>9} {'max':>9} {'mean KL':>9} {'max KL':>9} {'flips':>10}"]
    for name, f in figures.items():
        lines.append(
            f"{name:20} {f['median_diff']:9.2e} {f['p95_diff']:9.2e} {f['max_diff']:9.2e} "
            f"{f['mean_kl']:9.2e} {f['max_kl']:9.2e} {f['argmax_flips']:4} /{f['positions']:4}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logits", type=Path)
    parser.add_argument("oracle", type=Path)
    parser.add_argument("--json", action="store_true", help="print JSON, with the difference at every position")
    parser.add_argument("--max-kl", type=float, help="fail when the mean KL to float32 is above this (nats)")
    parser.add_argument("--max-p95", type=float, help="fail when the 95th percentile against the faithful simulation is above this")
    args = parser.parse_args()
    logits, oracle = load_file(args.logits)["logits"].float(), load_file(args.oracle)
    figures = {name: compare(logits, oracle[key]) for name, key in REFERENCES.items()}
    print(json.dumps(figures) if args.json else table(figures))
    if args.max_kl is not None and not figures["float32"]["mean_kl"] <= args.max_kl:
        raise SystemExit(f"mean KL to float32 is above {args.max_kl}")
    if args.max_p95 is not None and not figures["faithful"]["p95_diff"] <= args.max_p95:
        raise SystemExit(f"95th percentile against the faithful simulation is above {args.max_p95}")


if __name__ == "__main__":
    main()
