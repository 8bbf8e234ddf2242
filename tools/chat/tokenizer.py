"""Makes a tokenizer.json of the vocabulary of GPT-OSS, for tests and for users without the model's files.

    tokenizer.py o200k_base.tiktoken OUT

The merges are put together from the ranks: every pair of tokens that make a third, in the order of the pair's
ranks, then sorted by the third's.
"""

import argparse
import base64
import json
import pathlib

SPECIAL = {
    199998: "<|startoftext|>",
    199999: "<|endoftext|>",
    200002: "<|return|>",
    200003: "<|constrain|>",
    200005: "<|channel|>",
    200006: "<|start|>",
    200007: "<|end|>",
    200008: "<|message|>",
    200012: "<|call|>",
    200018: "<|endofprompt|>",
}
LAST = 200018
CUT = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def alphabet():
    """Characters that stand for bytes."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(0x100 + n) for n, byte in enumerate(shifted)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ranks", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    lines = (line.split() for line in arguments.ranks.read_text().splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    symbols = alphabet()
    spelt = {token: "".join(symbols[byte] for byte in token) for token in ranks}
    merges = []
    for token in sorted(ranks, key=ranks.get):
        halves = ((token[:at], token[at:]) for at in range(1, len(token)))
        pairs = [pair for pair in halves if pair[0] in ranks and pair[1] in ranks]
        pairs.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges += [[spelt[left], spelt[right]] for left, right in pairs]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    ids = range(199998, LAST + 1)
    added = [{"id": id, "content": SPECIAL.get(id, f"<|reserved_{id}|>")} | flags for id in ids]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": CUT}, "behavior": "Isolated", "invert": False}
    made = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {spelt[token]: rank for token, rank in ranks.items()},
            "merges": merges,
        },
    }
    arguments.out.write_text(json.dumps(made, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    print(f"{len(ranks)} tokens, {len(merges)} merges")


if __name__ == "__main__":
    main()
