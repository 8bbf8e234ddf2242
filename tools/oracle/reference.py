"""float32 logits by transformers' own models, with MXFP4 experts dequantised exactly."""

import torch
from transformers import GptOssConfig, GptOssForCausalLM, LlamaConfig, LlamaForCausalLM
from transformers.masking_utils import create_causal_mask, create_sliding_window_causal_mask
from transformers.models.gpt_oss.modeling_gpt_oss import (
    GptOssDecoderLayer,
    GptOssRMSNorm,
    GptOssRotaryEmbedding,
    GptOssTopKRouter,
)

import mxfp4
from checkpoint import Checkpoint, rope_of


def transformers_config(config: dict):
    """The config object of the pinned transformers version: no quantization, `rope_scaling` spelling, eager attention."""
    plain = {k: v for k, v in config.items() if k not in ("quantization_config", "rope_parameters")}
    rope = rope_of(config)
    plain["rope_theta"] = rope.pop("rope_theta")
    plain["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    kind = GptOssConfig if config["model_type"] == "gpt_oss" else LlamaConfig
    return kind(**plain, attn_implementation="eager")


def float32_state(checkpoint: Checkpoint, prefix: str = "") -> dict[str, torch.Tensor]:
    """f32 state of everything under `prefix`, its name cut off, in transformers' names and shapes.

    Experts: stored [E, rows, k/32, 16] + [E, rows, k/32] -> [E, k, rows].
    """
    state = {}
    for name in checkpoint.names():
        if not name.startswith(prefix) or name.endswith("_scales"):
            continue
        key = name.removeprefix(prefix)
        if name.endswith("_blocks"):
            stem = name.removesuffix("_blocks")
            blocks, scales = checkpoint.raw(name), checkpoint.raw(stem + "_scales")
            experts = torch.empty(blocks.shape[0], blocks.shape[2] * mxfp4.BLOCK, blocks.shape[1])
            for e in range(blocks.shape[0]):
                experts[e] = mxfp4.decode(blocks[e], scales[e]).T
            state[key.removesuffix("_blocks")] = experts
        else:
            state[key] = checkpoint.f32(name)
    return state


@torch.no_grad()
def float32_logits(checkpoint: Checkpoint, tokens: torch.Tensor) -> tuple[torch.Tensor, float]:
    """tokens i32 [T] -> (logits f32 [T, vocab], smallest router gap), the whole model in memory.

    The gap is the smallest difference, over tokens and layers, between the last expert chosen and the first one not.
    """
    config = transformers_config(checkpoint.config)
    kind = GptOssForCausalLM if checkpoint.config["model_type"] == "gpt_oss" else LlamaForCausalLM
    model = kind(config).float().eval()
    state = float32_state(checkpoint)
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    gaps = _watch_router_gaps(model)
    return model(tokens[None].long(), use_cache=False).logits[0], min(gaps, default=float("inf"))


@torch.no_grad()
def float32_logits_streamed(checkpoint: Checkpoint, tokens: torch.Tensor) -> tuple[torch.Tensor, float]:
    """The same for a GPT-OSS checkpoint with one decoder layer in memory at a time."""
    config = transformers_config(checkpoint.config)
    x = checkpoint.f32("model.embed_tokens.weight")[tokens.long()][None]  # [1, T, hidden]
    positions = torch.arange(len(tokens))
    rope = GptOssRotaryEmbedding(config)(x, positions[None])
    mask_args = dict(config=config, input_embeds=x, attention_mask=None, cache_position=positions, past_key_values=None)
    masks = {
        "full_attention": create_causal_mask(**mask_args),
        "sliding_attention": create_sliding_window_causal_mask(**mask_args),
    }
    gaps = []
    for index, kind in enumerate(config.layer_types):
        with torch.device("meta"):
            layer = GptOssDecoderLayer(config, index).eval()
        layer.load_state_dict(float32_state(checkpoint, f"model.layers.{index}."), strict=True, assign=True)
        layer_gaps = _watch_router_gaps(layer)
        x = layer(x, attention_mask=masks[kind], position_embeddings=rope, cache_position=positions)
        gaps += layer_gaps
    norm = GptOssRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
    norm.load_state_dict({"weight": checkpoint.f32("model.norm.weight")})
    return (norm(x) @ checkpoint.f32("lm_head.weight").T)[0], min(gaps)


def _watch_router_gaps(module: torch.nn.Module) -> list[float]:
    """A list that each forward pass of each router inside `module` will append its smallest gap to."""
    gaps = []

    def watch(router, inputs, _outputs):
        logits = torch.nn.functional.linear(inputs[0].flatten(0, -2), router.weight, router.bias)  # [T, E]
        gaps.append(smallest_gap(logits, router.top_k))

    for part in module.modules():
        if isinstance(part, GptOssTopKRouter):
            part.register_forward_hook(watch)
    return gaps


def smallest_gap(router_logits: torch.Tensor, top_k: int) -> float:
    """[T, E] -> smallest difference between the k-th and (k+1)-th largest."""
    if router_logits.shape[1] == top_k:
        return float("inf")
    best = router_logits.topk(top_k + 1).values
    return (best[:, -2] - best[:, -1]).min().item()
