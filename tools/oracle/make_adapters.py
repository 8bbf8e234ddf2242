"""Makes small random PEFT adapters for the fixtures' checkpoints, and the logits that PEFT gives with them.

    python tools/oracle/make_adapters.py tests/fixtures

<out>/adapters/<name>/{adapter_config.json, adapter_model.safetensors, expected.safetensors}: the adapter as PEFT saves it, with `tokens` i32 [T]
and `logits` f32 [T, vocab] beside it. <out>/adapters/<name>.mix.safetensors: logits of several adapters combined with weights.
"""

import argparse
import json
import os
import shutil
import warnings
from dataclasses import dataclass, field
from pathlib import Path

# PEFT would look for the base model on the network.
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import GptOssForCausalLM, LlamaForCausalLM
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts

from checkpoint import Checkpoint, pack, unpacked
from make_checkpoints import SMALLEST_ROUTER_GAP
from random_weights import Source
from reference import _watch_router_gaps, float32_state, transformers_config

# Tokens of each checkpoint's prompt that the adapters are run over: they cross its attention window.
PROMPT = 40
# An adapter that hardly changes the logits would test nothing: the least that some logit must move.
SMALLEST_EFFECT = 0.3

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
EXPERTS = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]


@dataclass
class Recipe:
    """One adapter of a checkpoint."""

    name: str
    base: str
    seed: int
    config: dict
    dtype: torch.dtype = torch.float32
    # PEFT takes experts for [E, out, in] unless their class says otherwise, as it does from transformers 5 on; both ways are met.
    experts_say_transposed: bool = True
    gain: float = 0.6  # size of what an adapter adds, relative to what the matrix gives


RECIPES = [
    Recipe("qv", "gptoss-base", 1, dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"])),
    Recipe("attention-rslora", "gptoss-base", 2, dict(r=8, lora_alpha=4, use_rslora=True, target_modules=ATTENTION), torch.bfloat16),
    Recipe("patterns", "gptoss-sharded", 3, dict(
        r=3, lora_alpha=6, target_modules=ATTENTION, layers_to_transform=[0, 2], layers_pattern="layers",
        rank_pattern={"q_proj": 5, "layers.2.self_attn.[kv]_proj": 1, "^model.layers.0.self_attn.o_proj": 17},
        alpha_pattern={".*0.self_attn.k_proj": 1, "o_proj": 9}), torch.float16),
    Recipe("experts", "gptoss-mha", 4, dict(r=2, lora_alpha=4, target_modules=[], target_parameters=EXPERTS)),
    Recipe("experts-swapped", "gptoss-mha", 5, dict(r=2, lora_alpha=4, target_modules=[], target_parameters=EXPERTS),
           experts_say_transposed=False),
    Recipe("everything", "gptoss-base", 6, dict(
        r=4, lora_alpha=8, target_modules=ATTENTION, target_parameters=[*EXPERTS, "mlp.router.weight"],
        rank_pattern={"down_proj": 3}), torch.bfloat16),
    Recipe("down-only", "gptoss-gqa8", 7, dict(r=1, lora_alpha=1, target_modules=[], target_parameters=["experts.down_proj"]), torch.bfloat16),
    Recipe("dora", "gptoss-base", 8, dict(r=4, lora_alpha=8, use_dora=True, target_modules=ATTENTION)),
    Recipe("dora-rslora", "llama-tied", 9, dict(
        r=4, lora_alpha=4, use_dora=True, use_rslora=True, target_modules=[*ATTENTION, "gate_proj", "up_proj", "down_proj"]), torch.bfloat16),
    Recipe("all-linear", "llama-plain", 10, dict(r=6, lora_alpha=6, target_modules="all-linear")),
]


@dataclass
class Mix:
    """Adapters of one checkpoint at once, each with a weight."""

    name: str
    weights: dict[str, float] = field(default_factory=dict)


MIXES = [
    Mix("one-scaled", {"qv": -0.5}),
    Mix("two", {"qv": 0.7, "attention-rslora": 0.4}),
    Mix("three", {"qv": 1.0, "attention-rslora": -0.3, "everything": 0.5}),
    Mix("dora-scaled", {"dora": 0.5}),
]


def model_of(checkpoint: Checkpoint):
    """The float32 model of a checkpoint."""
    config = transformers_config(checkpoint.config)
    kind = GptOssForCausalLM if checkpoint.config["model_type"] == "gpt_oss" else LlamaForCausalLM
    model = kind(config).float().eval()
    state = float32_state(checkpoint)
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    return model


@torch.no_grad()
def logits_of(model, tokens: torch.Tensor) -> torch.Tensor:
    """f32 [T, vocab]; fails when a token's routing hangs on the last bits."""
    gaps = _watch_router_gaps(model)
    logits = model(tokens[None].long(), use_cache=False).logits[0]
    gap = min(gaps, default=float("inf"))
    if gap < SMALLEST_ROUTER_GAP:
        raise SystemExit(f"the router gap is {gap:.1e}, below {SMALLEST_ROUTER_GAP}: choose another seed")
    return logits


@torch.no_grad()
def fill(model, recipe: Recipe) -> None:
    """Random factors, each from a generator of its own; A and B such that a delta's outputs have size `gain` for unit inputs."""
    source = Source(recipe.seed)
    for name, module in model.named_modules():
        if not (hasattr(module, "lora_A") and "default" in module.lora_A):
            continue
        experts = getattr(module, "num_experts", 1)
        rank, scaling = module.r["default"], module.scaling["default"]
        a, b = module.lora_A["default"].weight, module.lora_B["default"].weight
        fan_in = module.in_features if not getattr(module, "_did_swap_in_out_features", False) else module.out_features
        a.copy_(source.normal(name + ".a", tuple(a.shape), std=1.0))
        b.copy_(source.normal(name + ".b", tuple(b.shape), std=recipe.gain / abs(scaling) * (rank * fan_in) ** -0.5))
        assert a.shape[0] == rank * experts
        for magnitude in module.lora_magnitude_vector.values() if hasattr(module, "lora_magnitude_vector") else []:
            magnitude.weight.mul_(source.normal(name + ".m", tuple(magnitude.weight.shape), std=0.2, mean=1.0))


def save(model, recipe: Recipe, directory: Path) -> None:
    """As PEFT does, in the recipe's dtype."""
    model.save_pretrained(directory, save_embedding_layers=False)
    (directory / "README.md").unlink(missing_ok=True)
    file = directory / "adapter_model.safetensors"
    tensors = load_file(file)
    save_file({name: t.to(recipe.dtype).contiguous() for name, t in tensors.items()}, file, metadata={"format": "pt"})
    # The order of a set differs from run to run.
    config = json.loads((directory / "adapter_config.json").read_text())
    for key in ("target_modules", "target_parameters"):
        if isinstance(config[key], list):
            config[key].sort()
    file.chmod(0o644)
    (directory / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def load(out: Path, names: list[str], base: str):
    """The checkpoint's model with saved adapters, as PEFT loads them; GptOssExperts as their adapters' recipes have it."""
    recipes = {r.name: r for r in RECIPES}
    GptOssExperts.is_transposed = recipes[names[0]].experts_say_transposed
    model = model_of(Checkpoint(out / "oracle" / base))
    adapters = out / "adapters"
    model = PeftModel.from_pretrained(model, adapters / names[0], adapter_name=names[0])
    for name in names[1:]:
        model.load_adapter(adapters / name, adapter_name=name)
    return model.float().eval()


def make(recipe: Recipe, out: Path) -> float:
    """Writes the adapter and its logits; the most that a logit moved."""
    directory = out / "adapters" / recipe.name
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    checkpoint = Checkpoint(out / "oracle" / recipe.base)
    tokens = load_file(out / "oracle" / recipe.base / "oracle.safetensors")["tokens"][:PROMPT]
    before = logits_of(model_of(checkpoint), tokens)

    # A magnitude starts from the norms of PEFT's own random factors.
    torch.manual_seed(recipe.seed)
    GptOssExperts.is_transposed = recipe.experts_say_transposed
    model = model_of(checkpoint)
    model.name_or_path = recipe.base
    config = LoraConfig(init_lora_weights=False, task_type="CAUSAL_LM", **recipe.config)
    model = get_peft_model(model, config).eval()
    model.peft_config["default"].base_model_name_or_path = recipe.base
    fill(model, recipe)
    save(model, recipe, directory)

    # What was saved, rounded to its dtype, is what the logits belong to.
    logits = logits_of(load(out, [recipe.name], recipe.base), tokens)
    save_file({"tokens": tokens.int(), "logits": logits.contiguous()}, directory / "expected.safetensors")
    return (logits - before).abs().max().item()


@torch.no_grad()
def make_mix(mix: Mix, out: Path) -> float:
    """Writes the logits of a mix: every delta times its weight."""
    recipes = {r.name: r for r in RECIPES}
    names = list(mix.weights)
    base = recipes[names[0]].base
    tokens = load_file(out / "oracle" / base / "oracle.safetensors")["tokens"][:PROMPT]
    before = logits_of(model_of(Checkpoint(out / "oracle" / base)), tokens)
    if recipes[names[0]].config.get("use_dora"):
        # The weight is the scaling's, inside the norm too.
        model = load(out, names, base)
        for module in model.modules():
            if hasattr(module, "set_scale"):
                module.set_scale(names[0], mix.weights[names[0]])
        logits = logits_of(model, tokens)
    else:
        # Summed into the weights one after the other: adapters with target_parameters cannot be active with others.
        model = model_of(Checkpoint(out / "oracle" / base))
        weights = dict(model.named_parameters())
        for name, weight in mix.weights.items():
            merged = load(out, [name], base).merge_and_unload()
            plain = dict(model_of(Checkpoint(out / "oracle" / base)).named_parameters())
            for key, value in merged.named_parameters():
                weights[key].add_(value - plain[key], alpha=weight)
        logits = logits_of(model, tokens)
    save_file({"tokens": tokens.int(), "logits": logits.contiguous()}, out / "adapters" / f"{mix.name}.mix.safetensors")
    return (logits - before).abs().max().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fixtures", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with unpacked(args.fixtures / "oracle.tar") as out:
        made = [(recipe.name, make(recipe, out)) for recipe in RECIPES]
        made += [(mix.name, make_mix(mix, out)) for mix in MIXES]
        for name, effect in made:
            print(f"{name:18} moves a logit by up to {effect:.2f}")
            if effect < SMALLEST_EFFECT:
                raise SystemExit(f"{name}: expected at least {SMALLEST_EFFECT}")
        pack(out / "adapters", args.fixtures / "adapters.tar")


if __name__ == "__main__":
    main()
