"""Makes small random models of the architectures that `kernmill import` reads, as transformers itself saves them, and their logits:
<name>/{config.json, model.safetensors, oracle.safetensors} in an archive. The last has `tokens` i32 [T] and `logits` f32 [T, vocab]; of encoders
these are the last hidden states, f32 [T, hidden].

    python tools/oracle/make_imports.py tests/fixtures/imports.tar [NAME ...]

Needs transformers 5.24 or later, whose GPT-OSS reads `swiglu_alpha`.
"""

import argparse
import json
import shutil
from pathlib import Path

import torch
import transformers as t
from safetensors.torch import save_file

from checkpoint import changed

TOKENS = 40
# No token's choice of experts may hang on the last bits.
SMALLEST_ROUTER_GAP = 1e-3

SIZES = dict(vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0)
WIDE = SIZES | dict(head_dim=32)
FOUR = dict(num_hidden_layers=4)
ENCODER = dict(vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=80,
               layer_norm_eps=1e-6)
# A token sees 4 others on either side.
MODERN = SIZES | dict(num_hidden_layers=4, local_attention=9, norm_eps=1e-6, cls_token_id=1, sep_token_id=2)
del MODERN["num_key_value_heads"]


def bf16(name: str) -> torch.dtype:
    return torch.bfloat16


def bf16_but_norms(name: str) -> torch.dtype:
    return torch.float32 if any(part in name for part in ("norm", "router", "sinks")) else torch.bfloat16


def f32(name: str) -> torch.dtype:
    return torch.float32


def vision(model_type: str) -> dict:
    """The smallest model of images, which has no part in texts."""
    return dict(model_type=model_type, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
                image_size=28, patch_size=14)


# Name: (model, config, dtype of a parameter by its name, keys that are left out of config.json).
CASES = {
    "qwen2-windows": (t.Qwen2ForCausalLM,
                      t.Qwen2Config(**SIZES | dict(num_hidden_layers=3), use_sliding_window=True, sliding_window=8,
                                    max_window_layers=1, tie_word_embeddings=True, rms_norm_eps=1e-5), bf16, ()),
    "qwen2-plain": (t.Qwen2ForCausalLM, t.Qwen2Config(**SIZES, rope_theta=1e6, rms_norm_eps=1e-6),
                    lambda name: torch.float32 if "bias" in name else torch.bfloat16, ("rms_norm_eps", "layer_types")),
    "mistral-window": (t.MistralForCausalLM, t.MistralConfig(**WIDE, sliding_window=12), lambda name: torch.float16, ()),
    "llama-linear": (t.LlamaForCausalLM, t.LlamaConfig(**SIZES, rope_scaling={"rope_type": "linear", "factor": 4.0}),
                     lambda name: torch.float32 if "norm" in name else torch.bfloat16, ("dtype",)),
    "llama-dynamic": (t.LlamaForCausalLM,
                      t.LlamaConfig(**SIZES | dict(max_position_embeddings=48), rope_scaling={"rope_type": "dynamic", "factor": 2.0}),
                      bf16, ()),
    "gptoss-plain": (t.GptOssForCausalLM,
                     t.GptOssConfig(**WIDE | dict(intermediate_size=32), num_local_experts=4, num_experts_per_tok=2,
                                    sliding_window=16, swiglu_alpha=1.25, swiglu_limit=2.5),
                     bf16_but_norms, ("rope_parameters",)),
    "qwen3-plain": (t.Qwen3ForCausalLM, t.Qwen3Config(**WIDE, attention_bias=True, tie_word_embeddings=True, rope_theta=1e6),
                    bf16, ()),
    "smollm3": (t.SmolLM3ForCausalLM, t.SmolLM3Config(**SIZES | FOUR, use_sliding_window=True, sliding_window=20), bf16,
                ("no_rope_layers",)),
    "olmo2": (t.Olmo2ForCausalLM, t.Olmo2Config(**SIZES), bf16, ()),
    "olmo3": (t.Olmo3ForCausalLM,
              t.Olmo3Config(**SIZES | FOUR, sliding_window=16, rope_parameters={
                  "full_attention": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64, "rope_theta": 5e5,
                                     "attention_factor": 1.25},
                  "sliding_attention": {"rope_type": "default", "rope_theta": 5e5}}), bf16, ()),
    "granite": (t.GraniteForCausalLM,
                t.GraniteConfig(**SIZES, attention_multiplier=0.25, embedding_multiplier=6.0, residual_multiplier=0.25, logits_scaling=4.0,
                                attention_bias=True, tie_word_embeddings=True), bf16, ()),
    "seed-oss": (t.SeedOssForCausalLM, t.SeedOssConfig(**WIDE), bf16, ()),
    "phi3": (t.Phi3ForCausalLM, t.Phi3Config(**SIZES, sliding_window=24), bf16, ()),
    "phi4-mini": (t.Phi3ForCausalLM,
                  t.Phi3Config(**SIZES | dict(max_position_embeddings=128, num_attention_heads=2, num_key_value_heads=1), original_max_position_embeddings=32,
                               tie_word_embeddings=True, partial_rotary_factor=0.75,
                               rope_scaling={"type": "longrope", "short_factor": [1.0 + 0.05 * i for i in range(12)],
                                             "long_factor": [1.5 + 0.5 * i for i in range(12)]}), bf16, ()),
    "glm4": (t.Glm4ForCausalLM, t.Glm4Config(**WIDE), bf16, ()),
    "gemma2": (t.Gemma2ForCausalLM,
               t.Gemma2Config(**WIDE, sliding_window=16, query_pre_attn_scalar=24, attn_logit_softcapping=3.0,
                              final_logit_softcapping=5.0), bf16, ("layer_types",)),
    "gemma3": (t.Gemma3ForCausalLM,
               t.Gemma3TextConfig(**WIDE | dict(num_hidden_layers=6), sliding_window=16, query_pre_attn_scalar=32, rope_parameters={
                   "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                   "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}), bf16, ()),
    "gemma3-images": (t.Gemma3ForConditionalGeneration,
                      t.Gemma3Config(text_config=t.Gemma3TextConfig(**WIDE, sliding_window=16, query_pre_attn_scalar=32),
                                     vision_config=vision("siglip_vision_model"), mm_tokens_per_image=4), bf16, ()),
    "mistral3-images": (t.Mistral3ForConditionalGeneration,
                        t.Mistral3Config(text_config=t.MistralConfig(**WIDE, sliding_window=None), tie_word_embeddings=False,
                                         vision_config=vision("pixtral")), bf16, ()),
    "ministral3": (t.Ministral3ForCausalLM,
                   t.Ministral3Config(**WIDE, rope_parameters={
                       "rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0,
                       "mscale_all_dim": 1.0, "original_max_position_embeddings": 64, "llama_4_scaling_beta": 0.1}), bf16, ()),
    "mixtral": (t.MixtralForCausalLM, t.MixtralConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2), bf16, ()),
    "qwen3-moe": (t.Qwen3MoeForCausalLM,
                  t.Qwen3MoeConfig(**WIDE, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, norm_topk_prob=True), bf16, ()),
    "qwen3-moe-dense": (t.Qwen3MoeForCausalLM,
                        t.Qwen3MoeConfig(**WIDE | FOUR, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
                                         decoder_sparse_step=2, mlp_only_layers=[3]), bf16, ()),
    "qwen2-moe": (t.Qwen2MoeForCausalLM,
                  t.Qwen2MoeConfig(**SIZES, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
                                   shared_expert_intermediate_size=64), bf16, ()),
    "olmoe": (t.OlmoeForCausalLM, t.OlmoeConfig(**SIZES, num_experts=4, num_experts_per_tok=2), bf16, ()),
    "granite-moe": (t.GraniteMoeForCausalLM,
                    t.GraniteMoeConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, attention_multiplier=0.25,
                                       embedding_multiplier=6.0, residual_multiplier=0.25, logits_scaling=4.0), bf16, ()),
    "glm4-moe": (t.Glm4MoeForCausalLM,
                 t.Glm4MoeConfig(**WIDE, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, use_qk_norm=True,
                                 attention_bias=True, routed_scaling_factor=1.5), bf16_but_norms, ()),
    "ernie-moe": (t.Ernie4_5_MoeForCausalLM,
                  t.Ernie4_5_MoeConfig(**SIZES, moe_num_experts=4, moe_k=2, moe_intermediate_size=32), bf16_but_norms, ()),
    "bert": (t.BertModel, t.BertConfig(**ENCODER), f32, ()),
    "bert-masked": (t.BertForMaskedLM, t.BertConfig(**ENCODER, hidden_act="relu"), bf16, ()),
    "roberta": (t.RobertaModel, t.RobertaConfig(**ENCODER, type_vocab_size=1), lambda name: torch.float16, ()),
    "xlm-roberta": (t.XLMRobertaModel, t.XLMRobertaConfig(**ENCODER, hidden_act="gelu_new"), f32, ()),
    "glm4-moe-groups": (t.Glm4MoeForCausalLM,
                        t.Glm4MoeConfig(**WIDE, n_routed_experts=12, n_group=4, topk_group=2, num_experts_per_tok=4, moe_intermediate_size=32,
                                        use_qk_norm=True, routed_scaling_factor=1.5), bf16_but_norms, ()),
    "modernbert": (t.ModernBertModel, t.ModernBertConfig(**MODERN), f32, ()),
    "modernbert-masked": (t.ModernBertForMaskedLM,
                          t.ModernBertConfig(**MODERN, norm_bias=True, attention_bias=True, mlp_bias=True, hidden_activation="silu",
                                             layer_types=["sliding_attention", "full_attention"] * 2), bf16_but_norms, ()),
}


ENCODERS = (t.BertModel, t.RobertaModel, t.XLMRobertaModel, t.ModernBertModel)


def is_transposed(name: str, model: torch.nn.Module) -> bool:
    """GPT-OSS's experts are [experts, in, out], other matrices [out, in]."""
    return "experts" in name and "GptOss" in type(model).__name__


def biases_of_choice(model: torch.nn.Module) -> list:
    """Biases of routers that are buffers and no parameters."""
    return [(name, buffer) for name, buffer in model.named_buffers() if "correction_bias" in name]


def randomise(model: torch.nn.Module, seed: int, dtype_of) -> None:
    """Weights that keep the residual near unit variance, rounded to the type that they are saved in."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in [*model.named_parameters(), *biases_of_choice(model)]:
        noise = torch.randn(parameter.shape, generator=generator)
        if "correction_bias" in name:
            values = 0.1 * noise
        elif "norm" in name.lower() and not name.endswith(".bias"):
            values = (0 if type(model).__name__.startswith("Gemma") else 1) + 0.2 * noise
        elif parameter.dim() == 1 or name.endswith("_bias"):
            values = 0.3 * noise
        elif "embed" in name:
            values = noise * (0.25 if model.config.tie_word_embeddings else 1.0)
        else:
            values = 1.3 * noise * (parameter.shape[-2] if is_transposed(name, model) else parameter.shape[-1]) ** -0.5
        parameter.data = values.to(dtype_of(name)).float()


@torch.no_grad()
def logits_of(model: torch.nn.Module, tokens: torch.Tensor) -> tuple[torch.Tensor, float]:
    """f32 [T, vocab], by a forward pass in float32, and the smallest gap between an expert that was chosen and one that was not."""
    gaps = []
    for module in model.modules():
        if type(module).__name__.endswith(("TopKRouter", "TopkRouter")):
            def watch(router, inputs, _outputs):
                bias = getattr(router, "bias", None)
                scores = torch.nn.functional.linear(inputs[0].flatten(0, -2), router.weight, bias)
                for_choice = [own for _, own in biases_of_choice(router)] + [
                    own for name, own in router.named_parameters() if "correction_bias" in name]
                if for_choice:
                    scores = (scores.sigmoid() if "Glm" in type(router).__name__ else scores.softmax(-1)) + for_choice[0]
                groups = getattr(router, "num_group", 1)
                if groups > 1:
                    scores = scores.view(-1, groups, router.num_experts // groups)
                    sums = scores.topk(2).values.sum(-1)
                    best = sums.topk(router.topk_group + 1)
                    gaps.append((best.values[:, -2] - best.values[:, -1]).min().item())
                    scores = scores.gather(1, best.indices[:, :-1, None].expand(-1, -1, scores.shape[-1])).flatten(1)
                best = scores.topk(router.top_k + 1).values
                gaps.append((best[:, -2] - best[:, -1]).min().item())
            module.register_forward_hook(watch)
    body = model.base_model
    if isinstance(body, ENCODERS):
        return body(tokens[None].long()).last_hidden_state[0].float(), 1.0
    logits = model(tokens[None].long(), use_cache=False).logits[0].float()
    return logits, min(gaps, default=1.0)


def make(name: str, out: Path, seed: int) -> None:
    kind, config, dtype_of, left_out = CASES[name]
    directory = out / name
    shutil.rmtree(directory, ignore_errors=True)
    config._attn_implementation = "eager"
    model = kind(config).float().eval()
    gap = 0.0
    while gap < SMALLEST_ROUTER_GAP:
        randomise(model, seed, dtype_of)
        generator = torch.Generator().manual_seed(seed)
        tokens = torch.randint(SIZES["vocab_size"], (TOKENS,), generator=generator, dtype=torch.int32)
        if "oberta" in name:
            # A text has no padding, which has a position of its own.
            tokens[tokens == config.pad_token_id] += 1
        logits, gap = logits_of(model, tokens)
        seed += 1000
    for parameter_name, parameter in [*model.named_parameters(), *biases_of_choice(model)]:
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
