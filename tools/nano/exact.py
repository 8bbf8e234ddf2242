"""Share of held-out dialogues that the nano model answers exactly, by kind.

    python exact.py [--model DIR] [--data DIR] [--count N] [--seed N] [--usual] [--checkpoint FILE]
    python exact.py --stored FILE [--model DIR] [--checkpoint FILE]

The greedy answer equals the wanted one if and only if at each of its places, after the wanted ids before
it, the likeliest id is the wanted one; so one pass per dialogue tells. Wanted is the whole turn: the
reasoning, the headers, the call or the answer, and the token that ends it. --usual draws words to sort and
functions to call from phrases.py alone, and none at random. --stored asks the dialogues of a file, such as
those that tests/nano asks the engine (tests/fixtures/nano/dialogues.jsonl).
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
        found.append(wanted(words, maker.dialogue(kind, held=True)))
    return found


def wanted(words, item):
    """(dialogue, inputs, targets) of a dialogue; targets only where the last turn is."""
    _, conversation, made, _ = item
    out = Rendered(*words)
    out.prompt(conversation)
    out.answer(conversation, made)
    return item, out.ids[:-1], out.wanted[1:]


def stored(words, path):
    """Kind -> dialogues of a file as `wanted` makes them."""
    found = {}
    for one in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        item = (one["kind"], one["conversation"], one["made"], set())
        found.setdefault(one["kind"], []).append(wanted(words, item))
    return found


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


def report(model, asked):
    """Kind -> share exact, and by effort, of (kind, dialogues); the dialogues that were not."""
    shares, wrong = {}, []
    for kind, found in asked:
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
    parser.add_argument("--usual", action="store_true")
    parser.add_argument("--stored", type=Path, help="ask the dialogues of a file")
    options = parser.parse_args()
    data = data_dir(options.data)
    maker = Maker(options.seed, (data / "train.txt").read_text(encoding="utf-8"))
    maker.usual = options.usual
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
    if options.stored:
        asked = stored(words, options.stored).items()
    else:
        asked = ((kind, examples(maker, words, kind, options.count)) for kind in KINDS)
    shares, wrong = report(model, asked)
    for kind, share in shares.items():
        print(json.dumps({kind: share}))
    for item in wrong[:: max(1, len(wrong) // 12)]:
        print(json.dumps({"wrong": item[0], "items": item[1]["items"][-3:], "made": item[2]}))


if __name__ == "__main__":
    main()
