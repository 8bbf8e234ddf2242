"""Writes a GGUF file of a small checkpoint with the gguf package: an implementation that kernmill's reader shares nothing with."""

import argparse
import json
import struct
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


def load(path):
    """Tensors of a safetensors file; bf16 widened to float32."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, info in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in info["data_offsets"])
        raw = data[begin:end]
        if info["dtype"] == "BF16":
            array = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            array = np.frombuffer(raw, {"U8": np.uint8, "F32": np.float32}[info["dtype"]])
        tensors[name] = array.reshape(info["shape"])
    return tensors


def metadata(writer, arch, config):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
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


def tokenizer(writer, vocab):
    """A tokenizer whose first tokens are single bytes, as far as the vocabulary goes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    tokens = [characters[(byte + 0x20) % 256] for byte in range(vocab)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-4o")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * vocab)
    writer.add_token_merges([])
    writer.add_chat_template("{{ messages }}")


def add(writer, name, array, kind):
    """Matrices of the layers and tables in `kind`; routers and what has one dimension in F32."""
    plain = array.ndim < 2 or name.endswith(".bias") or "ffn_gate_inp" in name
    kind = Type.F32 if plain else kind
    writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)


def add_experts(writer, name, blocks, scales):
    """Blocks of 32 codes whose neighbours share a byte, to blocks whose halves do."""
    codes = np.stack([blocks & 15, blocks >> 4], axis=-1).reshape(*blocks.shape[:-1], 32)
    halves = codes[..., :16] | codes[..., 16:] << 4
    data = np.concatenate([scales[..., None], halves], axis=-1)
    writer.add_tensor(name, data.reshape(*data.shape[:2], -1), raw_dtype=Type.MXFP4)


def interleave_halves(array, heads):
    shape = array.shape
    return array.reshape(heads, 2, shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--type", choices=TYPES, default="bf16", help="of the bf16 matrices")
    args = parser.parse_args()
    kind = TYPES[args.type]
    config = json.loads((args.checkpoint / "config.json").read_text())
    tensors = load(args.checkpoint / "model.safetensors")
    arch = "gpt-oss" if config["model_type"] == "gpt_oss" else "llama"
    writer = gguf.GGUFWriter(args.output, arch)
    metadata(writer, arch, config)
    tokenizer(writer, config["vocab_size"])
    for source, target in GLOBAL.items():
        if source in tensors:
            add(writer, target, tensors[source], kind)
    for layer in range(config["num_hidden_layers"]):
        source, target = f"model.layers.{layer}.", f"blk.{layer}."
        for old, new in (GPT_OSS if arch == "gpt-oss" else LLAMA).items():
            array = tensors[source + old]
            if arch == "llama" and new == "attn_q.weight":
                array = interleave_halves(array, config["num_attention_heads"])
            if arch == "llama" and new == "attn_k.weight":
                array = interleave_halves(array, config["num_key_value_heads"])
            add(writer, target + new, array, kind)
        if arch == "gpt-oss":
            experts = source + "mlp.experts."
            bias = tensors[experts + "gate_up_proj_bias"]
            blocks, scales = tensors[experts + "gate_up_proj_blocks"], tensors[experts + "gate_up_proj_scales"]
            for first, name in enumerate(["gate", "up"]):
                add(writer, f"{target}ffn_{name}_exps.bias", np.ascontiguousarray(bias[:, first::2]), kind)
                add_experts(writer, f"{target}ffn_{name}_exps.weight", blocks[:, first::2], scales[:, first::2])
            add_experts(
                writer,
                f"{target}ffn_down_exps.weight",
                tensors[experts + "down_proj_blocks"],
                tensors[experts + "down_proj_scales"],
            )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
