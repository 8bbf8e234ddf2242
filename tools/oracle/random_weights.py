"""Random checkpoints whose every part matters: attention, sinks, routing, experts and all biases.

Each tensor has its own generator, seeded by (seed, name), so that a tensor does not depend on which others were made or
in which order. Standard deviations keep the residual stream and the logits near unit variance.
"""

import zlib
from dataclasses import dataclass

import numpy as np
import torch

import mxfp4
from checkpoint import head_dim_of


@dataclass(frozen=True)
class Style:
    """What layers are like, beyond their shapes."""

    router_gain: float = 1.5  # standard deviation of the router's logits
    branch_gain: float = 1.0  # size of what attention and experts add to the residual, both of about its own size at 1
    saturate: bool = False  # some gate and up rows have large biases, beyond the clamp at 7 either way


class Source:
    """Named random tensors of one seed."""

    def __init__(self, seed: int):
        self.seed = seed

    def _rng(self, name: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(name.encode())])

    def normal(self, name: str, shape, std: float, mean: float = 0.0) -> torch.Tensor:
        """Gaussian f32."""
        values = self._rng(name).standard_normal(shape, dtype=np.float32)
        return torch.from_numpy(values).mul_(std).add_(mean)

    def matrix(self, name: str, rows: int, k: int, gain: float) -> torch.Tensor:
        """f32 [rows, k] giving outputs of about `gain` standard deviations for unit inputs; rows differ in size a little."""
        row_size = self.normal(name + ".row_size", (rows, 1), std=0.25).exp_()
        return self.normal(name, (rows, k), std=gain * k**-0.5).mul_(row_size)

    def tokens(self, count: int, vocab: int) -> torch.Tensor:
        """i32 [count], uniform."""
        return torch.from_numpy(self._rng("tokens").integers(0, vocab, count, dtype=np.int32))


def embeddings(source: Source, config: dict) -> dict[str, torch.Tensor]:
    """The tensors outside the layers."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    tied = config.get("tie_word_embeddings", False)
    # A tied table is also the unembedding: sized for it, the first norm brings the residual back to unit variance.
    tensors = {
        "model.embed_tokens.weight": source.normal("embed", (vocab, hidden), std=hidden**-0.5 if tied else 1.0),
        "model.norm.weight": source.normal("norm", hidden, std=0.2, mean=1.0),
    }
    if not tied:
        tensors["lm_head.weight"] = source.matrix("lm_head", vocab, hidden, gain=1.0)
    return _bf16(tensors)


def layer(source: Source, config: dict, index: int, style: Style = Style()) -> dict[str, torch.Tensor]:
    """All tensors of one decoder layer, by checkpoint name."""
    prefix = f"model.layers.{index}."
    if config["model_type"] == "gpt_oss":
        tensors = _attention(source, config, prefix, style, biases=True) | _moe(source, config, prefix, style)
    else:
        tensors = _attention(source, config, prefix, style, biases=False) | _dense_mlp(source, config, prefix, style)
    return _bf16(tensors)


def _attention(source: Source, config: dict, prefix: str, style: Style, biases: bool) -> dict[str, torch.Tensor]:
    hidden, head_dim = config["hidden_size"], head_dim_of(config)
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    q_width, kv_width = heads * head_dim, kv_heads * head_dim
    # (rows, k, gain, bias std). The mean over keys shrinks v, hence o's larger gain.
    shapes = {
        "q_proj": (q_width, hidden, 1.0, 0.3),
        "k_proj": (kv_width, hidden, 1.0, 0.3),
        "v_proj": (kv_width, hidden, 1.0, 0.3),
        "o_proj": (hidden, q_width, 1.5 * style.branch_gain, 0.1 * style.branch_gain),
    }
    tensors = {
        prefix + "input_layernorm.weight": source.normal(prefix + "norm1", hidden, std=0.2, mean=1.0),
        prefix + "post_attention_layernorm.weight": source.normal(prefix + "norm2", hidden, std=0.2, mean=1.0),
    }
    for name, (rows, k, gain, bias_std) in shapes.items():
        path = f"{prefix}self_attn.{name}"
        tensors[path + ".weight"] = source.matrix(path, rows, k, gain)
        if biases:
            tensors[path + ".bias"] = source.normal(path + ".bias", rows, std=bias_std)
    if biases:
        tensors[prefix + "self_attn.sinks"] = source.normal(prefix + "sinks", heads, std=1.0)
    return tensors


def _moe(source: Source, config: dict, prefix: str, style: Style) -> dict[str, torch.Tensor]:
    hidden, ff, experts = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    mlp = prefix + "mlp."
    tensors = {
        mlp + "router.weight": source.normal(mlp + "router", (experts, hidden), std=style.router_gain * hidden**-0.5),
        mlp + "router.bias": source.normal(mlp + "router.bias", experts, std=0.3),
    }
    shapes = {
        "gate_up_proj": (2 * ff, hidden, 1.0, 0.3),
        "down_proj": (hidden, ff, style.branch_gain, 0.2 * style.branch_gain),
    }
    for name, (rows, k, gain, bias_std) in shapes.items():
        path = f"{mlp}experts.{name}"
        encoded = [mxfp4.encode(source.matrix(f"{path}.{e}", rows, k, gain)) for e in range(experts)]
        tensors[path + "_blocks"] = torch.stack([blocks for blocks, _ in encoded])
        tensors[path + "_scales"] = torch.stack([scales for _, scales in encoded])
        tensors[path + "_bias"] = source.normal(path + ".bias", (experts, rows), std=bias_std)
    if style.saturate:
        bias = tensors[mlp + "experts.gate_up_proj_bias"]
        bias[source.normal(mlp + "saturate", bias.shape, std=1.0).abs() > 2.2] *= 25.0
    return tensors


def _dense_mlp(source: Source, config: dict, prefix: str, style: Style) -> dict[str, torch.Tensor]:
    hidden, ff = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "gate_proj": (ff, hidden, 1.0),
        "up_proj": (ff, hidden, 1.0),
        "down_proj": (hidden, ff, 1.5 * style.branch_gain),
    }
    return {
        f"{prefix}mlp.{name}.weight": source.matrix(f"{prefix}mlp.{name}", rows, k, gain)
        for name, (rows, k, gain) in shapes.items()
    }


def _bf16(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Everything but MXFP4 bytes is stored in bf16."""
    return {name: t if t.dtype == torch.uint8 else t.bfloat16() for name, t in tensors.items()}
