"""Answers of `kernmill batch`, held to the types of OpenAI's own library.

    target/clients/bin/python tools/clients/batch.py [KERNMILL]

KERNMILL is the program, target/release/kernmill by default; the model is nano. Every body must be of its type, without
a value that is missing or of another type. The exit status is that of the program where it should be another one.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from openai.types import Completion
from openai.types.chat import ChatCompletion
from openai.types.shared import ErrorObject

TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds two numbers",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
    },
}
MESSAGES = [{"role": "user", "content": "What is 17 + 25?"}]
BODIES = {
    "text": ("/v1/completions", {"prompt": "A slice is", "max_tokens": 8}),
    "likelihoods": ("/v1/completions", {"prompt": "A slice is", "max_tokens": 4, "logprobs": 2}),
    "chat": ("/v1/chat/completions", {"messages": MESSAGES, "logprobs": True, "top_logprobs": 2}),
    "form": ("/v1/chat/completions", {"messages": MESSAGES, "response_format": {"type": "json_object"}, "max_tokens": 40}),
    "tool": ("/v1/chat/completions", {"messages": MESSAGES, "tools": [TOOL], "tool_choice": "required", "max_tokens": 80}),
}
WRONG = {"wrong": ("/v1/completions", {"prompt": "A slice is", "max_tokens": "many"})}


def answers(program, requests):
    """The exit status, and the answers by the names of their requests."""
    with tempfile.TemporaryDirectory() as place:
        requests = [{"custom_id": name, "method": "POST", "url": url, "body": body} for name, (url, body) in requests.items()]
        Path(place, "in.jsonl").write_text("".join(json.dumps(request) + "\n" for request in requests))
        command = [program, "batch", f"{place}/in.jsonl", "-o", f"{place}/out.jsonl", "-q"]
        status = subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode
        found = [json.loads(line) for line in Path(place, "out.jsonl").read_text().splitlines()]
        return status, {answer["custom_id"]: answer for answer in found}


def check(program):
    status, found = answers(program, BODIES)
    assert (status, found.keys()) == (0, BODIES.keys()), f"status {status}: {found}"
    for name, (url, _) in BODIES.items():
        line = found[name]
        assert isinstance(line["id"], str) and line["error"] is None, line
        assert line["response"]["status_code"] == 200 and isinstance(line["response"]["request_id"], str), line
        kind = Completion if url == "/v1/completions" else ChatCompletion
        kind.model_validate(line["response"]["body"], strict=True)
    status, found = answers(program, BODIES | WRONG)
    assert status == 1, f"status {status} where a request is wrong"
    failed = found["wrong"]
    error = failed["error"] or failed["response"]["body"]["error"]
    ErrorObject.model_validate({"param": None, "type": "", **error}, strict=True)
    print(f"{len(BODIES)} answers are of OpenAI's types, and a wrong request is told of")


if __name__ == "__main__":
    check(sys.argv[1] if len(sys.argv) > 1 else "target/release/kernmill")
