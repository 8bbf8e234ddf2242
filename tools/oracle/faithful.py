"""The quantised graphs of the `faithful` and `bf16` presets, simulated in PyTorch from docs/dev/numerics.md.

Weights: MXFP4 experts bit for bit; attention, dense MLP and unembedding matrices as int8 blocks; embedding, router, norms,
biases and sinks as in the checkpoint. Activations are quantised to q8 in front of every quantised matrix: the input norm's
output (q, k, v), the attention output (o), the post-attention norm's output (gate, up; the router takes it in f32), the
gated activation (down) and the final norm's output (unembedding). In `bf16`, gate, up and down take bf16 instead. K (after RoPE) and V are stored as f16, q stays f32.
"""

from dataclasses import dataclass, field

import torch

from arithmetic import attention, bf16, dot4, f16, fma, rms_norm, rope_tables, rotate, router_topk, sigmoid, tile_dot
from checkpoint import Checkpoint, head_dim_of, rope_of
from quant import block_dot, dequantised, dequantised_q8, int8_matrix, mxfp4_matrix
from reference import smallest_gap


@dataclass(frozen=True)
class Rounding:
    """What the graph quantises. Anything but FAITHFUL and BF16 is for finding out where an error comes from."""

    int8_weights: bool = True
    q8_activations: bool = True
    f16_kv: bool = True
    bf16_experts: bool = False


FAITHFUL = Rounding()
BF16 = Rounding(bf16_experts=True)
NONE = Rounding(int8_weights=False, q8_activations=False, f16_kv=False)


@dataclass
class Trace:
    """What a run saw besides its logits."""

    router_gaps: list[float] = field(default_factory=list)  # per layer, see reference.float32_logits
    experts: list[torch.Tensor] = field(default_factory=list)  # per layer, int64 [T, top_k], descending
    expert_input_peak: float = 0.0  # largest |gate| or |up| before clamping


def faithful_logits(checkpoint: Checkpoint, tokens: torch.Tensor) -> torch.Tensor:
    """tokens i32 [T] -> logits f32 [T, vocab]."""
    return Simulation(checkpoint).logits(tokens)


class Simulation:
    """Runs a checkpoint's graph on one prompt, one matrix in memory at a time."""

    def __init__(self, checkpoint: Checkpoint, rounding: Rounding = FAITHFUL):
        self.checkpoint = checkpoint
        self.config = checkpoint.config
        self.rounding = rounding
        self.names = set(checkpoint.names())
        self.trace = Trace()

    @torch.no_grad()
    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens i32 [T] -> logits f32 [T, vocab]."""
        tables = rope_tables(rope_of(self.config), head_dim_of(self.config), len(tokens))
        mlp = self._moe if self.config["model_type"] == "gpt_oss" else self._dense_mlp
        x = self.checkpoint.f32("model.embed_tokens.weight")[tokens.long()]  # [T, hidden]
        for index in range(self.config["num_hidden_layers"]):
            prefix = f"model.layers.{index}."
            h = self._norm(prefix + "input_layernorm", x)
            x = x + self._attention(prefix + "self_attn.", h, tables, self._window(index))
            h = self._norm(prefix + "post_attention_layernorm", x)
            x = x + mlp(prefix + "mlp.", h)
        h = self._norm("model.norm", x)
        tied = self.config.get("tie_word_embeddings", False)
        return self._linear("model.embed_tokens" if tied else "lm_head", h)

    def _window(self, index: int) -> int | None:
        """The layer's attention window in tokens, None for full attention."""
        kinds = self.config.get("layer_types")
        return self.config["sliding_window"] if kinds and kinds[index] == "sliding_attention" else None

    def _norm(self, path: str, x: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, self.checkpoint.f32(path + ".weight"), self.config["rms_norm_eps"])

    def _linear(self, path: str, x: torch.Tensor) -> torch.Tensor:
        """x f32 [T, k] through the int8 matrix at `path`, its bias (if it has one) added last -> [T, rows]."""
        weight = self.checkpoint.f32(path + ".weight")
        if self.rounding.int8_weights and self.rounding.q8_activations:
            y = block_dot(x, int8_matrix(weight))
        else:
            weight = dequantised(int8_matrix(weight)) if self.rounding.int8_weights else weight
            y = self._activation(x) @ weight.T
        return y + self.checkpoint.f32(path + ".bias") if path + ".bias" in self.names else y

    def _activation(self, x: torch.Tensor) -> torch.Tensor:
        return dequantised_q8(x) if self.rounding.q8_activations else x

    def _attention(self, prefix: str, h: torch.Tensor, tables, window: int | None) -> torch.Tensor:
        """h f32 [T, hidden] -> [T, hidden]."""
        head_dim = head_dim_of(self.config)
        q, k, v = (self._linear(prefix + p, h).unflatten(1, (-1, head_dim)) for p in ("q_proj", "k_proj", "v_proj"))
        q, k = rotate(q, *tables), rotate(k, *tables)
        if self.rounding.f16_kv:
            k, v = f16(k), f16(v)
        sinks = self.checkpoint.f32(prefix + "sinks") if prefix + "sinks" in self.names else None
        return self._linear(prefix + "o_proj", attention(q, k, v, sinks, window).flatten(1))

    def _moe(self, prefix: str, h: torch.Tensor) -> torch.Tensor:
        """h f32 [T, hidden] -> [T, hidden]: the chosen experts' outputs, added in ascending expert id."""
        top_k = self.config["num_experts_per_tok"]
        router = dot4(self.checkpoint.f32(prefix + "router.weight"), h) + self.checkpoint.f32(prefix + "router.bias")  # [T, E]
        chosen, weights = router_topk(router, top_k)  # [T, top_k] each
        self.trace.router_gaps.append(smallest_gap(router, top_k))
        self.trace.experts.append(chosen)

        stored = {name: self.checkpoint.raw(f"{prefix}experts.{name}") for name in _EXPERT_TENSORS}
        acc = torch.zeros_like(h)
        for expert in range(self.config["num_local_experts"]):
            token, slot = torch.where(chosen == expert)  # [n] each
            if len(token) == 0:
                continue
            gate_up = self._expert_linear(stored, "gate_up_proj", expert, h[token])  # [n, 2*ff], even gate, odd up
            self.trace.expert_input_peak = max(self.trace.expert_input_peak, gate_up.abs().max().item())
            glu = clamped_swiglu(gate_up[:, 0::2], gate_up[:, 1::2])  # [n, ff]
            y = self._expert_linear(stored, "down_proj", expert, glu)  # [n, hidden]
            acc[token] = fma(weights[token, slot, None], y, acc[token])
        return acc

    def _expert_linear(self, stored: dict[str, torch.Tensor], name: str, expert: int, x: torch.Tensor) -> torch.Tensor:
        """x f32 [n, k] through one expert's MXFP4 matrix, bias added last -> [n, rows]."""
        matrix = mxfp4_matrix(stored[name + "_blocks"][expert], stored[name + "_scales"][expert])
        if self.rounding.bf16_experts:
            y = tile_dot(dequantised(matrix), bf16(x))
        else:
            y = block_dot(x, matrix) if self.rounding.q8_activations else x @ dequantised(matrix).T
        return y + stored[name + "_bias"][expert].float()

    def _dense_mlp(self, prefix: str, h: torch.Tensor) -> torch.Tensor:
        """h f32 [T, hidden] -> [T, hidden]."""
        gate, up = self._linear(prefix + "gate_proj", h), self._linear(prefix + "up_proj", h)
        return self._linear(prefix + "down_proj", (gate * sigmoid(gate)) * up)


_EXPERT_TENSORS = [f"{name}_{part}" for name in ("gate_up_proj", "down_proj") for part in ("blocks", "scales", "bias")]


def clamped_swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """[n, ff] each -> [n, ff]."""
    gate = gate.clamp(max=7.0)
    up = up.clamp(-7.0, 7.0)
    return (up + 1.0) * (gate * sigmoid(1.702 * gate))
