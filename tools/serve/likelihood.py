"""A likelihood task of lm-eval with a local file, and a comparison of two of its runs item by item.

    likelihood.py make DIR                 writes DIR/items.jsonl and DIR/likelihood.yaml
    likelihood.py compare DIR-A DIR-B      compares what `lm_eval --log_samples --output_path` left there

Each item is a beginning and four ends, one of which is right: 108 items, 432 log likelihoods. `compare` fails
if log likelihoods differ by more than `--most` nats.
"""

import argparse
import json
import random
import sys
from pathlib import Path

CAPITALS = (
    "France Paris, Italy Rome, Spain Madrid, Germany Berlin, Austria Vienna, Greece Athens, Poland Warsaw, Norway Oslo, Sweden Stockholm, "
    "Finland Helsinki, Denmark Copenhagen, Ireland Dublin, Portugal Lisbon, Hungary Budapest, Turkey Ankara, Egypt Cairo, Kenya Nairobi, "
    "Japan Tokyo, China Beijing, Thailand Bangkok, Vietnam Hanoi, Cuba Havana, Peru Lima, Chile Santiago, Canada Ottawa, Australia Canberra, "
    "Russia Moscow, Ukraine Kyiv, Iran Tehran, Iraq Baghdad, Nepal Kathmandu, Belgium Brussels, Bulgaria Sofia, Romania Bucharest, "
    "Senegal Dakar, Ghana Accra"
)
OPPOSITES = (
    "hot cold, big small, fast slow, light dark, up down, open closed, early late, rich poor, young old, wet dry, hard soft, empty full, "
    "happy sad, strong weak, near far, high low, thick thin, true false, first last, loud quiet, clean dirty, long short, good bad, left right, "
    "inside outside, win lose, buy sell, begin end, love hate, push pull, day night, north south, summer winter, sweet sour, war peace, "
    "always never"
)
KINDS = (
    "trout fish, salmon fish, shark fish, eagle bird, sparrow bird, owl bird, oak tree, birch tree, willow tree, hammer tool, wrench tool, "
    "saw tool, rose flower, tulip flower, daisy flower, violin instrument, piano instrument, flute instrument, iron metal, copper metal, "
    "silver metal, shirt garment, coat garment, scarf garment, carrot vegetable, onion vegetable, cabbage vegetable, apple fruit, banana fruit, "
    "cherry fruit, ant insect, bee insect, beetle insect, truck vehicle, bicycle vehicle, tractor vehicle"
)
FORMS = [("The capital of {} is", CAPITALS), ("The opposite of {} is", OPPOSITES), ("A {} is a kind of", KINDS)]

TASK = """task: kernmill_likelihood
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list:
  - metric: acc
  - metric: acc_norm
"""


def items():
    rng = random.Random(28)
    for form, table in FORMS:
        pairs = [pair.split() for pair in table.split(", ")]
        ends = sorted({end for _, end in pairs})
        for begin, right in pairs:
            choices = rng.sample([end for end in ends if end != right], 3) + [right]
            rng.shuffle(choices)
            yield {"question": form.format(begin), "choices": choices, "answer": choices.index(right)}


def make(directory):
    directory.mkdir(parents=True, exist_ok=True)
    file = directory.resolve() / "items.jsonl"
    file.write_text("".join(json.dumps(item) + "\n" for item in items()))
    (directory / "likelihood.yaml").write_text(TASK.format(file=file))


def samples(directory):
    """Of each item: its log likelihoods, whether each is the likeliest text, whether the item is right."""
    (file,) = directory.rglob("samples_*.jsonl")
    found = {}
    for line in file.read_text().splitlines():
        sample = json.loads(line)
        found[sample["doc_id"]] = ([(float(value), str(greedy) == "True") for value, greedy in sample["filtered_resps"]], sample["acc"])
    return found


def compare(one, other, most):
    one, other = samples(one), samples(other)
    if not one or one.keys() != other.keys():
        sys.exit(f"{len(one)} items against {len(other)}")
    differences, greedy, verdicts = [], 0, 0
    for item, (values, right) in one.items():
        others, other_right = other[item]
        differences += [abs(a - b) for (a, _), (b, _) in zip(values, others, strict=True)]
        greedy += sum(a != b for (_, a), (_, b) in zip(values, others, strict=True))
        verdicts += right != other_right
    differences.sort()
    for name, found in (("first", one), ("second", other)):
        print(f"acc {sum(right for _, right in found.values()) / len(found):.4f} ({name})")
    print(f"{len(one)} items, {len(differences)} log likelihoods: {verdicts} other verdicts, {greedy} other likeliest texts")
    middle = differences[len(differences) // 2]
    print(f"difference: median {middle:.2e}, 95 % {differences[len(differences) * 95 // 100]:.2e}, largest {differences[-1]:.2e} nats")
    sys.exit(differences[-1] > most)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("make").add_argument("directory", type=Path)
    comparison = commands.add_parser("compare")
    comparison.add_argument("one", type=Path)
    comparison.add_argument("other", type=Path)
    comparison.add_argument("--most", type=float, default=1e-3, help="difference that is allowed, in nats")
    args = parser.parse_args()
    if args.command == "make":
        make(args.directory)
    else:
        compare(args.one, args.other, args.most)


if __name__ == "__main__":
    main()
