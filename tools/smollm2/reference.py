"""Float32 logits of SmolLM2 by transformers, from the values that the GGUF file's blocks stand for.

    python tools/smollm2/reference.py MODEL.gguf OUT [--fixture FILE]

The gguf package dequantises the file, and transformers' LlamaForCausalLM computes. Writes OUT/tokens.json, the first 256 tokens of
model-specs/nano/heldout.txt, and OUT/reference.safetensors with `logits` f32 [256, vocab]. The fixture of the tests has, for each position,
the 8 likeliest tokens (`ids` i32 [256, 8]), their logits (`logits` f32 [256, 8]) and the logarithm of the sum of all exponentials (`lse` f32
[256]), besides `tokens` i32 [256].
"""

import argparse
import json
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

TEXT = Path(__file__).resolve().parents[2] / "model-specs/nano/heldout.txt"
POSITIONS, LIKELIEST = 256, 8
LAYER = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class File:
    """A GGUF file of a llama model with tied embeddings."""

    def __init__(self, path):
        self.reader = gguf.GGUFReader(path)

    def value(self, key):
        return self.reader.fields[key].contents()

    def tokenizer(self):
        """SmolLM's: digits by themselves, then GPT-2's words."""
        assert self.value("tokenizer.ggml.pre") == "smollm"
        tokens, merges = self.value("tokenizer.ggml.tokens"), self.value("tokenizer.ggml.merges")
        bpe = models.BPE({token: number for number, token in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges])
        tokenizer = Tokenizer(bpe)
        words = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(words)
        tokenizer.decoder = decoders.ByteLevel()
        return tokenizer

    def model(self):
        heads = {"attn_q": self.value("llama.attention.head_count"), "attn_k": self.value("llama.attention.head_count_kv")}
        weights = {}
        for tensor in self.reader.tensors:
            data = torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
            stem = tensor.name.removesuffix(".weight")
            if stem.startswith("blk."):
                _, layer, kind = stem.split(".")
                if kind in heads:
                    # The file has the two rows that RoPE rotates together side by side.
                    data = data.reshape(heads[kind], -1, 2, data.shape[1]).swapaxes(1, 2).reshape(data.shape)
                weights[f"model.layers.{layer}.{LAYER[kind]}.weight"] = data
            else:
                weights[{"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}[stem]] = data
        config = LlamaConfig(
            vocab_size=weights["model.embed_tokens.weight"].shape[0],
            hidden_size=self.value("llama.embedding_length"),
            intermediate_size=self.value("llama.feed_forward_length"),
            num_hidden_layers=self.value("llama.block_count"),
            num_attention_heads=heads["attn_q"],
            num_key_value_heads=heads["attn_k"],
            max_position_embeddings=self.value("llama.context_length"),
            rms_norm_eps=self.value("llama.attention.layer_norm_rms_epsilon"),
            rope_theta=self.value("llama.rope.freq_base"),
            tie_word_embeddings=True,
            attn_implementation="eager",
        )
        model = LlamaForCausalLM(config).float().eval()
        missing, unexpected = model.load_state_dict(weights, strict=False)
        assert missing == ["lm_head.weight"] and not unexpected, (missing, unexpected)
        model.tie_weights()
        return model


def logits(model, ids):
    """f32 [T, vocab]."""
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float()


def fixture(tokens, logits):
    values, ids = logits.topk(LIKELIEST, dim=1)
    lse = logits.double().logsumexp(dim=1).float()
    return {"tokens": torch.tensor(tokens, dtype=torch.int32), "ids": ids.int(), "logits": values.contiguous(), "lse": lse}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--fixture", type=Path, help="file of the tests to write too")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    file = File(args.model)
    tokens = file.tokenizer().encode(TEXT.read_text()[:4096]).ids[:POSITIONS]
    expected = logits(file.model(), tokens)
    (args.out / "tokens.json").write_text(json.dumps(tokens))
    save_file({"logits": expected}, args.out / "reference.safetensors")
    nll = torch.nn.functional.cross_entropy(expected[:-1], torch.tensor(tokens[1:])).item()
    print(f"{len(tokens)} tokens, {nll:.3f} nats per token")
    if args.fixture:
        args.fixture.parent.mkdir(parents=True, exist_ok=True)
        save_file(fixture(tokens, expected), args.fixture)


if __name__ == "__main__":
    main()
