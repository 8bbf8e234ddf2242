"""The order of arithmetic of docs/dev/numerics.md, in PyTorch.

An fma of f32 values is computed in f64: the product is exact there and only the sum is rounded, so the result differs from
a true fma only in a double-rounding case of about one in 2^29. `exp` is correctly rounded instead of the polynomial that
docs/dev/numerics.md defines, so results agree with it to the last bits, not bit for bit.
"""

import torch

BLOCK = 32
LANES = 16


def fma(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """f32 a*b + c, rounded once; shapes broadcast."""
    return (a.double() * b.double()).add_(c.double()).float()


def lane_tree(lanes: torch.Tensor) -> torch.Tensor:
    """[..., 16] -> [...]: the fixed tree that ends every lane sum."""
    for half in (8, 4, 2, 1):
        lanes = lanes[..., :half] + lanes[..., half : 2 * half]
    return lanes[..., 0]


def _in_lanes(x: torch.Tensor, lanes: int) -> torch.Tensor:
    """[..., n] -> [steps, ..., lanes], zeros appended (adding +0 changes no sum that starts at +0)."""
    padded = torch.nn.functional.pad(x, (0, -x.shape[-1] % lanes))
    return padded.unflatten(-1, (-1, lanes)).movedim(-2, 0)


def lane_sum(x: torch.Tensor) -> torch.Tensor:
    """[..., n] -> [...]."""
    steps = _in_lanes(x, LANES)
    lanes = torch.zeros_like(steps[0])
    for step in steps:
        lanes = lanes + step
    return lane_tree(lanes)


def lane_sum_of_squares(x: torch.Tensor) -> torch.Tensor:
    """[..., n] -> [...]."""
    steps = _in_lanes(x, LANES)
    lanes = torch.zeros_like(steps[0])
    for step in steps:
        lanes = fma(step, step, lanes)
    return lane_tree(lanes)


def dot4(w: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """w [..., R, n], a [..., T, n] -> [..., T, R] with four accumulators by position mod 4."""
    accumulators = []
    for lane in range(4):
        acc = torch.zeros(*a.shape[:-1], w.shape[-2])
        for i in range(lane, a.shape[-1], 4):
            acc = fma(a[..., i, None], w[..., None, :, i], acc)
        accumulators.append(acc)
    return (accumulators[0] + accumulators[1]) + (accumulators[2] + accumulators[3])


def exp(x: torch.Tensor) -> torch.Tensor:
    y = torch.exp(x.clamp(max=88.0).double()).float()
    return torch.where(x < -87.0, 0.0, y)


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    return 1.0 / (1.0 + exp(0.0 - x))


def f16(x: torch.Tensor) -> torch.Tensor:
    """f32 rounded to the nearest f16, as f32."""
    return x.half().float()


def flush(x: torch.Tensor) -> torch.Tensor:
    """Denormals as zeros of their sign."""
    return torch.where(x.abs() < torch.finfo(torch.float32).tiny, x * 0.0, x)


def bf16(x: torch.Tensor) -> torch.Tensor:
    """f32 rounded to the nearest bf16, denormals to zeros, as f32."""
    return flush(x).bfloat16().float()


def tile_dot(w: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """w [R, k], a [T, k], both bf16 values -> [T, R]: blocks of 32, even and odd elements apart, denormals as zeros."""
    w, a = flush(w), flush(a)
    acc = torch.zeros(a.shape[0], w.shape[0])
    for first in range(0, a.shape[1], BLOCK):
        sums = [torch.zeros_like(acc), torch.zeros_like(acc)]
        for i in range(first, first + BLOCK):
            sums[i % 2] = flush(fma(a[:, i, None], w[None, :, i], sums[i % 2]))
        acc = flush(acc + flush(sums[0] + sums[1]))
    return acc


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x [T, n], weight [n] -> [T, n]."""
    mean = lane_sum_of_squares(x) / x.shape[-1]
    r = 1.0 / torch.sqrt(mean + torch.tensor(eps, dtype=torch.float32))
    return (x * r.unsqueeze(-1)) * weight


def rope_tables(rope: dict, head_dim: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(cos, sin), each f32 [count, head_dim/2], for positions from 0; `rope` as checkpoint.rope_of gives it."""
    pair = torch.arange(head_dim // 2, dtype=torch.float64)
    inverse = 1.0 / rope["rope_theta"] ** (2.0 * pair / head_dim)
    factor = 1.0
    if rope["rope_type"] == "yarn":
        inverse = _yarn(rope, head_dim, pair, inverse)
        factor = float(0.1 * torch.log(torch.tensor(rope["factor"], dtype=torch.float64)) + 1.0)
    elif rope["rope_type"] == "llama3":
        inverse = _llama3(rope, inverse)
    elif rope["rope_type"] != "default":
        raise ValueError(f"rope_type {rope['rope_type']!r} is not supported")
    angle = (torch.arange(count, dtype=torch.float32)[:, None] * inverse.float()).double()
    return (angle.cos() * factor).float(), (angle.sin() * factor).float()


def _yarn(rope: dict, head_dim: int, pair: torch.Tensor, inverse: torch.Tensor) -> torch.Tensor:
    """f64 [head_dim/2] plain inverse frequencies -> YaRN's (arXiv:2309.00071)."""
    theta = torch.tensor(rope["rope_theta"], dtype=torch.float64)
    context = rope["original_max_position_embeddings"]

    def dim(rotations: float) -> torch.Tensor:
        return head_dim * torch.log(context / (2 * torch.pi * torch.tensor(rotations, dtype=torch.float64))) / (2 * theta.log())

    low, high = dim(rope["beta_fast"]), dim(rope["beta_slow"])
    if rope["truncate"]:
        low, high = low.floor(), high.ceil()
    low, high = low.clamp(0, head_dim - 1), high.clamp(0, head_dim - 1)
    if low == high:
        high = high + 0.001
    ramp = ((pair - low) / (high - low)).clamp(0, 1)
    return inverse / rope["factor"] * ramp + inverse * (1 - ramp)


def _llama3(rope: dict, inverse: torch.Tensor) -> torch.Tensor:
    """f64 [head_dim/2]: long wavelengths divided by the factor, short ones kept, those between blended."""
    context, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
    keep = ((context * inverse / (2 * torch.pi) - low) / (high - low)).clamp(0, 1)
    return (1 - keep) * inverse / rope["factor"] + keep * inverse


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Half-split rotation of x [T, heads, head_dim] by tables [T, head_dim/2]."""
    lo, hi = x.chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat((lo * cos - hi * sin, hi * cos + lo * sin), dim=-1)


SEGMENT = 1024  # keys; attention is split by absolute position


def attention(q, k, v, sinks, window: int | None) -> torch.Tensor:
    """q f32 [T, H, d]; k, v f32 [T, KV, d] (already f16 values); sinks f32 [H] or None -> f32 [T, H, d].

    Query t sees keys max(0, t-window+1)..=t. One query head at a time.
    """
    count, heads, head_dim = q.shape
    group = heads // k.shape[1]
    position = torch.arange(count)
    seen = position[None, :] <= position[:, None]  # [query, key]
    if window is not None:
        seen &= position[None, :] > position[:, None] - window
    sm_scale = torch.tensor(head_dim, dtype=torch.float64).rsqrt().float()
    out = torch.empty_like(q)
    for head in range(heads):
        keys, values = k[:, head // group], v[:, head // group]
        scores = dot4(keys, q[:, head]) * sm_scale  # [T, T]
        scores = scores.masked_fill(~seen, -torch.inf)
        out[:, head] = _attend(scores, values, None if sinks is None else sinks[head])
    return out


def _attend(scores: torch.Tensor, values: torch.Tensor, sink: torch.Tensor | None) -> torch.Tensor:
    """scores [T, keys] (-inf out of view), values [keys, d] -> [T, d]: softmax by segments, the sink joining last."""
    segments = []
    for s, v in zip(scores.split(SEGMENT, dim=1), values.split(SEGMENT)):
        m = s.amax(dim=1)  # [T]; -inf where no key of the segment is in view
        e = exp(s - m.clamp(min=-1e30)[:, None])
        o = torch.zeros(s.shape[0], v.shape[1])
        for p in range(s.shape[1]):
            o = fma(e[:, p, None], v[p], o)
        segments.append((m, lane_sum(e), o))
    top = torch.stack([m for m, _, _ in segments]).amax(dim=0)  # [T]
    if sink is not None:
        top = torch.maximum(top, sink)
    total, out = torch.zeros_like(top), torch.zeros_like(segments[0][2])
    for m, l, o in segments:
        c = exp(m - top)
        total = fma(c, l, total)
        out = fma(c[:, None], o, out)
    if sink is not None:
        total = total + exp(sink - top)
    return out / total[:, None]


def router_topk(logits: torch.Tensor, top_k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """[T, E] -> (experts int64 [T, top_k] by descending logit, ties to the lower expert; weights f32 [T, top_k])."""
    values, experts = logits.sort(dim=1, descending=True, stable=True)
    e = exp(values[:, :top_k] - values[:, :1])
    total = e[:, 0]
    for i in range(1, top_k):
        total = total + e[:, i]
    return experts[:, :top_k], e / total[:, None]
