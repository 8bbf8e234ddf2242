"""Programs that ask a server by themselves."""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from common import GREETINGS, Client, equal, some

# A task of lm-eval with a local file: which of two ends is likelier.
ITEMS = [("A slice is", " a sequence of elements.", " seven."), ("Hello! How can I", " help you?", " be rainy?")]
TASK = """task: kernmill_clients
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: 0
target_delimiter: ""
metric_list:
  - metric: acc
"""


class LmEval(Client):
    package = "lm_eval"

    def other(self):
        """Likelihoods by ids, with the server's tokenizer. Each is the sum of those of its tokens."""
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            items = [{"question": begin, "choices": ends} for begin, *ends in ITEMS]
            (place / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
            (place / "task.yaml").write_text(TASK.format(file=place / "items.jsonl"))
            where = f"model={self.model},base_url={self.base}/completions,tokenizer_backend=remote,num_concurrent=2"
            command = [sys.executable, "-m", "lm_eval", "--model", "local-completions", "--model_args", where, "--include_path", directory]
            command += ["--tasks", "kernmill_clients", "--batch_size", "2", "--log_samples", "--output_path", str(place / "out")]
            offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(place / "home")}
            ran = subprocess.run(command, env=os.environ | offline, capture_output=True, text=True, check=False)
            if ran.returncode:
                raise AssertionError(ran.stderr[-500:])
            (file,) = (place / "out").rglob("samples_*.jsonl")
            samples = [json.loads(line) for line in file.read_text().splitlines()]
        equal(len(samples), len(ITEMS))
        for sample in samples:
            begin, *ends = ITEMS[sample["doc_id"]]
            for (value, _), end in zip(sample["filtered_resps"], ends, strict=True):
                difference = abs(float(value) - self.likelihood(begin, end))
                equal((end, difference < 1e-3), (end, True))

    def likelihood(self, begin, end):
        ids = [self.ask("/tokenize", prompt=text, add_special_tokens=False)["tokens"] for text in (begin, begin + end)]
        fields = {"model": self.model, "prompt": ids[1], "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        found = self.ask("/v1/completions", **fields)["choices"][0]["logprobs"]["token_logprobs"]
        return sum(found[len(ids[0]) : len(ids[1])])

    def ask(self, path, **fields):
        request = urllib.request.Request(self.root + path, json.dumps(fields).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


CONFIG = """model = "{model}"
model_provider = "kernmill"

[model_providers.kernmill]
name = "kernmill"
base_url = "{base}"
wire_api = "responses"
"""


class Codex(Client):
    """OpenAI's Codex CLI, which speaks Responses alone, against a server that answers from answers.json. It gets
    a home of its own, and runs in an empty directory."""

    package = "json"

    def run(self, prompt, model="gpt-oss-20b"):
        """The items that a run completed, the files that it left, and the tokens that it used."""
        program = Path(self.args.node, "node_modules/.bin/codex").resolve()
        with tempfile.TemporaryDirectory() as directory:
            home = Path(directory)
            (home / "config.toml").write_text(CONFIG.format(base=self.args.script, model=model))
            work = home / "work"
            work.mkdir()
            command = [program, "exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", prompt]
            env = os.environ | {"CODEX_HOME": directory}
            ran = subprocess.run(command, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            events = [json.loads(line) for line in ran.stdout.splitlines()]
            if ran.returncode or not events or events[-1]["type"] != "turn.completed":
                raise AssertionError(f"it ended with {ran.returncode}: {ran.stdout[-500:]} {ran.stderr[-500:]}")
            items = [event["item"] for event in events if event["type"] == "item.completed"]
            return items, {path.name: path.read_text() for path in work.iterdir()}, events[-1]["usage"]

    def said(self, items):
        return [item["text"] for item in items if item["type"] == "agent_message"]

    def chat(self):
        equal(self.said(self.run("Hi")[0]), [GREETINGS["gpt-oss-20b"]])

    # It asks for streams alone.
    stream = chat

    def tools(self):
        items, _, _ = self.run("Run the command")
        ran = [(item["command"], item["aggregated_output"], item["exit_code"]) for item in items if item["type"] == "command_execution"]
        equal(ran, [("/bin/bash -lc 'echo forty-$((1+1))'", "forty-2\n", 0)])
        equal(self.said(items), ["The command said 42."])

    def reasoning(self):
        _, _, usage = self.run("Run the command")
        some(usage["reasoning_output_tokens"])

    def other(self):
        """A file that it writes by its custom tool, which it offers to models whose names it knows."""
        items, files, _ = self.run("Write the file", "gpt-5.5")
        equal(files, {"made.txt": 'one "line"\n\ttwo\n'})
        equal(self.said(items), ["The file is written."])
