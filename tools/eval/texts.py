#!/usr/bin/env python3
"""Makes questions in the form of GSM8K, and what lm-eval makes of them: prompts with examples, answers of texts.

`tools/eval/texts.py eval/fixtures` writes the fixtures of eval/src/generate/tests.rs. It needs lm-eval 0.4.13
(PyPI) and fetches nothing.
"""

import json
import os
import random
import re
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

WHO = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Zo\u00eb"]
WHAT = ["apples", "books", "coins", "pens"]

# Texts with a right answer, a wrong one, none, or one in a form that the filters change.
TEXTS = [
    "She has 12.\n#### 12", "She has 12.\n#### 12.", "#### 1,200", "#### -5", "#### 1200\n#### 7", "####12",
    "The answer is 12", "The answer is $1,200.", "No answer", "", " ", "It is 3. Then 4.\nSo 12.", "3 and $12.00",
    "12\n", "- 12", "-12", "--12", "1.2.3", "$", "..", "12 apples and 7", "####  12", "#### 12 apples", "\u0661\u0662",
    "#### \u0661", "12,", ",,12,,", "The answer is twelve.", "#### 12\x1f", "a 5 b", "5", "#### .5", "0.50", "#### $12",
]
TARGETS = ["text\n#### 12", "text\n#### 1,200", "5.", "#### -12\n", "a\n#### 12.\n"]


def write_questions(folder, name, count, rng):
    lines = []
    for _ in range(count):
        who, what, first, more = rng.choice(WHO), rng.choice(WHAT), rng.randint(2, 2000), rng.randint(2, 90)
        question = f"{who} has {first} {what} and buys {more} more. How many {what} does {who} have now?"
        total = first + more
        steps = f"{who} has {first} + {more} = <<{first}+{more}={total}>>{total} {what}."
        answer = f"{steps}\n#### {total:,}"
        lines.append(json.dumps({"question": question, "answer": answer}, ensure_ascii=False))
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def task_of(folder, name, questions, examples):
    """lm-eval's GSM8K with our files; everything else stays as it is."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    text = (Path(lm_eval.__file__).parent / "tasks/gsm8k/gsm8k.yaml").read_text(encoding="utf-8")
    text = re.sub(r"^task: .*$", f"task: {name}", text, flags=re.M)
    text = re.sub(r"^dataset_path: .*$", "dataset_path: json", text, flags=re.M)
    text = re.sub(r"^dataset_name: .*\n", "", text, flags=re.M)
    files = {"train": examples, "test": questions}
    if examples == questions:
        text = re.sub(r"^(training_split|fewshot_split): .*\n", "", text, flags=re.M) + "fewshot_split: test\n"
        files = {"test": questions}
    text += "dataset_kwargs:\n  data_files:\n" + "".join(f"    {split}: {path}\n" for split, path in files.items())
    if examples is None:
        text = text.replace("num_fewshot: 5", "num_fewshot: 0").replace("    train: None\n", "")
        text = re.sub(r"^(training_split|fewshot_split): .*\n", "", text, flags=re.M)
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return TaskManager(include_path=str(folder), include_defaults=False).load([name])["tasks"][name]


def prompts(task):
    # What lm_eval run has by default.
    task.set_fewshot_seed(1234)
    task.build_all_requests(limit=None, rank=0, world_size=1)
    return [
        {"prompt": one.args[0], "target": task.doc_to_target(one.doc)}
        for one in sorted(task.instances, key=lambda one: one.doc_id)
    ]


def answers(task):
    from lm_eval.api.instance import Instance

    found = []
    for target in TARGETS:
        cases = [{"text": text, "target": target} for text in TEXTS]
        docs = [{"question": "q", "answer": target} for _ in TEXTS]
        instances = [
            Instance("generate_until", doc, ("", {}), 0, doc_id=number, resps=[text], metadata=("t", number, 1))
            for number, (doc, text) in enumerate(zip(docs, TEXTS))
        ]
        for one in task._filters:
            one.apply(instances)
        for case, doc, instance in zip(cases, docs, instances):
            for name, answer in instance.filtered_resps.items():
                right = task.process_results(doc, [answer])["exact_match"]
                case[name] = {"answer": answer, "is_right": bool(right)}
        found += cases
    return found


def main():
    folder = Path(sys.argv[1])
    rng = random.Random(54)
    write_questions(folder, "gsm8k-train.jsonl", 30, rng)
    write_questions(folder, "gsm8k.jsonl", 12, rng)
    questions, examples = (str((folder / name).resolve()) for name in ["gsm8k.jsonl", "gsm8k-train.jsonl"])
    with tempfile.TemporaryDirectory() as made:
        made = Path(made)
        apart = task_of(made, "apart", questions, examples)
        expected = {
            "apart": prompts(apart),
            "same": prompts(task_of(made, "same", examples, examples)),
            "none": prompts(task_of(made, "none", questions, None)),
            "answers": answers(apart),
        }
    text = json.dumps(expected, ensure_ascii=False, indent=1) + "\n"
    (folder / "expected-texts.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
