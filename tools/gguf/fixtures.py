"""Makes the fixtures that hold kernmill's reader of block types against the gguf package.

    python tools/gguf/fixtures.py tests/fixtures/gguf [--files DIR]

OUT/blocks.safetensors has, for every type, what `gguf.quants.dequantize` makes of random blocks: the values of the first few
(`TYPE.values`, f32 [n, elements]) and a hash of all 1,000 (`TYPE.hash`, two i32). OUT/models.safetensors has, for a small llama model
of every type and for one of several types, the logits of a float64 forward over the dequantised weights (`NAME.logits`, f32
[tokens, vocab]) and the scales of its blocks (`NAME.scales`, i32 [matrices, 2]).

The blocks themselves are not stored: they come from a generator that the tests have too (`tests/gguf/random.rs`). With --files, every
model is also written as a GGUF file by the gguf package, with its tokens and expected logits beside it.
"""

import argparse
import json
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save_file

BLOCKS = 1000
# Places of a block's f16 fields; a BF16 or the upper half of an F32 is looked after like one.
FIELDS = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2],
    "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [], "F16": [0], "BF16": [0], "F32": [2], "NVFP4": [],
    "TQ1_0": [52], "TQ2_0": [64],
}
# f16: zeros, the smallest and the largest denormal, the smallest normal number, the largest number.
EDGES = np.array([0x0000, 0x8000, 0x0001, 0x03FF, 0x8001, 0x0400, 0x7BFF], np.uint16)
# The byte of E4M3 that is 1.
E4M3_ONE = 0x38

HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM, VOCAB, LAYERS, TOKENS = 256, 512, 4, 2, 64, 64, 2, 24
EPS, THETA = 1e-5, 10000.0


def words(seed, count):
    """`count` u64 of SplitMix64."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


def random_bytes(seed, count, size):
    """u8 [count, size]; every item begins with a new word."""
    per_item = (size + 7) // 8
    return words(seed, count * per_item).view(np.uint8).reshape(count, per_item * 8)[:, :size].copy()


def set_field(blocks, at, values):
    blocks[:, at : at + 2] = np.broadcast_to(np.asarray(values, np.uint16), len(blocks)).copy().view(np.uint8).reshape(-1, 2)


def random_blocks(name, seed, count):
    """Blocks of any bits whose scales are finite; 7 of 16 have scales from EDGES."""
    elements, size = gguf.GGML_QUANT_SIZES[Type[name]]
    blocks = random_bytes(seed, count, size)
    exponent = 0x7C00 if name not in ("BF16", "F32") else 0x7F80
    index = np.arange(count)
    for number, at in enumerate(FIELDS[name]):
        field = blocks[:, at : at + 2].copy().view(np.uint16).reshape(-1)
        field = np.where(field & exponent == exponent, field & ~np.uint16(0x4000), field)
        if elements > 1:
            field = np.where(index % 16 < 7, EDGES[(index % 16 + 3 * number) % 7], field)
        set_field(blocks, at, field)
    if name == "MXFP4":
        blocks[:, 0] = np.where(blocks[:, 0] > 252, 127, blocks[:, 0])
    if name == "NVFP4":
        # Codes of NaN become others.
        blocks[:, :4] = np.where(blocks[:, :4] & 127 == 127, blocks[:, :4] ^ 64, blocks[:, :4])
    return blocks


def dequantized(name, blocks):
    return gguf.quants.dequantize(blocks, Type[name]).astype(np.float32).reshape(len(blocks), -1)


def word_hash(values):
    """FNV-1a over the values' bits, a 32-bit word at a time."""
    state = 0xCBF29CE484222325
    for word in np.ascontiguousarray(values).view(np.uint32).reshape(-1).tolist():
        state = ((state ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return np.array([state], np.uint64).view(np.int32)


def block_fixture():
    tensors = {}
    for number, name in enumerate(FIELDS):
        values = dequantized(name, random_blocks(name, number, BLOCKS))
        assert np.isfinite(values).all(), name
        tensors[f"{name}.values"] = values[: 8 if values.shape[1] == 256 else 16].copy()
        tensors[f"{name}.hash"] = word_hash(values)
    return tensors


def matrices():
    """Name, rows, columns, in the order of their seeds."""
    shapes = [("token_embd", VOCAB, HIDDEN), ("output", VOCAB, HIDDEN)]
    for layer in range(LAYERS):
        shapes += [
            (f"blk.{layer}.{name}", rows, cols)
            for name, rows, cols in [
                ("attn_q", HEADS * HEAD_DIM, HIDDEN), ("attn_k", KV_HEADS * HEAD_DIM, HIDDEN),
                ("attn_v", KV_HEADS * HEAD_DIM, HIDDEN), ("attn_output", HIDDEN, HEADS * HEAD_DIM),
                ("ffn_gate", INNER, HIDDEN), ("ffn_up", INNER, HIDDEN), ("ffn_down", HIDDEN, INNER),
            ]
        ]
    return shapes


def mixed(matrix):
    """As the usual quantisers do, and with two types in the layers of one matrix that have nothing in common."""
    own = {"blk.0.ffn_up": "MXFP4", "blk.1.ffn_up": "Q8_0", "blk.0.ffn_gate": "BF16", "blk.1.ffn_gate": "Q3_K"}
    more = ["output", "blk.0.attn_v", "blk.0.ffn_down"]
    return own.get(matrix, "Q6_K" if matrix in more else "Q4_K")


def weighted(name, seed, rows, cols, deviation):
    """Random blocks of a matrix whose elements deviate from 0 by about `deviation`; its two scales; its values."""
    elements, size = gguf.GGML_QUANT_SIZES[Type[name]]
    if elements == 1:
        shift = round(np.log2(74 / deviation))
        values = (random_bytes(seed, rows * cols, 1).astype(np.float32) - 128) * np.float32(2.0**-shift)
        values = values.reshape(rows, cols)
        return gguf.quants.quantize(values, Type[name]), (shift, 0), values
    blocks = random_bytes(seed, rows * cols // elements, size)
    if name == "Q8_0":
        # As quantisers do, without -128.
        blocks[:, 2:] = np.where(blocks[:, 2:] == 0x80, 0x81, blocks[:, 2:])

    def values(*scales):
        for at, scale in zip(FIELDS[name], scales):
            set_field(blocks, at, np.float16(scale).view(np.uint16))
        return dequantized(name, blocks)

    if name == "MXFP4":
        blocks[:, 0] = 127
        scales = (127 + round(np.log2(deviation / values().std())), 0)
        blocks[:, 0] = scales[0]
    elif name == "NVFP4":
        blocks[:, :4] = E4M3_ONE
        unit = int(gguf.quants.NVFP4.fp32_to_ue4m3(np.float32(deviation / values().std())))
        blocks[:, :4] = unit + np.arange(4)
        scales = (unit, 0)
    else:
        factor, offset = values(1, 0), values(0, 1)
        ratio = -factor.mean() / offset.mean() if len(FIELDS[name]) == 2 else 0
        unit = deviation / (factor + ratio * offset).std() if ratio else deviation / factor.std()
        values(unit, unit * ratio)
        scales = tuple(int(np.float16(x).view(np.uint16)) for x in (unit, unit * ratio))
    return blocks.reshape(rows, -1), scales, values_of(name, blocks, rows)


def values_of(name, blocks, rows):
    return dequantized(name, blocks).reshape(rows, -1)


def norm_weights(seed):
    return 1 + (random_bytes(seed, HIDDEN, 1).reshape(-1).astype(np.float32) - 128) / np.float32(512)


def model(number, type_of):
    """(name -> stored bytes and type), scales, (name -> values)."""
    stored, scales, values = {}, [], {}
    for index, (name, rows, cols) in enumerate(matrices()):
        kind = type_of(name)
        deviation = 1.0 if name == "token_embd" else 1.3 / cols**0.5
        raw, scale, read = weighted(kind, 1000 * (number + 1) + index, rows, cols, deviation)
        stored[f"{name}.weight"], values[name] = (raw, Type[kind]), read
        scales.append(scale)
    norms = ["output_norm"] + [f"blk.{i}.{norm}" for i in range(LAYERS) for norm in ("attn_norm", "ffn_norm")]
    for index, name in enumerate(norms):
        values[name] = norm_weights(1000 * (number + 1) + 500 + index)
        stored[f"{name}.weight"] = values[name], Type.F32
    return stored, np.array(scales, np.int32), values


def forward(values, ids):
    """Float64 logits. Files of llama models have the two rows that RoPE rotates together side by side."""
    w = {name: value.astype(np.float64) for name, value in values.items()}
    count = len(ids)
    angle = np.outer(np.arange(count), THETA ** (-np.arange(0, HEAD_DIM, 2) / HEAD_DIM))[:, None]  # [T, 1, d/2]
    cos, sin = np.cos(angle), np.sin(angle)

    def norm(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * weight

    def rotated(x):
        first, second = x[..., ::2], x[..., 1::2]
        return np.stack([first * cos - second * sin, second * cos + first * sin], -1).reshape(x.shape)

    x = w["token_embd"][ids]
    for layer in range(LAYERS):
        own = {name[len(f"blk.{layer}.") :]: value for name, value in w.items() if name.startswith(f"blk.{layer}.")}
        h = norm(x, own["attn_norm"])
        q = rotated((h @ own["attn_q"].T).reshape(count, HEADS, HEAD_DIM))
        k = rotated((h @ own["attn_k"].T).reshape(count, KV_HEADS, HEAD_DIM)).repeat(HEADS // KV_HEADS, 1)
        v = (h @ own["attn_v"].T).reshape(count, KV_HEADS, HEAD_DIM).repeat(HEADS // KV_HEADS, 1)
        scores = np.einsum("thd,shd->hts", q, k) / HEAD_DIM**0.5 + np.triu(np.full((count, count), -np.inf), 1)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        x = x + np.einsum("hts,shd->thd", scores, v).reshape(count, -1) @ own["attn_output"].T
        h = norm(x, own["ffn_norm"])
        gate = h @ own["ffn_gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ own["ffn_up"].T)) @ own["ffn_down"].T
    return (norm(x, w["output_norm"]) @ w["output"].T).astype(np.float32)


def write_file(path, stored):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(EPS)
    writer.add_rope_freq_base(THETA)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_vocab_size(VOCAB)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for name, (raw, kind) in stored.items():
        writer.add_tensor(name, raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--files", type=Path, help="directory of GGUF files to write")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    save_file(block_fixture(), args.out / "blocks.safetensors")
    ids = [int(byte) % VOCAB for byte in random_bytes(0, TOKENS, 1)[:, 0]]
    tensors = {"tokens": np.array(ids, np.int32)}
    kinds = {name: lambda _, name=name: name for name in FIELDS} | {"mixed": mixed}
    for number, (name, type_of) in enumerate(kinds.items()):
        stored, tensors[f"{name}.scales"], values = model(number, type_of)
        logits = forward(values, ids)
        tensors[f"{name}.logits"] = logits
        print(f"{name}: logits deviate by {logits.std():.2f}")
        if args.files:
            args.files.mkdir(parents=True, exist_ok=True)
            write_file(args.files / f"{name}.gguf", stored)
            (args.files / "tokens.json").write_text(json.dumps(ids))
            save_file({"logits": logits}, args.files / f"{name}.safetensors")
    save_file(tensors, args.out / "models.safetensors")


if __name__ == "__main__":
    main()
