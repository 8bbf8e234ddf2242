"""Compares SmolLM2's logits with the reference.

    python tools/smollm2/compare.py LOGITS.safetensors REFERENCE.safetensors [--max-difference X] [--max-kl X]

Both hold `logits` f32 [T, vocab]. Prints, over the positions, the largest absolute difference (maximum, median), the KL divergence of the
distribution from the reference's in nats (mean, maximum), and how many have another likeliest token. Fails when a limit is passed.
"""

import argparse
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file


def compare(actual, expected):
    largest = (actual.double() - expected.double()).abs().amax(dim=1)  # [T]
    ours, theirs = actual.double().log_softmax(dim=1), expected.double().log_softmax(dim=1)
    kl = (theirs.exp() * (theirs - ours)).sum(dim=1)  # [T]
    return {
        "positions": len(largest),
        "max_difference": largest.max().item(),
        "median_difference": largest.median().item(),
        "mean_kl": kl.mean().item(),
        "max_kl": kl.max().item(),
        "other_argmax": int((actual.argmax(dim=1) != expected.argmax(dim=1)).sum()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logits", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--max-difference", type=float, default=float("inf"))
    parser.add_argument("--max-kl", type=float, default=float("inf"), help="of the mean, in nats")
    args = parser.parse_args()
    actual, expected = load_file(args.logits)["logits"], load_file(args.reference)["logits"]
    if actual.shape != expected.shape:
        sys.exit(f"{args.logits} has shape {list(actual.shape)}, the reference {list(expected.shape)}")
    figures = compare(actual, expected)
    print(", ".join(f"{name} {value:.3e}" if isinstance(value, float) else f"{name} {value}" for name, value in figures.items()))
    if not (figures["max_difference"] <= args.max_difference and figures["mean_kl"] <= args.max_kl):
        sys.exit("a limit is passed")


if __name__ == "__main__":
    main()
