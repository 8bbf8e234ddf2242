"""Makes a two-layer checkpoint of GPT-OSS-20B's widths and its float32 logits, with transformers (tools/oracle/requirements.txt).

Writes OUT/config.json and shards, tokens.json, oracle.safetensors ("logits" f32 [T, vocab]); and OUT/truncated/ with the same for a
model that differs only in rounding the ends of YaRN's ramp to whole dimensions, as llama.cpp always does. Its shards are links.
"""

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools/oracle"))

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import random_weights  # noqa: E402
from checkpoint import Checkpoint, write_config, write_shards  # noqa: E402
from make_checkpoints import config_of  # noqa: E402
from reference import float32_logits_streamed  # noqa: E402
from true_width import recipe_of  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--vocab", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--branch-gain", type=float, default=0.4)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    recipe = recipe_of(args.seed, args.tokens, args.vocab, args.layers, args.branch_gain)
    config, source = config_of(recipe), random_weights.Source(recipe.seed)
    args.out.mkdir(parents=True, exist_ok=True)
    write_config(args.out, config)
    layers = [partial(random_weights.layer, source, config, index, recipe.style) for index in range(recipe.layers)]
    write_shards(args.out, [*layers, partial(random_weights.embeddings, source, config)])
    tokens = source.tokens(recipe.prompt, recipe.vocab)
    (args.out / "tokens.json").write_text(json.dumps(tokens.tolist()) + "\n")
    for directory in [truncated(args.out, config), args.out]:
        logits, gap = float32_logits_streamed(Checkpoint(directory), tokens)
        save_file({"logits": logits.float().contiguous()}, directory / "oracle.safetensors")
        print(f"{directory}: logits of standard deviation {logits.std():.2f}, smallest router gap {gap:.1e}", flush=True)


def truncated(out: Path, config: dict) -> Path:
    """A directory with the same shards and another ramp."""
    directory = out / "truncated"
    directory.mkdir(exist_ok=True)
    for file in out.glob("model*.safetensors*"):
        link = directory / file.name
        link.unlink(missing_ok=True)
        os.symlink(file.resolve(), link)
    write_config(directory, config | {"rope_scaling": config["rope_scaling"] | {"truncate": True}})
    return directory


if __name__ == "__main__":
    main()
