"""The nano model for training: GPT-OSS with float32 master weights on a CPU.

Same function as transformers' GptOssForCausalLM (train.py checks that at export), laid
out for speed: tokens are sorted by expert, attention is evaluated in blocks that skip
what the causal or sliding-window mask hides, and the loss is computed in slices.

Shapes use B sequences, T positions, N = B*T tokens, D hidden, H query heads, G key/value
heads, d head size, E experts, F expert width, K experts per token, V vocabulary.
"""

import math
import os

import torch
import torch.nn.functional as F
from torch import nn

FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
FLASH_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
HALF = torch.bfloat16 if torch.cpu._is_avx512_bf16_supported() else torch.float32   # of products in training
COMPILE = os.environ.get("KERNMILL_COMPILE", "1") == "1"


def fused(function):
    """Let torch fuse the element-wise steps of `function` (needs a C++ compiler)."""
    return torch.compile(function, dynamic=True) if COMPILE else function


def yarn_frequencies(config):
    """Return (inverse frequencies [d/2], attention factor) of YaRN without truncation."""
    scaling, dim, base = config["rope_scaling"], config["head_dim"], config["rope_theta"]
    factor, original = scaling["factor"], scaling["original_max_position_embeddings"]

    def correction(rotations):
        return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low = max(correction(scaling["beta_fast"]), 0)
    high = min(correction(scaling["beta_slow"]), dim - 1)
    powers = base ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    ramp = ((torch.arange(dim // 2, dtype=torch.float32) - low) / (high - low)).clamp(0, 1)
    frequencies = (1 / (factor * powers)) * ramp + (1 / powers) * (1 - ramp)
    return frequencies, 0.1 * math.log(factor) + 1.0


@fused
def rms_norm(x, weight, eps: float):
    """x [..., D] scaled to unit root mean square, times weight [D]."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


@fused
def rotate(x, cos, sin):
    """Rotary embedding of x [B, T, heads, d] by cos, sin [T, 1, d/2] or [B, T, 1, d/2]."""
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


@fused
def clamped_swiglu(gate, up, alpha: float, limit: float):
    """Element-wise expert activation of gate and up [M, F]."""
    gate = gate.clamp(max=limit)
    up = up.clamp(min=-limit, max=limit)
    return (up + 1) * (gate * torch.sigmoid(gate * alpha))


class Product(torch.autograd.Function):
    """x [N, I] times weight [O, I] transposed -> [N, O]; operands in HALF, sums and results in float32."""

    @staticmethod
    def forward(context, x, weight):
        x, weight = x.to(HALF), weight.to(HALF)
        context.save_for_backward(x, weight)
        return (x @ weight.t()).float()

    @staticmethod
    def backward(context, grad):
        x, weight = context.saved_tensors
        grad = grad.to(HALF)
        return (grad @ weight).float(), (grad.t() @ x).float()


def linear(x, weight, bias):
    """x [..., I] -> [..., O]: in float32 outside of training, else by Product."""
    if not torch.is_grad_enabled() or HALF == torch.float32:
        return F.linear(x, weight, bias)
    return Product.apply(x.flatten(0, -2), weight).view(*x.shape[:-1], len(weight)) + bias


class Branches:
    """Where the dialogues of a batch lie: positions and masks of attention.

    Rows hold groups of dialogues. A group begins with what its dialogues have in common, branch 0; each
    further branch goes on from there, at the position after it. A token sees the earlier tokens of its
    branch and of branch 0 of its group.
    """

    def __init__(self, groups, branches, positions):
        """groups, branches, positions [B, T]."""
        self.positions, self.masks = positions, {}
        t = groups.shape[1]
        seen = torch.ones(t, t, dtype=torch.bool).tril()
        seen = seen & (groups[:, :, None] == groups[:, None])
        seen &= (branches[:, None] == 0) | (branches[:, :, None] == branches[:, None])
        self.seen, self.far = seen, positions[:, :, None] - positions[:, None]

    def mask(self, window):
        """[B, 1, T, T] additive mask of a layer with this window (None: full attention)."""
        if window not in self.masks:
            seen = self.seen if window is None else self.seen & (self.far < window)
            self.masks[window] = torch.zeros(seen.shape).masked_fill(~seen, -math.inf)[:, None]
        return self.masks[window]


class SinkAttention(torch.autograd.Function):
    """Causal attention with one learned sink logit per head.

    q [B, H, T, d], k and v [B, H, T, d], sinks [H]; window None (full) or the number of
    keys a query sees, itself included; branches a Branches or None. The sink is a further key
    with value zero: the flash kernel runs without it and the result is rescaled by exp(lse - lse'), with
    lse' = log(exp(lse) + exp(sink)); the backward kernel given out' and lse' then yields
    the exact gradients.
    """

    @staticmethod
    def blocks(q, k, v, window, branches):
        """Yield (q, k, v, mask, query slice, key slice) for blocks over positions."""
        length = q.shape[2]
        size = 128
        for start in range(0, length, size):
            end = min(start + size, length)
            if branches is not None:
                mask = branches.mask(window)[:, :, start:end, :end].contiguous()
            else:
                rows = torch.arange(start, end)[:, None]
                columns = torch.arange(0, end)[None]
                hidden = columns > rows
                if window is not None:
                    hidden = hidden | (columns <= rows - window)
                mask = torch.zeros(hidden.shape).masked_fill(hidden, -math.inf)
            yield q[:, :, start:end], k[:, :, :end], v[:, :, :end], mask, slice(start, end), slice(0, end)

    @staticmethod
    def fold(x, window):
        """[B, H, T, d] -> [B*T/window, H, window, d]."""
        b, h, t, d = x.shape
        return x.view(b, h, t // window, window, d).transpose(1, 2).reshape(-1, h, window, d)

    @staticmethod
    def fold_keys(x, window):
        """[B, H, T, d] -> [B*T/window, H, 2*window, d]: each block and the one before."""
        b, h, t, d = x.shape
        own = x.view(b, h, t // window, window, d).transpose(1, 2)
        before = torch.cat((torch.zeros_like(own[:, :1]), own[:, :-1]), 1)
        return torch.cat((before, own), 3).reshape(-1, h, 2 * window, d)

    @staticmethod
    def unfold(x, b, t):
        """Inverse of fold."""
        n, h, w, d = x.shape
        return x.view(b, n // b, h, w, d).transpose(1, 2).reshape(b, h, t, d)

    @staticmethod
    def window_mask(b, t, window):
        """[B*T/window, 1, window, 2*window] additive mask; the first block has no past."""
        rows = torch.arange(window)[:, None] + window
        columns = torch.arange(2 * window)[None]
        hidden = (columns > rows) | (columns <= rows - window)
        mask = torch.zeros(window, 2 * window).masked_fill(hidden, -math.inf)
        mask = mask.repeat(b, t // window, 1, 1)
        mask[:, 0, :, :window] = -math.inf
        return mask.view(-1, 1, window, 2 * window)

    @staticmethod
    def forward(context, q, k, v, sinks, window, branches=None):
        b, h, t, d = q.shape
        cls = SinkAttention
        folds = window is not None and branches is None and t % window == 0
        if folds:
            folded = cls.fold(q, window), cls.fold_keys(k, window), cls.fold_keys(v, window)
            out, lse = FLASH(*folded, 0.0, False, attn_mask=cls.window_mask(b, t, window))
            out = cls.unfold(out, b, t)
            lse = lse.view(b, t // window, h, window).transpose(1, 2).reshape(b, h, t)
        else:
            out, lse = torch.empty_like(q), q.new_empty(b, h, t)
            for bq, bk, bv, mask, rows, _ in cls.blocks(q, k, v, window, branches):
                out[:, :, rows], lse[:, :, rows] = FLASH(bq, bk, bv, 0.0, False, attn_mask=mask)
        total = torch.logaddexp(lse, sinks[None, :, None])
        out = out * torch.exp(lse - total)[..., None]
        context.save_for_backward(q, k, v, sinks, out, total)
        context.window, context.branches, context.folds = window, branches, folds
        return out

    @staticmethod
    def backward(context, grad):
        q, k, v, sinks, out, total = context.saved_tensors
        window, cls = context.window, SinkAttention
        b, h, t, d = q.shape
        delta = (grad * out).sum(-1)
        grad_sinks = -(torch.exp(sinks[None, :, None] - total) * delta).sum((0, 2))
        if context.folds:
            n = t // window
            lse = total.view(b, h, n, window).transpose(1, 2).reshape(-1, h, window)
            gq, gk, gv = FLASH_BACKWARD(
                cls.fold(grad, window), cls.fold(q, window), cls.fold_keys(k, window),
                cls.fold_keys(v, window), cls.fold(out, window), lse, 0.0, False,
                attn_mask=cls.window_mask(b, t, window))

            def merge(x):
                x = x.view(b, n, h, 2, window, d)
                own = x[:, :, :, 1].clone()
                own[:, :-1] += x[:, 1:, :, 0]
                return own.transpose(1, 2).reshape(b, h, t, d)

            return cls.unfold(gq, b, t), merge(gk), merge(gv), grad_sinks, None, None
        gq, gk, gv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for bq, bk, bv, mask, rows, keys in cls.blocks(q, k, v, window, context.branches):
            part = FLASH_BACKWARD(
                grad[:, :, rows], bq, bk, bv, out[:, :, rows].contiguous(),
                total[:, :, rows].contiguous(), 0.0, False, attn_mask=mask)
            gq[:, :, rows] = part[0]
            gk[:, :, keys] += part[1]
            gv[:, :, keys] += part[2]
        return gq, gk, gv, grad_sinks, None, None


class Dispatch(torch.autograd.Function):
    """x [N, D] -> rows by expert [N*K, D]; `order` sorts token-expert pairs, `inverse` undoes it."""

    @staticmethod
    def forward(context, x, order, inverse, k):
        context.inverse, context.k = inverse, k
        return x.index_select(0, order // k)

    @staticmethod
    def backward(context, grad):
        rows = grad.index_select(0, context.inverse)
        return rows.view(-1, context.k, grad.shape[-1]).sum(1), None, None, None


class Collect(torch.autograd.Function):
    """Rows by expert [N*K, D] -> rows by token [N*K, D]."""

    @staticmethod
    def forward(context, rows, order, inverse):
        context.order = order
        return rows.index_select(0, inverse)

    @staticmethod
    def backward(context, grad):
        return grad.index_select(0, context.order), None, None


class SlicedLoss(torch.autograd.Function):
    """Mean cross entropy of hidden [N, D] through weight [V, D] for targets [N]."""

    @staticmethod
    def forward(context, hidden, weight, targets):
        n, size = hidden.shape[0], 512
        grad_hidden, grad_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        total, half = 0.0, weight.to(HALF)
        for start in range(0, n, size):
            part, want = hidden[start:start + size], targets[start:start + size, None]
            logits = (part.to(HALF) @ half.t()).float()
            lse = torch.logsumexp(logits, -1, keepdim=True)
            total += (lse - logits.gather(1, want)).sum().item()
            logits.sub_(lse).exp_()
            logits.scatter_add_(1, want, logits.new_full((len(part), 1), -1.0))
            logits = logits.to(HALF)
            grad_hidden[start:start + size] = (logits @ half).float()
            grad_weight += (logits.t() @ part.to(HALF)).float()
        context.save_for_backward(grad_hidden / n, grad_weight / n)
        return hidden.new_tensor(total / n)

    @staticmethod
    def backward(context, grad):
        grad_hidden, grad_weight = context.saved_tensors
        return grad_hidden * grad, grad_weight * grad, None


class Attention(nn.Module):
    def __init__(self, config, kind):
        super().__init__()
        hidden, self.size = config["hidden_size"], config["head_dim"]
        self.heads, self.groups = config["num_attention_heads"], config["num_key_value_heads"]
        self.q_proj = nn.Linear(hidden, self.heads * self.size)
        self.k_proj = nn.Linear(hidden, self.groups * self.size)
        self.v_proj = nn.Linear(hidden, self.groups * self.size)
        self.o_proj = nn.Linear(self.heads * self.size, hidden)
        self.sinks = nn.Parameter(torch.zeros(self.heads))
        self.window = config["sliding_window"] if kind == "sliding_attention" else None

    def forward(self, x, cos, sin, branches):
        """x [B, T, D] -> [B, T, D]."""
        b, t, _ = x.shape
        q, k, v = (linear(x, part.weight, part.bias) for part in (self.q_proj, self.k_proj, self.v_proj))
        q = rotate(q.view(b, t, self.heads, self.size), cos, sin).transpose(1, 2)
        k = rotate(k.view(b, t, self.groups, self.size), cos, sin)
        v = v.view(b, t, self.groups, self.size)
        repeat = self.heads // self.groups
        k = k.repeat_interleave(repeat, 2).transpose(1, 2).contiguous()
        v = v.repeat_interleave(repeat, 2).transpose(1, 2).contiguous()
        out = SinkAttention.apply(q.contiguous(), k, v, self.sinks, self.window, branches)
        return linear(out.transpose(1, 2).reshape(b, t, -1), self.o_proj.weight, self.o_proj.bias)


class Experts(nn.Module):
    """Top-K routed experts. gate_up [E, 2, F, D] holds gate rows, then up rows."""

    def __init__(self, config):
        super().__init__()
        hidden, width = config["hidden_size"], config["intermediate_size"]
        self.count, self.top = config["num_local_experts"], config["num_experts_per_tok"]
        self.alpha, self.limit = 1.702, config["swiglu_limit"]
        self.router = nn.Linear(hidden, self.count)
        self.gate_up = nn.Parameter(torch.empty(self.count, 2, width, hidden))
        self.gate_up_bias = nn.Parameter(torch.zeros(self.count, 2, width))
        self.down = nn.Parameter(torch.empty(self.count, hidden, width))
        self.down_bias = nn.Parameter(torch.zeros(self.count, hidden))

    def forward(self, x):
        """x [N, D] -> (y [N, D], load-balancing loss)."""
        logits = self.router(x)
        best, chosen = logits.topk(self.top, -1)
        weights = best.softmax(-1)
        flat = chosen.flatten()
        order = flat.argsort(stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(order))
        counts = torch.bincount(flat, minlength=self.count)
        rows = Dispatch.apply(x, order, inverse, self.top)
        width = self.gate_up.shape[2]
        sizes = counts.tolist()
        gate_up, gate_up_bias = self.gate_up.flatten(1, 2).unbind(), self.gate_up_bias.flatten(1, 2).unbind()
        down, down_bias = self.down.unbind(), self.down_bias.unbind()
        outer = [
            linear(part, gate_up[e], gate_up_bias[e])
            for e, part in enumerate(rows.split(sizes))
        ]
        outer = torch.cat(outer)
        inner = clamped_swiglu(outer[:, :width], outer[:, width:], self.alpha, self.limit)
        parts = [
            linear(part, down[e], down_bias[e])
            for e, part in enumerate(inner.split(sizes))
        ]
        back = Collect.apply(torch.cat(parts), order, inverse).view(len(x), self.top, -1)
        y = (back * weights[..., None]).sum(1)
        share = counts.float() / len(flat)
        balance = self.count * (share * logits.softmax(-1).mean(0)).sum()
        return y, balance


class Layer(nn.Module):
    def __init__(self, config, kind):
        super().__init__()
        self.input_layernorm = nn.Parameter(torch.ones(config["hidden_size"]))
        self.post_attention_layernorm = nn.Parameter(torch.ones(config["hidden_size"]))
        self.attention = Attention(config, kind)
        self.experts = Experts(config)
        self.eps = config["rms_norm_eps"]

    def forward(self, x, cos, sin, branches):
        x = x + self.attention(rms_norm(x, self.input_layernorm, self.eps), cos, sin, branches)
        flat = rms_norm(x, self.post_attention_layernorm, self.eps).flatten(0, 1)
        y, balance = self.experts(flat)
        return x + y.view_as(x), balance


class Nano(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Parameter(torch.empty(config["vocab_size"], config["hidden_size"]))
        self.layers = nn.ModuleList(Layer(config, kind) for kind in config["layer_types"])
        self.norm = nn.Parameter(torch.ones(config["hidden_size"]))
        self.lm_head = nn.Parameter(torch.empty(config["vocab_size"], config["hidden_size"]))
        frequencies, scale = yarn_frequencies(config)
        angles = torch.outer(torch.arange(config["max_position_embeddings"]).float(), frequencies)
        self.register_buffer("cos", (angles.cos() * scale)[:, None], persistent=False)
        self.register_buffer("sin", (angles.sin() * scale)[:, None], persistent=False)
        self.initialise()

    def initialise(self):
        depth = len(self.layers)
        nn.init.normal_(self.embed, std=0.4)
        nn.init.normal_(self.lm_head, std=0.01)
        for layer in self.layers:
            a, e = layer.attention, layer.experts
            for linear in (a.q_proj, a.k_proj, a.v_proj, a.o_proj, e.router):
                nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
                nn.init.zeros_(linear.bias)
            a.o_proj.weight.data.mul_(0.5 / math.sqrt(depth))
            nn.init.normal_(e.router.weight, std=0.02)
            nn.init.normal_(e.gate_up, std=e.gate_up.shape[-1] ** -0.5)
            nn.init.normal_(e.down, std=0.5 * e.down.shape[-1] ** -0.5 / math.sqrt(depth))

    def hidden(self, tokens, branches=None):
        """tokens [B, T], branches a Branches or None -> (final normalised hidden [B, T, D], balance loss)."""
        x = F.embedding(tokens, self.embed)
        where = slice(tokens.shape[1]) if branches is None else branches.positions
        cos, sin, balance = self.cos[where], self.sin[where], 0.0
        for layer in self.layers:
            x, part = layer(x, cos, sin, branches)
            balance = balance + part
        return rms_norm(x, self.norm, self.config["rms_norm_eps"]), balance / len(self.layers)

    def loss(self, tokens, targets, branches=None):
        """Return (cross entropy in nats, load-balancing loss); tokens, targets [B, T].

        Targets of -1 do not count.
        """
        hidden, balance = self.hidden(tokens, branches)
        hidden, targets = hidden.flatten(0, 1), targets.flatten()
        if branches is not None:
            counted = (targets >= 0).nonzero().squeeze(1)
            hidden, targets = hidden[counted], targets[counted]
        return SlicedLoss.apply(hidden, self.lm_head, targets), balance

    @torch.no_grad()
    def logits(self, tokens):
        """tokens [B, T] -> logits [B, T, V]."""
        return self.hidden(tokens)[0] @ self.lm_head.t()
