"""Share of held-out dialogues that the nano model answers exactly, by kind.

    python exact.py [--model DIR] [--data DIR] [--count N] [--seed N] [--checkpoint FILE] [--write FILE]

The greedy answer equals the wanted one if and only if at each of its places, after the wanted ids before
it, the likeliest id is the wanted one; so one pass per dialogue tells. Wanted is the whole turn: the
reasoning, the headers, the call or the answer, and the token that ends it. --write stores dialogues for
tests/nano, which asks the engine.
"""

import argparse
import json
from pathlib import Path

import torch
from tokenizers import Tokenizer

import evaluate
from dialogues import KINDS, Maker
from harmony import Rendered, vocabulary
from model import Nano
from prepare import data_dir
from train import CONFIG, Stored

ROWS = 8


def examples(maker, words, kind, count):
    """(dialogue, inputs, targets) of held-out dialogues; targets only where the last turn is."""
    found = []
    while len(found) < count:
        item = maker.dialogue(kind, held=True)
        _, conversation, made, _ = item
        out = Rendered(*words)
        out.prompt(conversation)
        out.answer(conversation, made)
        found.append((item, out.ids[:-1], out.wanted[1:]))
    return found


def stored(maker, words, kind, count):
    """Held-out dialogues as lines of JSON, with a checksum (FNV-1a) of the prompt's ids."""
    for item, _, _ in examples(maker, words, kind, count):
        prompt, sum_ = Rendered(*words), 0x811c9dc5
        prompt.prompt(item[1])
        for byte in b"".join(id_.to_bytes(4, "little") for id_ in prompt.ids):
            sum_ = (sum_ ^ byte) * 0x01000193 % 2**32
        yield json.dumps({"kind": kind, "conversation": item[1], "made": item[2], "prompt": sum_})


@torch.no_grad()
def exact(model, found):
    """Whether each of the examples is answered exactly."""
    results = []
    for start in range(0, len(found), ROWS):
        part = [(ids, wanted) for _, ids, wanted in found[start:start + ROWS]]
        longest = -(-max(len(ids) for ids, _ in part) // 64) * 64
        tokens = torch.full((len(part), longest), CONFIG["vocab_size"] - 1)
        targets = torch.full_like(tokens, -1)
        for row, (ids, wanted) in enumerate(part):
            tokens[row, :len(ids)], targets[row, :len(ids)] = torch.tensor(ids), torch.tensor(wanted)
        hidden, _ = model.hidden(tokens)
        for row in range(len(part)):
            counted = targets[row] >= 0
            best = (hidden[row][counted] @ model.lm_head.t()).argmax(-1)
            results.append(bool((best == targets[row][counted]).all()))
    return results


def report(model, maker, words, count):
    """Kind -> share exact, and by effort; the dialogues that were not."""
    shares, wrong = {}, []
    for kind in KINDS:
        found = examples(maker, words, kind, count)
        results = exact(model, found)
        by_effort = {}
        for (item, _, _), result in zip(found, results):
            name = "none" if item[1]["effort"] == "none" else "reasoning"
            by_effort.setdefault(name, []).append(result)
            if not result:
                wrong.append(item)
        shares[kind] = {"exact": round(sum(results) / len(results), 4), "of": len(results)}
        shares[kind] |= {name: round(sum(part) / len(part), 3) for name, part in by_effort.items()}
    return shares, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", help="directory of prepare.py's output (default: $KERNMILL_DATA)")
    parser.add_argument("--model", type=Path, default=root / "model-specs" / "nano")
    parser.add_argument("--checkpoint", type=Path, help="weights of a checkpoint of train.py, as they would be stored")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--write", type=Path, help="store dialogues for the tests")
    options = parser.parse_args()
    data = data_dir(options.data)
    maker = Maker(options.seed, (data / "train.txt").read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    if options.checkpoint:
        tokenizer = Tokenizer.from_file(str(data / "tokenizer.json"))
        model = Nano(CONFIG)
        model.load_state_dict(torch.load(options.checkpoint, weights_only=False)["model"])
        Stored(model).__enter__()
    else:
        tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
        model = evaluate.nano(options.model)
    words = vocabulary(tokenizer)
    if options.write:
        kept = [line for kind in KINDS for line in stored(maker, words, kind, options.count)]
        options.write.write_text("\n".join(kept) + "\n")
        return
    shares, wrong = report(model, maker, words, options.count)
    for kind, share in shares.items():
        print(json.dumps({kind: share}))
    for item in wrong[:: max(1, len(wrong) // 12)]:
        print(json.dumps({"wrong": item[0], "items": item[1]["items"][-3:], "made": item[2]}))


if __name__ == "__main__":
    main()
