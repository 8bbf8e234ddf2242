"""Makes small random Llamas whose matrices are quantised as published checkpoints have them, and the logits of the weights that other
readers make of them: <name>/{config.json, model.safetensors, oracle.safetensors} in an archive. The last has `tokens` i32 [T] and
`logits` f32 [T, vocab].

    python tools/oracle/make_quantised.py tests/fixtures/quantised.tar [NAME ...]

Needs torch, transformers 5.24, compressed-tensors 0.20 and mlx[cpu] 0.32. compressed-tensors and mlx write and read their own
checkpoints. GPTQ, AWQ and FP8 in blocks are written and read below, by the layouts that their libraries document.
"""

import argparse
import json
import shutil
from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32, unpack_from_int32
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from checkpoint import changed
from make_imports import logits_of, randomise

TOKENS = 16
SIZES = dict(vocab_size=64, hidden_size=64, intermediate_size=128, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=128, bos_token_id=1, eos_token_id=2)
# Where nibble i of an AWQ word has its column, of eight.
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def affine(weight: torch.Tensor, group: int, bits: int, symmetric: bool, dtype: torch.dtype):
    """Codes [n, k], scales and zeros [n, groups] of `scale * (code - zero)`."""
    n, k = weight.shape
    blocks = weight.reshape(n, k // group, group)
    top = 2**bits - 1
    if symmetric:
        scales = blocks.abs().amax(-1) / (2 ** (bits - 1) - 0.5)
        scales = scales.to(dtype).float()
        zeros = torch.full_like(scales, 2 ** (bits - 1))
    else:
        low, high = blocks.amin(-1).clamp(max=0), blocks.amax(-1).clamp(min=0)
        scales = ((high - low) / top).to(dtype).float()
        zeros = (-low / scales).round().clamp(0, top)
    codes = (blocks / scales[..., None]).round().add(zeros[..., None]).clamp(0, top)
    return codes.reshape(n, k).to(torch.int64), scales, zeros.to(torch.int64)


def value(codes, scales, zeros):
    n, k = codes.shape
    group = k // scales.shape[1]
    return (scales.repeat_interleave(group, 1) * (codes - zeros.repeat_interleave(group, 1)).float()).float()


def words(nibbles: torch.Tensor, order=range(8)) -> torch.Tensor:
    """int32 words of eight nibbles each along the last dimension; nibble i of a word is that of `order[i]`."""
    eights = nibbles.reshape(*nibbles.shape[:-1], -1, 8)
    packed = sum(eights[..., column] << (4 * i) for i, column in enumerate(order))
    return torch.from_numpy(packed.numpy().astype(np.uint32).view(np.int32))


def gptq(group: int, symmetric: bool, version: int):
    def write(module, weight):
        group_of = group if group > 0 else weight.shape[1]
        codes, scales, zeros = affine(weight, group_of, 4, symmetric, torch.float16)
        if version == 1:
            zeros = zeros.clamp(1, 15)
        stored = zeros - 1 if version == 1 else zeros
        tensors = {f"{module}.qweight": words(codes).T.contiguous(), f"{module}.scales": scales.T.half().contiguous(),
                   f"{module}.qzeros": words(stored.T.contiguous()),
                   f"{module}.g_idx": (torch.arange(weight.shape[1]) // group_of).int()}
        return tensors, value(codes, scales, zeros)

    config = dict(quant_method="gptq", bits=4, group_size=group, desc_act=False, sym=symmetric, true_sequential=True, damp_percent=0.01)
    return write, config | (dict(checkpoint_format="gptq_v2") if version == 2 else {})


def awq(group: int):
    def write(module, weight):
        codes, scales, zeros = affine(weight, group, 4, False, torch.float16)
        tensors = {f"{module}.qweight": words(codes.T.contiguous(), AWQ_ORDER), f"{module}.scales": scales.T.half().contiguous(),
                   f"{module}.qzeros": words(zeros.T.contiguous(), AWQ_ORDER)}
        return tensors, value(codes, scales, zeros)

    return write, dict(quant_method="awq", bits=4, group_size=group, zero_point=True, version="gemm", modules_to_not_convert=None)


def compressed(fmt: str, weights: dict):
    config = {"quant_method": "compressed-tensors", "format": fmt, "quantization_status": "compressed", "ignore": ["lm_head"],
              "kv_cache_scheme": None, "global_compression_ratio": None,
              "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": None, "output_activations": None,
                                            "weights": weights}}}
    return config


def packed(group: int, symmetric: bool):
    def write(module, weight):
        codes, scales, zeros = affine(weight, group, 4, symmetric, torch.bfloat16)
        signed = (codes - 8).to(torch.int8)
        tensors = {f"{module}.weight_packed": pack_to_int32(signed, 4), f"{module}.weight_scale": scales.bfloat16(),
                   f"{module}.weight_shape": torch.tensor(weight.shape)}
        read = unpack_from_int32(tensors[f"{module}.weight_packed"], 4, weight.shape).long() + 8
        if not symmetric:
            zero = (zeros - 8).to(torch.int8)
            tensors[f"{module}.weight_zero_point"] = pack_to_int32(zero, 4, packed_dim=0)
            zeros = unpack_from_int32(tensors[f"{module}.weight_zero_point"], 4, zero.shape, packed_dim=0).long() + 8
        return tensors, value(read, scales, zeros)

    return write, compressed("pack-quantized", {"num_bits": 4, "type": "int", "symmetric": symmetric, "strategy": "group",
                                                "group_size": group, "dynamic": False, "observer": "minmax"})


def integers():
    """int8 by rows. Those of down_proj have -128, with which a matrix cannot be kept as it is."""
    def write(module, weight):
        lowest = -128 if "down_proj" in module else -127
        scales = (weight.abs().amax(1, keepdim=True) / -lowest).bfloat16()
        codes = (weight / scales.float()).round().clamp(lowest, 127).to(torch.int8)
        return {f"{module}.weight": codes, f"{module}.weight_scale": scales}, codes.float() * scales.float()

    return write, compressed("int-quantized", {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel",
                                               "group_size": None, "dynamic": False})


def floats():
    def write(module, weight):
        scales = (weight.abs().amax(1, keepdim=True) / 448).bfloat16()
        stored = (weight / scales.float()).clamp(-448, 448).to(torch.float8_e4m3fn)
        return {f"{module}.weight": stored, f"{module}.weight_scale": scales}, stored.float() * scales.float()

    return write, compressed("float-quantized", {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel",
                                                 "group_size": None, "dynamic": False})


def float_blocks(side: int):
    def write(module, weight):
        n, k = weight.shape
        high, wide = -(-n // side), -(-k // side)
        padded = torch.zeros(high * side, wide * side)
        padded[:n, :k] = weight
        scales = padded.reshape(high, side, wide, side).abs().amax((1, 3)) / 448
        each = scales.repeat_interleave(side, 0).repeat_interleave(side, 1)[:n, :k]
        stored = (weight / each).to(torch.float8_e4m3fn)
        return {f"{module}.weight": stored, f"{module}.weight_scale_inv": scales}, stored.float() * each

    return write, dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[side, side])


def mlx(group: int, bits: int):
    def write(module, weight):
        q, scales, biases = mx.quantize(mx.array(weight.numpy()).astype(mx.float16), group_size=group, bits=bits)
        q, scales, biases = (np.array(x) for x in (q, scales, biases))
        read = mx.dequantize(mx.array(q), mx.array(scales).astype(mx.float32), mx.array(biases).astype(mx.float32),
                             group_size=group, bits=bits)
        tensors = {f"{module}.weight": torch.from_numpy(q), f"{module}.scales": torch.from_numpy(scales),
                   f"{module}.biases": torch.from_numpy(biases)}
        return tensors, torch.from_numpy(np.array(read.astype(mx.float32)))

    return write, dict(group_size=group, bits=bits)


# Name: (writer of a matrix and the section of config.json, layers, key of the section).
CASES = {
    "gptq": (gptq(32, True, 1), 1, "quantization_config"),
    "gptq-zeros": (gptq(64, False, 1), 1, "quantization_config"),
    "gptq-v2-rows": (gptq(-1, False, 2), 1, "quantization_config"),
    "awq": (awq(64), 1, "quantization_config"),
    "packed": (packed(32, True), 1, "quantization_config"),
    "packed-zeros": (packed(64, False), 1, "quantization_config"),
    "int8": (integers(), 1, "quantization_config"),
    "fp8": (floats(), 1, "quantization_config"),
    "fp8-blocks": (float_blocks(48), 1, "quantization_config"),
    "mlx": (mlx(64, 4), 2, "quantization"),
}


def make(name: str, out: Path, seed: int) -> None:
    (write, section), layers, key = CASES[name]
    is_mlx = key == "quantization"
    dtype = torch.float16 if is_mlx else torch.bfloat16
    directory = out / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    config = LlamaConfig(**SIZES, num_hidden_layers=layers, tie_word_embeddings=name != "packed")
    config._attn_implementation = "eager"
    model = LlamaForCausalLM(config).float().eval()
    randomise(model, seed, lambda _: dtype)
    stored = {}
    for parameter_name, parameter in model.named_parameters():
        module = parameter_name.removesuffix(".weight")
        if "_proj" in module or (is_mlx and "embed" in module):
            tensors, weight = write(module, parameter.data)
            parameter.data = weight
            stored |= tensors
        else:
            stored[parameter_name] = parameter.data.to(dtype)
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(config.vocab_size, (TOKENS,), generator=generator, dtype=torch.int32)
    logits = logits_of(model, tokens)
    config.architectures = ["LlamaForCausalLM"]
    config.dtype = dtype
    written = config.to_diff_dict() | {key: section}
    (directory / "config.json").write_text(json.dumps(written, indent=1) + "\n")
    save_file({name: tensor.contiguous() for name, tensor in stored.items()}, directory / "model.safetensors", metadata={"format": "pt"})
    save_file({"tokens": tokens, "logits": logits.contiguous()}, directory / "oracle.safetensors")
    if section.get("quant_method") == "compressed-tensors":
        check_by_transformers(directory, model)
    print(f"{name}: logits of standard deviation {logits.std():.2f}, {sum(f.stat().st_size for f in directory.iterdir())} bytes")


def check_by_transformers(directory: Path, model: torch.nn.Module) -> None:
    """The weights that transformers reads are those whose logits were taken, rounded to its bf16."""
    from transformers import CompressedTensorsConfig

    read = LlamaForCausalLM.from_pretrained(directory, quantization_config=CompressedTensorsConfig(run_compressed=False))
    ours = dict(model.named_parameters())
    for name, weight in read.named_parameters():
        if "_proj" in name and name.endswith(".weight"):
            difference = (weight.float() - ours[name]).abs().max().item()
            assert difference <= 2**-8 * ours[name].abs().max().item(), f"{directory.name}: {name} differs by {difference}"


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
