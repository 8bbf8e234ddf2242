"""Writes the GGUF file that llama.cpp takes as a LoRA, of a directory as PEFT saves it, for GPT-OSS: q, k, v and o, in f16.

The adapter's factors alpha / r stay outside the matrices, as llama.cpp wants them. Anything else that the directory has is an error.
"""

import argparse
import json
import re
from pathlib import Path

import gguf
import numpy as np
from write import GPT_OSS, Tensors, widened

NAME = re.compile(r"base_model\.model\.model\.layers\.(\d+)\.(self_attn\.[qkvo]_proj)\.lora_([AB])\.weight")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("adapter", type=Path, help="directory with adapter_config.json and adapter_model.safetensors")
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    config = json.loads((args.adapter / "adapter_config.json").read_text())
    if config["peft_type"] != "LORA" or config.get("use_dora") or config.get("use_rslora"):
        raise SystemExit("expected a plain LoRA")
    tensors = Tensors(args.adapter, "adapter_model.safetensors")
    partial = args.out.with_name(args.out.name + ".partial")
    writer = gguf.GGUFWriter(partial, "gpt-oss")
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(config["lora_alpha"]))
    for name in tensors:
        found = NAME.fullmatch(name)
        if not found:
            raise SystemExit(f"`{name}`: expected A or B of q, k, v or o")
        layer, module, factor = found.groups()
        own = f"blk.{layer}.{GPT_OSS[module + '.weight']}.lora_{factor.lower()}"
        writer.add_tensor(own, np.ascontiguousarray(widened(tensors.raw(name)).astype(np.float16)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.rename(args.out)


if __name__ == "__main__":
    main()
