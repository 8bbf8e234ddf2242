"""MXFP4: blocks of 32 E2M1 values along the last dimension with a power-of-two scale."""

import torch

VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
BLOCK = 32


def round_e2m1(x):
    """Round each |x| <= 6 (larger saturates) to the nearest E2M1 value."""
    size = x.abs().clamp(max=6.0)
    step = torch.where(size < 2, 0.5, torch.where(size < 4, 1.0, 2.0))
    return torch.copysign(torch.round(size / step) * step, x)


def nearest(w):
    """Return (quantised w, block exponents [..., n/32]) for w [..., n].

    Of the two power-of-two scales around the block's largest magnitude (the one that
    holds it without saturation and the next lower) the one with less squared error.
    """
    blocks = w.unflatten(-1, (-1, BLOCK))
    largest = blocks.abs().amax(-1, keepdim=True).clamp(min=2.0**-100)
    high = torch.ceil(torch.log2(largest / 6.0))
    scale = torch.exp2(high)
    first = round_e2m1(blocks / scale) * scale
    second = round_e2m1(blocks / (scale * 0.5)) * (scale * 0.5)
    better = (second - blocks).square().sum(-1, keepdim=True) < (first - blocks).square().sum(-1, keepdim=True)
    value = torch.where(better, second, first)
    return value.flatten(-2), (high - better.float()).squeeze(-1)


def pack(w):
    """w [..., n] -> (blocks u8 [..., n/32, 16], scales u8 [..., n/32]).

    Low nibble = even position. The stored value is exactly nearest(w)[0].
    """
    value, exponent = nearest(w)
    scaled = value.unflatten(-1, (-1, BLOCK)) / torch.exp2(exponent)[..., None]
    code = (scaled.abs()[..., None] - VALUES).abs().argmin(-1)
    code = code + 8 * torch.signbit(scaled)
    code = code.to(torch.uint8)
    return code[..., 0::2] | (code[..., 1::2] << 4), (exponent + 127).to(torch.uint8)


def unpack(blocks, scales):
    """Inverse of pack: float32 [..., n]."""
    signed = torch.cat((VALUES, -VALUES))
    codes = torch.stack((blocks & 15, blocks >> 4), -1).flatten(-2).long()
    return (signed[codes] * torch.exp2(scales.float() - 127)[..., None]).flatten(-2)
