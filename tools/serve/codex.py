"""OpenAI's Codex CLI against a server that answers from `answers.json`: a prompt, and a command with its result.

    codex.py http://127.0.0.1:8080/v1 [--codex PROGRAM]

Codex speaks Responses alone. It gets a home of its own, and runs in an empty directory.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIG = """model = "gpt-oss-20b"
model_provider = "kernmill"

[model_providers.kernmill]
name = "kernmill"
base_url = "{base}"
wire_api = "responses"
"""
COMMAND = "/bin/bash -lc 'echo forty-$((1+1))'"


def items(codex, home, prompt):
    """The items that a run of Codex completed, and what it used."""
    work = home / "work"
    work.mkdir(exist_ok=True)
    command = [codex, "exec", "--json", "--skip-git-repo-check", "--sandbox", "danger-full-access", prompt]
    run = subprocess.run(command, cwd=work, env=os.environ | {"CODEX_HOME": str(home)}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    events = [json.loads(line) for line in run.stdout.splitlines()]
    if run.returncode or events[-1]["type"] != "turn.completed":
        sys.exit(f"codex ended with {run.returncode}\n{run.stdout}\n{run.stderr}")
    return [event["item"] for event in events if event["type"] == "item.completed"], events[-1]["usage"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="such as http://127.0.0.1:8080/v1")
    parser.add_argument("--codex", default="codex", help="program")
    args = parser.parse_args()
    codex = str(Path(args.codex).resolve()) if "/" in args.codex else args.codex
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        (home / "config.toml").write_text(CONFIG.format(base=args.base))
        found, _ = items(codex, home, "Hi")
        said = [item["text"] for item in found if item["type"] == "agent_message"]
        assert said == ["Hello! One, two, three, four, five."], found
        found, usage = items(codex, home, "Run the command")
        ran = [(item["command"], item["aggregated_output"], item["exit_code"]) for item in found if item["type"] == "command_execution"]
        assert ran == [(COMMAND, "forty-2\n", 0)], found
        said = [item["text"] for item in found if item["type"] == "agent_message"]
        assert said == ["The command said 42."], found
        print(f"  ok  codex: {usage}")


if __name__ == "__main__":
    main()
