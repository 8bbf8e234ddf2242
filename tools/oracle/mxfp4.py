"""MXFP4 in the published GPT-OSS layout.

A block is 32 consecutive weights of a row: 16 bytes of E2M1 codes (low nibble = even k, first) and one
E8M0 scale byte s, worth 2^(s-127).
"""

import torch

BLOCK = 32

# Value of each E2M1 code; bit 3 is the sign.
E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])

# Midpoints between neighbouring magnitudes; a tie takes the smaller magnitude.
_MIDPOINTS = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])


def encode(weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """f32 [..., k] -> (blocks u8 [..., k/32, 16], scales u8 [..., k/32]), nearest code under a power-of-two scale.

    The scale puts the block's largest magnitude into [4, 8) (OCP rule), so that values above 6 saturate.
    """
    grouped = weights.float().unflatten(-1, (-1, BLOCK))
    amax = grouped.abs().amax(-1)
    exponent = torch.frexp(amax).exponent.clamp(-124, 127)
    scales = torch.where(amax > 0, exponent - 3 + 127, 127)
    scaled = grouped * torch.exp2((127 - scales).float()).unsqueeze(-1)
    code = torch.bucketize(scaled.abs(), _MIDPOINTS, out_int32=True).to(torch.uint8)
    code |= scaled.signbit().to(torch.uint8) << 3
    return code[..., 0::2] | (code[..., 1::2] << 4), scales.to(torch.uint8)


def codes(blocks: torch.Tensor) -> torch.Tensor:
    """u8 [..., k/32, 16] -> codes u8 [..., k/32, 32] in order of k."""
    return torch.stack((blocks & 0x0F, blocks >> 4), dim=-1).flatten(-2)


def scale_values(scales: torch.Tensor) -> torch.Tensor:
    """u8 scale bytes -> f32 powers of two (255 is not a number and refused)."""
    if (scales == 255).any():
        raise ValueError("MXFP4 scale byte 255 (NaN)")
    return torch.exp2(scales.double() - 127).float()


def decode(blocks: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """(u8 [..., k/32, 16], u8 [..., k/32]) -> f32 [..., k], exact."""
    values = E2M1[codes(blocks).int()]
    return values.mul_(scale_values(scales).unsqueeze(-1)).flatten(-2)
