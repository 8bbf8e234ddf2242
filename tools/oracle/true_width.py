"""Makes a two-layer checkpoint of GPT-OSS-20B's true widths, its float32 logits and the faithful simulation's.

    python tools/oracle/true_width.py OUT [--seeds 0 1 ...] [--tokens 256] [--vocab 4096] [--layers 2] [--branch-gain 0.4]

One directory OUT/seed-N per seed with config.json, one safetensors shard per layer and one for the rest, an index,
oracle.safetensors (tokens, logits, faithful_logits) and tokens.json. About 1 GB of disk per seed; layers are made and run
one at a time in less than 6 GB of memory.
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

import torch

import random_weights
from checkpoint import Checkpoint, write_config, write_oracle, write_shards
from compare import compare, table
from faithful import Simulation
from make_checkpoints import Recipe, config_of, yarn
from reference import float32_logits_streamed


def recipe_of(seed: int, tokens: int, vocab: int, layers: int, branch_gain: float) -> Recipe:
    return Recipe(f"seed-{seed}", seed=seed, prompt=tokens, hidden=2880, ff=2880, layers=layers, heads=64, kv_heads=8,
                  head_dim=64, vocab=vocab, rope=yarn(32.0, 4096), experts=32, top_k=4, window=128,
                  style=random_weights.Style(branch_gain=branch_gain))


def make(recipe: Recipe, out: Path) -> dict:
    """Writes OUT/seed-N and returns the faithful simulation's figures against float32."""
    directory = out / recipe.name
    directory.mkdir(parents=True, exist_ok=True)
    config, source = config_of(recipe), random_weights.Source(recipe.seed)
    write_config(directory, config)
    layers = [partial(random_weights.layer, source, config, index, recipe.style) for index in range(recipe.layers)]
    write_shards(directory, [*layers, partial(random_weights.embeddings, source, config)])

    checkpoint, tokens = Checkpoint(directory), source.tokens(recipe.prompt, recipe.vocab)
    (directory / "tokens.json").write_text(json.dumps(tokens.tolist()) + "\n")
    started = time.monotonic()
    logits, gap = float32_logits_streamed(checkpoint, tokens)
    print(f"{recipe.name}: float32 logits after {time.monotonic() - started:.0f} s, std {logits.std():.2f}, "
          f"smallest router gap {gap:.1e}", flush=True)
    simulation = Simulation(checkpoint)
    faithful = simulation.logits(tokens)
    used = [f"{experts.bincount(minlength=recipe.experts).min()}..{experts.bincount().max()}"
            for experts in (e.flatten() for e in simulation.trace.experts)]
    print(f"{recipe.name}: faithful logits after {time.monotonic() - started:.0f} s, tokens per expert by layer: {', '.join(used)}",
          flush=True)
    write_oracle(directory / "oracle.safetensors", tokens, logits, faithful)
    return compare(faithful, logits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--tokens", type=int, default=256, help="prompt length")
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--branch-gain", type=float, default=0.4,
                        help="what a layer adds, relative to the residual; 1 is harsher than a layer of a deep model")
    args = parser.parse_args()
    torch.set_num_threads(1)
    figures = {}
    for seed in args.seeds:
        recipe = recipe_of(seed, args.tokens, args.vocab, args.layers, args.branch_gain)
        figures[recipe.name] = make(recipe, args.out)
    print("the faithful simulation against float32:")
    print(table(figures))


if __name__ == "__main__":
    main()
