"""Writes a GGUF file of a checkpoint with the gguf package: an implementation that kernmill's reader shares nothing with.

MXFP4 experts keep every bit; `--type` is the type of the other matrices and of the embedding table; norms, biases, sinks and routers are
f32, as in the files that llama.cpp's own converter makes. The model is read from the checkpoint's config.json or, where it has none, as what
`kernmill synth` writes, from `--spec`. Tensors are converted one at a time; the file appears under its name only when it is whole.
"""

import argparse
import json
import os
import struct
import tomllib
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

TYPES = {"f32": Type.F32, "f16": Type.F16, "bf16": Type.BF16, "q8_0": Type.Q8_0, "q4_0": Type.Q4_0}

GPT_OSS = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.q_proj.bias": "attn_q.bias",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.k_proj.bias": "attn_k.bias",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.v_proj.bias": "attn_v.bias",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.o_proj.bias": "attn_output.bias",
    "self_attn.sinks": "attn_sinks.weight",
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "mlp.router.weight": "ffn_gate_inp.weight",
    "mlp.router.bias": "ffn_gate_inp.bias",
    "mlp.experts.down_proj_bias": "ffn_down_exps.bias",
}
LLAMA = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}
GLOBAL = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
# Rows are widened to f32 in pieces of about this many elements.
PIECE = 1 << 24


class Tensors:
    """Tensors of one or several safetensors files, mapped."""

    def __init__(self, directory, single="model.safetensors"):
        index = directory / "model.safetensors.index.json"
        names = set(json.loads(index.read_text())["weight_map"].values()) if index.exists() else [single]
        self._found = {}
        for name in sorted(names):
            data = np.memmap(directory / name, np.uint8, "r")
            length = struct.unpack("<Q", data[:8].tobytes())[0]
            for tensor, info in json.loads(data[8 : 8 + length].tobytes()).items():
                if tensor != "__metadata__":
                    self._found[tensor] = (data, 8 + length, info)

    def __iter__(self):
        return iter(self._found)

    def __contains__(self, name):
        return name in self._found

    def raw(self, name):
        """The tensor as stored; bf16 as u16."""
        data, start, info = self._found[name]
        begin, end = (start + offset for offset in info["data_offsets"])
        kind = {"BF16": np.uint16, "U8": np.uint8, "F32": np.float32}[info["dtype"]]
        return data[begin:end].view(kind).reshape(info["shape"])


def widened(array):
    """f32 of a stored array."""
    return (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else np.asarray(array, np.float32)


def config_of_spec(path):
    """What config.json would say of a spec's model."""
    spec = tomllib.loads(path.read_text())
    dims, rope = spec["dims"], spec["rope"]["main"]
    config = {
        "model_type": "gpt_oss" if "experts" in dims else "llama",
        "max_position_embeddings": spec["model"]["max_context"],
        "vocab_size": dims["vocab"],
        "num_hidden_layers": dims["layers"],
        "hidden_size": dims["hidden"],
        "num_attention_heads": dims["heads"],
        "num_key_value_heads": dims["kv_heads"],
        "head_dim": dims["head_dim"],
        "rms_norm_eps": dims["norm_eps"],
        "rope_theta": rope["theta"],
    }
    if config["model_type"] == "llama":
        return config | {"intermediate_size": dims["mlp_hidden"]}
    scaling = rope["scaling"]
    return config | {
        "intermediate_size": dims["expert_hidden"],
        "num_local_experts": dims["experts"],
        "num_experts_per_tok": dims["top_k"],
        "sliding_window": dims["sliding_window"],
        "rope_scaling": scaling | {"original_max_position_embeddings": scaling["original_context"]},
    }


def metadata(writer, arch, config, kind):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    if kind == Type.Q8_0:
        writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    if arch == "llama":
        writer.add_vocab_size(config["vocab_size"])
        writer.add_rope_dimension_count(config["hidden_size"] // config["num_attention_heads"])
        return
    scaling = config["rope_scaling"]
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_sliding_window(config["sliding_window"])
    writer.add_expert_count(config["num_local_experts"])
    writer.add_expert_used_count(config["num_experts_per_tok"])
    writer.add_expert_feed_forward_length(config["intermediate_size"])
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(scaling["factor"])
    writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    writer.add_rope_scaling_yarn_beta_fast(scaling["beta_fast"])
    writer.add_rope_scaling_yarn_beta_slow(scaling["beta_slow"])


def tokenizer(writer, path):
    """The byte-level BPE tokenizer of a tokenizer.json whose words are GPT-2's."""
    description = json.loads(path.read_text())
    model = description["model"]
    added = {token["id"]: token["content"] for token in description["added_tokens"]}
    ids = {number: token for token, number in model["vocab"].items()} | added
    pairs = [" ".join(merge) if isinstance(merge, list) else merge for merge in model["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([ids[number] for number in range(len(ids))])
    writer.add_token_types([gguf.TokenType.CONTROL if n in added else gguf.TokenType.NORMAL for n in range(len(ids))])
    writer.add_token_merges(pairs)
    if added:
        writer.add_eos_token_id(max(added))
    writer.add_add_bos_token(False)


def byte_tokenizer(writer, vocab):
    """A tokenizer whose first tokens are single bytes, then a pair, because llama.cpp wants a merge, and the others numbers."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    tokens = [characters[(byte + 0x20) % 256] if byte < 256 else f"<{byte}>" for byte in range(vocab)]
    tokens[256:257] = [tokens[1] + tokens[2]] if vocab > 256 else []
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-4o")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * vocab)
    writer.add_token_merges([f"{tokens[1]} {tokens[2]}"] if vocab > 256 else [])
    writer.add_chat_template("{{ messages }}")


class Output:
    """Tensors in the order of the file: each is announced with its shape, and made when its turn to be written comes."""

    def __init__(self, writer):
        self.writer = writer
        self._makers = []

    def add(self, name, array, kind):
        """Matrices in `kind`; routers and what has one dimension in f32."""
        plain = array.ndim < 2 or name.endswith(".bias") or "ffn_gate_inp" in name
        kind = Type.F32 if plain else kind
        self._announce(name, array.shape, kind, lambda: converted(array, kind))

    def add_experts(self, name, blocks, scales):
        """MXFP4 [E, rows, k/32, 16] and [E, rows, k/32]."""
        experts, rows, groups, _ = blocks.shape
        self._announce(name, (experts, rows, groups * 32), Type.MXFP4, lambda: halves(blocks, scales))

    def _announce(self, name, shape, kind, make):
        numpy_kind = {Type.F32: np.dtype(np.float32), Type.F16: np.dtype(np.float16)}.get(kind)
        if numpy_kind is None:
            stored = gguf.quant_shape_to_byte_shape(shape, kind)
            self.writer.add_tensor_info(name, stored, np.dtype(np.uint8), int(np.prod(stored)), raw_dtype=kind)
        else:
            self.writer.add_tensor_info(name, shape, numpy_kind, int(np.prod(shape)) * numpy_kind.itemsize)
        self._makers.append(make)

    def finish(self):
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_ti_data_to_file()
        for make in self._makers:
            self.writer.write_tensor_data(make())
        self.writer.close()


def converted(array, kind):
    """The stored bytes of an array in `kind`, a piece of its rows at a time."""
    if array.ndim < 2:
        return widened(array)
    step = max(1, PIECE // int(np.prod(array.shape[1:])))
    out = None
    for begin in range(0, array.shape[0], step):
        piece = gguf.quants.quantize(widened(array[begin : begin + step]), kind)
        if out is None:
            out = np.empty((array.shape[0], *piece.shape[1:]), piece.dtype)
        out[begin : begin + step] = piece
    return out


def halves(blocks, scales):
    """Blocks of 32 codes whose neighbours share a byte, to blocks whose halves do, the scale in front: u8 [E, rows, k/32 * 17]."""
    experts, rows, groups, _ = blocks.shape
    out = np.empty((experts, rows, groups, 17), np.uint8)
    for expert in range(experts):
        first, second = blocks[expert, ..., :8], blocks[expert, ..., 8:]
        out[expert, ..., 0] = scales[expert]
        out[expert, ..., 1::2] = first & 15 | second << 4
        out[expert, ..., 2::2] = first >> 4 | second & 0xF0
    return out.reshape(experts, rows, groups * 17)


def interleave_halves(array, heads):
    shape = array.shape
    return array.reshape(heads, 2, shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(shape)


def layer(out, tensors, arch, config, index, kind):
    source, target = f"model.layers.{index}.", f"blk.{index}."
    for old, new in (GPT_OSS if arch == "gpt-oss" else LLAMA).items():
        array = tensors.raw(source + old)
        if arch == "llama" and new == "attn_q.weight":
            array = interleave_halves(array, config["num_attention_heads"])
        if arch == "llama" and new == "attn_k.weight":
            array = interleave_halves(array, config["num_key_value_heads"])
        out.add(target + new, array, kind)
    if arch != "gpt-oss":
        return
    experts = source + "mlp.experts."
    bias = tensors.raw(experts + "gate_up_proj_bias")
    blocks, scales = tensors.raw(experts + "gate_up_proj_blocks"), tensors.raw(experts + "gate_up_proj_scales")
    for first, name in enumerate(["gate", "up"]):
        out.add(f"{target}ffn_{name}_exps.bias", bias[:, first::2], kind)
        out.add_experts(f"{target}ffn_{name}_exps.weight", blocks[:, first::2], scales[:, first::2])
    blocks, scales = tensors.raw(experts + "down_proj_blocks"), tensors.raw(experts + "down_proj_scales")
    out.add_experts(f"{target}ffn_down_exps.weight", blocks, scales)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--type", choices=TYPES, default="bf16", help="of the bf16 matrices")
    parser.add_argument("--spec", type=Path, help="model spec of a checkpoint without config.json")
    args = parser.parse_args()
    kind = TYPES[args.type]
    config = config_of_spec(args.spec) if args.spec else json.loads((args.checkpoint / "config.json").read_text())
    tensors = Tensors(args.checkpoint)
    arch = "gpt-oss" if config["model_type"] == "gpt_oss" else "llama"
    partial = args.output.with_name(args.output.name + ".partial")
    writer = gguf.GGUFWriter(partial, arch)
    metadata(writer, arch, config, kind)
    if (args.checkpoint / "tokenizer.json").exists():
        tokenizer(writer, args.checkpoint / "tokenizer.json")
    else:
        byte_tokenizer(writer, config["vocab_size"])
    out = Output(writer)
    for source, target in GLOBAL.items():
        if source in tensors:
            out.add(target, tensors.raw(source), kind)
    for index in range(config["num_hidden_layers"]):
        layer(out, tensors, arch, config, index, kind)
    try:
        out.finish()
        os.replace(partial, args.output)
    finally:
        partial.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
