"""Quantised blocks of docs/dev/numerics.md: int8 weights, q8 activations, and the dot product of the two.

Integers are held in f32 tensors; every sum of products within a block is below 2^24, so f32 matmuls of them are exact.
"""

from dataclasses import dataclass

import torch

import mxfp4
from arithmetic import BLOCK, fma


@dataclass
class BlockMatrix:
    """A quantised weight matrix."""

    q: torch.Tensor  # f32 integers [k/32, 32, rows]
    scale: torch.Tensor  # f32 [k/32, rows]
    halved: bool = False  # q holds 2*value, so the activation's scale enters halved


def scale_up_to_f16(scale: torch.Tensor) -> torch.Tensor:
    """The smallest f16 not below each positive f32, as f32."""
    half = scale.half()
    below = half.float() < scale
    return (half.view(torch.int16) + below.short()).view(torch.float16).float()


def int8_matrix(weight: torch.Tensor) -> BlockMatrix:
    """f32 [rows, k] -> int8 blocks with f16 scales rounded up."""
    grouped = weight.unflatten(1, (-1, BLOCK))  # [rows, k/32, 32]
    scale = scale_up_to_f16(grouped.abs().amax(-1) / 127.0)  # [rows, k/32]
    q = torch.round(grouped / scale.clamp(min=1e-30).unsqueeze(-1)).clamp_(-127, 127)
    return BlockMatrix(q.permute(1, 2, 0).contiguous(), scale.T.contiguous())


def mxfp4_matrix(blocks: torch.Tensor, scales: torch.Tensor) -> BlockMatrix:
    """One expert's u8 [rows, k/32, 16] and u8 [rows, k/32], bit for bit, as integers 2*value."""
    q = 2.0 * mxfp4.E2M1[mxfp4.codes(blocks).int()]  # [rows, k/32, 32]
    return BlockMatrix(q.permute(1, 2, 0).contiguous(), mxfp4.scale_values(scales).T.contiguous(), halved=True)


def quantize_q8(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """f32 [T, k] -> (q f32 integers [k/32, T, 32], scale f32 [k/32, T])."""
    grouped = x.unflatten(1, (-1, BLOCK)).transpose(0, 1)  # [k/32, T, 32]
    amax = grouped.abs().amax(-1)
    # A full tensor as the dividend: torch turns `scalar / tensor` into a reciprocal and a product, which rounds twice.
    inv = torch.where(amax == 0, 0.0, torch.full_like(amax, 127.0) / amax)
    return torch.round(grouped * inv.unsqueeze(-1)), amax / 127.0


def block_dot(x: torch.Tensor, matrix: BlockMatrix) -> torch.Tensor:
    """Quantises x f32 [T, k] to q8 and multiplies by the matrix, blocks in ascending order -> f32 [T, rows]."""
    q, scale = quantize_q8(x)
    w_scale = 0.5 * matrix.scale if matrix.halved else matrix.scale
    acc = torch.zeros(x.shape[0], matrix.q.shape[2])
    for block in range(q.shape[0]):
        isum = q[block] @ matrix.q[block]  # [T, rows], exact integers
        acc = fma(isum * w_scale[block], scale[block, :, None], acc)
    return acc


def dequantised_q8(x: torch.Tensor) -> torch.Tensor:
    """f32 [T, k] -> f32 [T, k], what q8 keeps of it."""
    q, scale = quantize_q8(x)
    return (q * scale.unsqueeze(-1)).transpose(0, 1).flatten(1)


def dequantised(matrix: BlockMatrix) -> torch.Tensor:
    """-> f32 [rows, k]."""
    scale = 0.5 * matrix.scale if matrix.halved else matrix.scale
    return (matrix.q * scale.unsqueeze(1)).flatten(0, 1).T
