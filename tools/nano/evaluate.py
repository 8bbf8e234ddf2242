"""Evaluate the exported nano model with transformers in float32.

    python evaluate.py [--model DIR] [--fixtures DIR] [--write]

Prints JSON. With --write it also writes the fixtures for the compiler's tests:
expected.json and logits.safetensors.

Bits per byte: tokenise the whole of heldout.txt (no special tokens), cut the ids into
consecutive chunks of 512 (the last may be shorter), put <|endoftext|> before each chunk,
evaluate each from an empty context (positions from 0) and score each of the chunk's
tokens given what stands before it in its chunk (the input is <|endoftext|> and the chunk
without its last token, at most 512 positions). Sum of -ln p over all tokens, divided by
ln 2 and by the bytes of heldout.txt.

Word check: from <|endoftext|>, 2,000 greedy tokens; the share of the words (maximal runs
of ASCII letters, lower-cased) which stand in words.txt. The last, possibly cut word is
not counted.
"""

import argparse
import json
import lzma
import math
import re
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import GptOssConfig, GptOssForCausalLM

import mxfp4
from model import Nano

CHUNK = 512
FIXTURE_TOKENS = 320
FIXTURE_EVERY = 8
GREEDY_TOKENS = 2000
PROMPTS = [
    "# Struct Vec\n\n",
    "Ownership is",
    "The compiler",
    "In this chapter, we will",
    "To build a package with Cargo,",
    "A trait is",
]


def chunks(tokens, end):
    """Yield (inputs [n], targets [n]) of each chunk of the ids."""
    for start in range(0, len(tokens), CHUNK):
        part = tokens[start:start + CHUNK]
        yield torch.tensor([end] + part[:-1]), torch.tensor(part)


def fixture_tokens(heldout):
    """The first FIXTURE_TOKENS ids of the held-out text."""
    return heldout[:FIXTURE_TOKENS]


def dequantise(path):
    """Return transformers' float32 state dict from the stored tensors."""
    stored, state = load_file(path), {}
    for name, tensor in stored.items():
        if name.endswith("_scales"):
            continue
        if name.endswith("_blocks"):
            weight = mxfp4.unpack(tensor, stored[name[:-6] + "scales"])   # [E, out, in]
            state[name[:-7]] = weight.transpose(1, 2).contiguous()
        else:
            state[name] = tensor.float()
    return state


def load(directory):
    """Load the exported model into transformers: float32, eager attention and experts."""
    config = json.loads((directory / "config.json").read_text())
    config.pop("quantization_config")
    config["torch_dtype"] = "float32"
    config = GptOssConfig(**config, attn_implementation="eager")
    model = GptOssForCausalLM(config).float().eval()
    missing, unexpected = model.load_state_dict(dequantise(directory / "model.safetensors"), strict=False)
    assert not unexpected and all("inv_freq" in name for name in missing), (missing, unexpected)
    return model


def nano(directory):
    """Load the exported model into the training code."""
    own = {}
    for name, value in dequantise(directory / "model.safetensors").items():
        name = name.removeprefix("model.").replace("embed_tokens.weight", "embed").replace("lm_head.weight", "lm_head")
        name = name.replace("self_attn", "attention").replace("mlp.router", "experts.router")
        name = name.replace("mlp.experts", "experts").replace("layernorm.weight", "layernorm")
        name = "norm" if name == "norm.weight" else name
        if name.endswith("gate_up_proj"):             # [E, D, 2F], gate and up alternate
            value = value.transpose(1, 2).unflatten(1, (-1, 2)).transpose(1, 2)
        elif name.endswith("gate_up_proj_bias"):
            value = value.unflatten(1, (-1, 2)).transpose(1, 2)
        elif name.endswith("down_proj"):
            value = value.transpose(1, 2)
        name = name.replace("_proj_bias", "_bias").replace("gate_up_proj", "gate_up").replace("down_proj", "down")
        own[name] = value.contiguous()
    model = Nano(json.loads((directory / "config.json").read_text()))
    missing, unexpected = model.load_state_dict(own, strict=False)
    assert not missing and not unexpected, (missing, unexpected)
    return model


@torch.no_grad()
def logits(model, tokens):
    """tokens [1, T] -> logits [1, T, V]."""
    return model(input_ids=tokens, use_cache=False).logits.float()


@torch.no_grad()
def generate(model, prompt, count, temperature=0.0, seed=1):
    """Return count ids generated after the prompt ids, greedily or sampled."""
    generator = torch.Generator().manual_seed(seed)
    out, cache, step = [], None, torch.tensor([prompt])
    while len(out) < count:
        result = model(input_ids=step, past_key_values=cache, use_cache=True)
        cache = result.past_key_values
        last = result.logits[:, -1]
        if temperature > 0:
            step = torch.multinomial((last / temperature).softmax(-1), 1, generator=generator)
        else:
            step = last.argmax(-1, keepdim=True)
        out.append(step.item())
    return out


def bits_per_byte(model, tokens, size, end):
    nats = 0.0
    for inputs, targets in chunks(tokens, end):
        scores = logits(model, inputs[None])[0].double().log_softmax(-1)
        nats -= scores.gather(1, targets[:, None]).sum().item()
    return nats / math.log(2) / size


def word_share(text, vocabulary):
    """Return (share of known words, number of words, unknown words)."""
    words = [word.lower() for word in re.findall(r"[A-Za-z]+", text)][:-1]
    unknown = sorted({word for word in words if word not in vocabulary})
    known = sum(word in vocabulary for word in words)
    return known / max(1, len(words)), len(words), unknown


def run(directory, fixtures, write=False):
    """Evaluate, print the figures and with write store the fixtures."""
    model = load(directory)
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    end = tokenizer.token_to_id("<|endoftext|>")
    heldout_bytes = (directory / "heldout.txt").read_bytes()
    text = heldout_bytes.decode("utf-8")
    tokens = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(tokens) == text
    vocabulary = set((fixtures / "words.txt").read_text().split())

    xz = len(lzma.compress(heldout_bytes, preset=9 | lzma.PRESET_EXTREME)) * 8 / len(heldout_bytes)
    bits = bits_per_byte(model, tokens, len(heldout_bytes), end)
    generated = generate(model, [end], GREEDY_TOKENS)
    sample = tokenizer.decode(generated, skip_special_tokens=False)
    plain = sample.replace("<|endoftext|>", "\n")
    share, words, unknown = word_share(plain, vocabulary)
    samples = {}
    for prompt in PROMPTS:
        for temperature in (0.0, 0.7):
            ids = generate(model, tokenizer.encode(prompt).ids, 100, temperature)
            text = tokenizer.decode(ids, skip_special_tokens=False)
            samples[f"{prompt} (temperature {temperature})"] = text
    sizes = {name: (directory / name).stat().st_size for name in ("model.safetensors", "tokenizer.json", "config.json")}
    result = {
        "bits_per_byte_float32": bits,
        "xz_bits_per_byte": xz,
        "ratio": bits / xz,
        "heldout_bytes": len(heldout_bytes),
        "heldout_tokens": len(tokens),
        "chunk_tokens": CHUNK,
        "procedure": " ".join(__doc__.split("Bits per byte: ")[1].split("\n\n")[0].split()),
        "known_word_share": share,
        "words": words,
        "embedded_bytes": sum(sizes.values()),
    }
    print(json.dumps(dict(result, unknown_words=unknown, sizes=sizes, samples=samples, greedy=sample), indent=1))
    if write:
        sequence = fixture_tokens(tokens)
        positions = list(range(FIXTURE_EVERY - 1, len(sequence), FIXTURE_EVERY))
        values = logits(model, torch.tensor([sequence]))[0, positions]
        save_file({
            "tokens": torch.tensor(sequence, dtype=torch.int32),
            "positions": torch.tensor(positions, dtype=torch.int32),
            "logits": values.contiguous(),
        }, fixtures / "logits.safetensors")
        result["greedy_prefix"] = generated[:64]
        (fixtures / "expected.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--model", type=Path, default=root / "model-specs" / "nano")
    parser.add_argument("--fixtures", type=Path, default=root / "tests" / "fixtures" / "nano")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    run(options.model, options.fixtures, options.write)


if __name__ == "__main__":
    main()
