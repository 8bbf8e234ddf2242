"""Prints, as JSON, how far the distributions of one logits file are from those of another: KL divergence in nats, argmax flips."""

import argparse
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file


def divergence(reference, logits) -> dict:
    """Both f32 [T, vocab]: of `logits` from `reference`, by position."""
    expected, actual = log_softmax(reference), log_softmax(logits)
    kl = (np.exp(expected) * (expected - actual)).sum(axis=1)  # [T]
    return {"positions": len(kl), "mean_kl": float(kl.mean()), "median_kl": float(np.median(kl)), "max_kl": float(kl.max()),
            "argmax_flips": int((reference.argmax(axis=1) != logits.argmax(axis=1)).sum())}


def log_softmax(logits):
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference", type=Path)
    parser.add_argument("logits", type=Path)
    parser.add_argument("--reference-name", default="logits", help="tensor of the reference file")
    args = parser.parse_args()
    print(json.dumps(divergence(load_file(args.reference)[args.reference_name], load_file(args.logits)["logits"])))


if __name__ == "__main__":
    main()
