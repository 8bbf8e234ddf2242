"""Makes the small random checkpoints and their logits: <name>/{config.json, model.safetensors, oracle.safetensors} in an archive.

    python tools/oracle/make_checkpoints.py tests/fixtures/oracle.tar [NAME ...]
"""

import argparse
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch

import random_weights
from checkpoint import Checkpoint, changed, write_config, write_oracle, write_shards
from faithful import BF16, Simulation
from reference import float32_logits

# Routing of a fixture must not hang on the last bits: no token's choice may be closer than this.
SMALLEST_ROUTER_GAP = 2e-4


@dataclass
class Recipe:
    """One fixture. Widths in elements, lengths in tokens."""

    name: str
    seed: int
    prompt: int
    hidden: int
    ff: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    rope: dict  # without rope_theta
    rope_theta: float = 150000.0
    style: random_weights.Style = random_weights.Style()
    newer_rope_spelling: bool = False  # one `rope_parameters` dict instead of `rope_scaling` and `rope_theta`
    # GPT-OSS only; experts == 0 makes a Llama
    experts: int = 0
    top_k: int = 0
    window: int = 0
    first_layer_full: bool = False
    shards: int = 1
    # Llama only
    tied: bool = False
    write_head_dim: bool = True


def yarn(factor: float, original: int, truncate: bool = False) -> dict:
    return {
        "rope_type": "yarn",
        "factor": factor,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": truncate,
        "original_max_position_embeddings": original,
    }


def max_positions(rope: dict) -> int:
    """Tokens: the extended context, or any round figure without scaling."""
    return int(rope["factor"] * rope["original_max_position_embeddings"]) if "factor" in rope else 2048


LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

RECIPES = [
    Recipe("gptoss-base", seed=2, prompt=128, hidden=64, ff=64, layers=2, heads=4, kv_heads=2, head_dim=32, vocab=96,
           rope=yarn(4.0, 64), experts=4, top_k=2, window=16),
    Recipe("gptoss-gqa8", seed=3, prompt=160, hidden=64, ff=32, layers=2, heads=8, kv_heads=1, head_dim=32, vocab=64,
           rope=yarn(32.0, 64), newer_rope_spelling=True, experts=32, top_k=4, window=128),
    Recipe("gptoss-mha", seed=1, prompt=96, hidden=160, ff=32, layers=2, heads=2, kv_heads=2, head_dim=32, vocab=64,
           rope=yarn(8.0, 32, truncate=True), rope_theta=10000.0, experts=4, top_k=1, window=24, style=random_weights.Style(saturate=True)),
    Recipe("gptoss-sharded", seed=1, prompt=140, hidden=96, ff=32, layers=3, heads=2, kv_heads=1, head_dim=64, vocab=64,
           rope=yarn(32.0, 64), experts=8, top_k=4, window=33, first_layer_full=True, shards=2),
    Recipe("gptoss-long", seed=2, prompt=1060, hidden=64, ff=64, layers=2, heads=2, kv_heads=1, head_dim=32, vocab=32,
           rope=yarn(8.0, 256), experts=4, top_k=2, window=128),
    Recipe("llama-plain", seed=1, prompt=100, hidden=64, ff=96, layers=2, heads=2, kv_heads=1, head_dim=32, vocab=64,
           rope={"rope_type": "default"}, rope_theta=10000.0, write_head_dim=False),
    Recipe("llama-tied", seed=1, prompt=96, hidden=96, ff=96, layers=2, heads=2, kv_heads=1, head_dim=32, vocab=99,
           rope=LLAMA3, rope_theta=500000.0, tied=True),
]


def config_of(recipe: Recipe) -> dict:
    """config.json as the published models write it."""
    config = {
        "hidden_size": recipe.hidden,
        "intermediate_size": recipe.ff,
        "num_hidden_layers": recipe.layers,
        "num_attention_heads": recipe.heads,
        "num_key_value_heads": recipe.kv_heads,
        "vocab_size": recipe.vocab,
        "max_position_embeddings": max_positions(recipe.rope),
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": recipe.tied,
        "torch_dtype": "bfloat16",
        "eos_token_id": recipe.vocab - 1,
    }
    if recipe.write_head_dim:
        config["head_dim"] = recipe.head_dim
    if recipe.newer_rope_spelling:
        config["rope_parameters"] = recipe.rope | {"rope_theta": recipe.rope_theta}
    else:
        config["rope_theta"] = recipe.rope_theta
        config["rope_scaling"] = None if recipe.rope["rope_type"] == "default" else recipe.rope
    return config | (_gpt_oss_keys(recipe) if recipe.experts else _llama_keys())


def _llama_keys() -> dict:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "mlp_bias": False,
    }


def _gpt_oss_keys(recipe: Recipe) -> dict:
    kinds = ["full_attention", "sliding_attention"] if recipe.first_layer_full else ["sliding_attention", "full_attention"]
    return {
        "architectures": ["GptOssForCausalLM"],
        "model_type": "gpt_oss",
        "attention_bias": True,
        "num_local_experts": recipe.experts,
        "num_experts_per_tok": recipe.top_k,
        "experts_per_token": recipe.top_k,
        "sliding_window": recipe.window,
        "layer_types": [kinds[i % 2] for i in range(recipe.layers)],
        "swiglu_limit": 7.0,
        "initial_context_length": recipe.rope["original_max_position_embeddings"],
        "quantization_config": {
            "quant_method": "mxfp4",
            "modules_to_not_convert": [
                "model.layers.*.self_attn",
                "model.layers.*.mlp.router",
                "model.embed_tokens",
                "lm_head",
            ],
        },
    }


def make(recipe: Recipe, out: Path) -> dict:
    """Writes the fixture and returns figures about it."""
    directory = out / recipe.name
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    config, source = config_of(recipe), random_weights.Source(recipe.seed)
    write_config(directory, config)

    tensors = random_weights.embeddings(source, config)
    for index in range(recipe.layers):
        tensors |= random_weights.layer(source, config, index, recipe.style)
    names = sorted(tensors)
    size = -(-len(names) // recipe.shards)
    write_shards(directory, [{n: tensors[n] for n in names[i : i + size]} for i in range(0, len(names), size)])

    checkpoint, tokens = Checkpoint(directory), source.tokens(recipe.prompt, recipe.vocab)
    logits, gap = float32_logits(checkpoint, tokens)
    simulation = Simulation(checkpoint)
    faithful = simulation.logits(tokens)
    bf16 = Simulation(checkpoint, BF16).logits(tokens) if recipe.experts else None
    write_oracle(directory / "oracle.safetensors", tokens, logits, faithful, bf16)
    trace = simulation.trace
    return {"std": logits.std().item(), "gap": min([gap, *trace.router_gaps]), "peak": trace.expert_input_peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these fixtures")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with changed(args.archive) as out:
        for recipe in RECIPES:
            if args.names and recipe.name not in args.names:
                continue
            figures = make(recipe, out)
            print(f"{recipe.name:16} logits std {figures['std']:.2f}  smallest router gap {figures['gap']:.1e}  "
                  f"largest gate/up {figures['peak']:.1f}")
            if figures["gap"] < SMALLEST_ROUTER_GAP:
                raise SystemExit(f"{recipe.name}: the router gap is below {SMALLEST_ROUTER_GAP}: choose another seed")


if __name__ == "__main__":
    main()
