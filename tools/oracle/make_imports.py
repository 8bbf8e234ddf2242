"""Makes small random models of the architectures that `kernmill import` reads, as transformers itself saves them, and their logits:
<name>/{config.json, model.safetensors, oracle.safetensors} in an archive. The last has `tokens` i32 [T] and `logits` f32 [T, vocab].

    python tools/oracle/make_imports.py tests/fixtures/imports.tar [NAME ...]

Needs transformers 5.24 or later, whose GPT-OSS reads `swiglu_alpha`.
"""

import argparse
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import (
    GptOssConfig,
    GptOssForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from checkpoint import changed

TOKENS = 40
# No token's choice of experts may hang on the last bits.
SMALLEST_ROUTER_GAP = 1e-3

SIZES = dict(vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2)

# Name: (model, config, dtype of a parameter by its name, keys that are left out of config.json).
CASES = {
    "qwen2-windows": (Qwen2ForCausalLM,
                      Qwen2Config(**SIZES | dict(num_hidden_layers=3), use_sliding_window=True, sliding_window=8,
                                  max_window_layers=1, tie_word_embeddings=True, rms_norm_eps=1e-5),
                      lambda name: torch.bfloat16, ()),
    "qwen2-plain": (Qwen2ForCausalLM, Qwen2Config(**SIZES, rope_theta=1e6, rms_norm_eps=1e-6),
                    lambda name: torch.float32 if "bias" in name else torch.bfloat16, ("rms_norm_eps", "layer_types")),
    "mistral-window": (MistralForCausalLM, MistralConfig(**SIZES, head_dim=32, sliding_window=12),
                       lambda name: torch.float16, ()),
    "llama-linear": (LlamaForCausalLM, LlamaConfig(**SIZES, rope_scaling={"rope_type": "linear", "factor": 4.0}),
                     lambda name: torch.float32 if "norm" in name else torch.bfloat16, ("dtype",)),
    "llama-dynamic": (LlamaForCausalLM,
                      LlamaConfig(**SIZES | dict(max_position_embeddings=48), rope_scaling={"rope_type": "dynamic", "factor": 2.0}),
                      lambda name: torch.bfloat16, ()),
    "gptoss-plain": (GptOssForCausalLM,
                     GptOssConfig(**SIZES | dict(intermediate_size=32), head_dim=32, num_local_experts=4,
                                  num_experts_per_tok=2, sliding_window=16, swiglu_alpha=1.25, swiglu_limit=2.5),
                     lambda name: torch.float32 if "norm" in name or "router" in name or "sinks" in name else torch.bfloat16,
                     ("rope_parameters",)),
    "qwen3-plain": (Qwen3ForCausalLM,
                    Qwen3Config(**SIZES, head_dim=32, attention_bias=True, tie_word_embeddings=True, rope_theta=1e6),
                    lambda name: torch.bfloat16, ()),
}


def randomise(model: torch.nn.Module, seed: int, dtype_of) -> None:
    """Weights that keep the residual near unit variance, rounded to the type that they are saved in."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if "norm" in name:
            values = 1 + 0.2 * noise
        elif parameter.dim() == 1 or name.endswith("_bias"):
            values = 0.3 * noise
        elif "embed" in name:
            values = noise * (0.25 if model.config.tie_word_embeddings else 1.0)
        else:
            # Experts are [experts, in, out], the other matrices [out, in].
            values = 1.3 * noise * (parameter.shape[-2] if "experts" in name else parameter.shape[-1]) ** -0.5
        parameter.data = values.to(dtype_of(name)).float()


@torch.no_grad()
def logits_of(model: torch.nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    """f32 [T, vocab], by a forward pass in float32. A choice of experts that is too close is an error."""
    gaps = []
    for module in model.modules():
        if type(module).__name__ == "GptOssTopKRouter":
            def watch(router, inputs, _outputs):
                scores = torch.nn.functional.linear(inputs[0].flatten(0, -2), router.weight, router.bias)
                best = scores.topk(router.top_k + 1).values
                gaps.append((best[:, -2] - best[:, -1]).min().item())
            module.register_forward_hook(watch)
    logits = model(tokens[None].long(), use_cache=False).logits[0].float()
    assert min(gaps, default=1.0) >= SMALLEST_ROUTER_GAP, f"routing too close: {min(gaps)}"
    return logits


def make(name: str, out: Path, seed: int) -> None:
    kind, config, dtype_of, left_out = CASES[name]
    directory = out / name
    shutil.rmtree(directory, ignore_errors=True)
    config._attn_implementation = "eager"
    model = kind(config).float().eval()
    randomise(model, seed, dtype_of)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(config.vocab_size, (TOKENS,), generator=generator, dtype=torch.int32)
    logits = logits_of(model, tokens)
    for parameter_name, parameter in model.named_parameters():
        parameter.data = parameter.data.to(dtype_of(parameter_name))
    model.save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    path = directory / "config.json"
    written = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in written.items() if k not in left_out}, indent=2) + "\n")
    save_file({"tokens": tokens, "logits": logits.contiguous()}, directory / "oracle.safetensors")
    print(f"{name}: logits of standard deviation {logits.std():.2f}, {sum(f.stat().st_size for f in directory.iterdir())} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    args = parser.parse_args()
    with changed(args.archive) as out:
        for seed, name in enumerate(CASES, start=1):
            if not args.names or name in args.names:
                make(name, out, seed)


if __name__ == "__main__":
    main()
