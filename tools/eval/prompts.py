#!/usr/bin/env python3
"""Makes questions in the files of published tasks, and the prompts that lm-eval makes of them.

`tools/eval/prompts.py eval/fixtures` writes the fixtures of eval/src/tasks/tests.rs; `tools/eval/prompts.py DIR N`
writes N questions of each task. It needs lm-eval 0.4.13 (PyPI) and fetches nothing. Where lm-eval reads another
form than the publisher's, both are written: NAME.hub.jsonl is lm-eval's.
"""

import csv
import json
import os
import random
import re
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

WHO = ["A man", "The woman", "A child", "Someone", "A dog", "An old sailor", "The Caf\u00e9 owner", "Zo\u00eb"]
DOES = ["walks to", "picks up", "looks at", "cleans", "throws", "opens", "paints", "explains", "repairs"]
WHAT = ["the table", "a red ball", "the gate", "the roof [title] of the house", "two [step] ladders", "the  canoe"]
HOW = ["slowly", "with care", "again and again", "before the rain begins", "while music plays", "without a word"]
AT_ENDS = ["he", "SHE", "then THE camera man", " next", "\u00e9mile", "", "\u00dfa"]

# Of each task: lm-eval's file, and the data file that it reads.
TASKS = {
    "hellaswag": ("hellaswag/hellaswag.yaml", "hellaswag.jsonl"),
    "arc": ("arc/arc_easy.yaml", "arc.hub.jsonl"),
    "mmlu": ("mmlu/default/_default_template_yaml", "mmlu.hub.jsonl"),
    "piqa": ("piqa/piqa.yaml", "piqa.hub.jsonl"),
    "winogrande": ("winogrande/default.yaml", "winogrande.jsonl"),
    "openbookqa": ("openbookqa/openbookqa.yaml", "openbookqa.hub.jsonl"),
    "boolq": ("super_glue/boolq/default.yaml", "boolq.hub.jsonl"),
}
MMLU = (
    'task: mmlu\ndescription: "The following are multiple choice questions (with answers) about '
    'high school biology.\\n\\n"\n'
)


def write_files(folder, count):
    rng = random.Random(54)
    pick = rng.choice
    files = {}

    def clause():
        return f"{pick(DOES)} {pick(WHAT)} {pick(HOW)}"

    def add(name, value):
        line = json.dumps(value, ensure_ascii=False)
        files.setdefault(name, []).append(line)

    table = csv.writer(open(folder / "high_school_biology_test.csv", "w", newline="", encoding="utf-8"))
    for number in range(count):
        head = f" [header] {pick(WHO)} {clause()}." if rng.random() < 0.4 else ""
        add("hellaswag.jsonl", {
            "ind": number,
            "activity_label": pick(["Cooking", "[header] How to paint a fence", "Sailing "]),
            "ctx_a": f"{pick(WHO)} {clause()}.{head}",
            "ctx_b": pick(AT_ENDS),
            "endings": [clause() + "." for _ in range(4)],
            "label": rng.randrange(4),
        })
        letters = pick(["ABCD", "1234", "ABC", "ABCDE"])
        choices = [{"text": clause(), "label": letter} for letter in letters]
        lists = {"text": [choice["text"] for choice in choices], "label": list(letters)}
        question, right = f"Who {clause()}?", pick(letters)
        add("arc.jsonl", {"question": {"stem": question, "choices": choices}, "answerKey": right})
        add("arc.hub.jsonl", {"question": question, "choices": lists, "answerKey": right})
        stem = f"{pick(WHO)} {clause()} since" + pick(["", " ", "  "])
        add("openbookqa.jsonl", {"question": {"stem": stem, "choices": choices}, "answerKey": right})
        add("openbookqa.hub.jsonl", {"question_stem": stem, "choices": lists, "answerKey": right})
        question, answer = f' Which "{clause()}", and\nwhere? ', rng.randrange(4)
        texts = [clause() for _ in range(4)]
        table.writerow([question, *texts, "ABCD"[answer]])
        subject = "high_school_biology"
        add("mmlu.hub.jsonl", {"question": question, "subject": subject, "choices": texts, "answer": answer})
        piqa, label = {"goal": clause(), "sol1": clause(), "sol2": clause()}, rng.randrange(2)
        add("piqa.jsonl", piqa)
        add("piqa.hub.jsonl", piqa | {"label": label})
        files.setdefault("piqa-labels.lst", []).append(str(label))
        sentence = f"{pick(WHO)} {clause()} because _ {clause()}."
        options = {"option1": pick(WHO), "option2": pick(WHO)}
        add("winogrande.jsonl", {"sentence": sentence} | options | {"answer": pick("12")})
        passage, question, truth = f"{pick(WHO)} {clause()}.", f"does someone {clause()}", rng.random() < 0.5
        add("boolq.jsonl", {"question": question, "title": "", "answer": truth, "passage": passage})
        add("boolq.hub.jsonl", {"question": question, "passage": passage, "label": int(truth)})
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_tasks(folder, data):
    """Writes lm-eval's tasks with our files as data; everything else stays as it is."""
    import lm_eval

    tasks = Path(lm_eval.__file__).parent / "tasks"
    for helper in ["hellaswag/utils.py", "winogrande/preprocess_winogrande.py"]:
        shutil.copy(tasks / helper, folder)
    for name, (source, file) in TASKS.items():
        text = (tasks / source).read_text(encoding="utf-8")
        text = re.sub(r"^task: .*$", f"task: {name}", text, flags=re.M)
        text = re.sub(r"^dataset_path: .*$", "dataset_path: json", text, flags=re.M)
        for dropped in [r"dataset_name: .*\n", r"\w+_split: .*\n", r"fewshot_config:\n  .*\n", r"tag:\n(  - .*\n)+"]:
            text = re.sub("^" + dropped, "", text, flags=re.M)
        text += "\n" + (MMLU if name == "mmlu" else "")
        text += f"dataset_kwargs:\n  data_files:\n    validation: {data / file}\nvalidation_split: validation\n"
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def expected(folder):
    from lm_eval.tasks import TaskManager

    tasks = TaskManager(include_path=str(folder), include_defaults=False).load(list(TASKS))["tasks"]
    found = {}
    for name, task in tasks.items():
        task.build_all_requests(limit=None, rank=0, world_size=1)
        pairs = {}
        for instance in task.instances:
            pairs.setdefault(instance.doc_id, []).append((instance.idx, list(instance.args)))
        found[name] = []
        for number, doc in task.doc_iterator(rank=0, limit=None, world_size=1):
            target = task.doc_to_target(doc)
            found[name].append({
                "pairs": [pair for _, pair in sorted(pairs[number])],
                "gold": task.doc_to_text(doc) if task.multiple_input else target,
                "lengths": [len(choice) for choice in task.doc_to_choice(doc)],
                "target": str(target),
            })
    return found


def main():
    folder, count = Path(sys.argv[1]).absolute(), int(sys.argv[2]) if len(sys.argv) > 2 else 6
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder, count)
    with tempfile.TemporaryDirectory() as tasks:
        os.environ["HF_DATASETS_CACHE"] = tasks
        write_tasks(Path(tasks), folder)
        found = expected(Path(tasks))
    text = json.dumps(found, ensure_ascii=False, indent=1) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
