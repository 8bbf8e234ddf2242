"""Prompts of the dialogues: ids of harmony.py against those of a running server.

    kernmill serve &
    python compare_harmony.py [--url http://127.0.0.1:8080] [--count N] [--data DIR]

The server renders each conversation with the chat crate (POST /tokenize) and puts today's date into it.
"""

import argparse
import datetime
import json
import urllib.request
from pathlib import Path

from tokenizers import Tokenizer

from dialogues import KINDS, Maker
from harmony import Rendered, vocabulary
from prepare import data_dir


def body(conversation, model):
    """A conversation as a request."""
    messages = []
    for item in conversation["items"]:
        (kind, value), = item.items()
        if kind == "user":
            messages.append({"role": "user", "content": value["text"]})
        elif kind == "instructions":
            messages.append({"role": "system", "content": value})
        elif kind == "answer":
            messages.append({"role": "assistant", "content": value})
        elif kind == "reasoning":
            messages.append({"role": "assistant", "reasoning_content": value})
        elif kind == "call":
            function = {"name": value["name"], "arguments": value["arguments"]}
            call = {"id": value["id"], "type": "function", "function": function}
            last = messages[-1]
            message = last if last["role"] == "assistant" and "reasoning_content" in last else {"role": "assistant"}
            message["tool_calls"] = [call]
            if message is not last:
                messages.append(message)
        elif kind == "output":
            messages.append({"role": "tool", "tool_call_id": value["id"], "content": value["text"]})
    request = {"model": model, "messages": messages, "reasoning_effort": conversation["effort"]}
    if conversation.get("tools"):
        request["tools"] = [{"type": "function", "function": tool} for tool in conversation["tools"]]
    if conversation.get("format"):
        schema = {key: value for key, value in conversation["format"].items() if value is not None}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    return request


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--data", help="directory of prepare.py's output (default: $KERNMILL_DATA)")
    parser.add_argument("--tokenizer", type=Path, default=root / "model-specs" / "nano" / "tokenizer.json")
    parser.add_argument("--count", type=int, default=600)
    options = parser.parse_args()
    maker = Maker(7, (data_dir(options.data) / "train.txt").read_text(encoding="utf-8"))
    words = vocabulary(Tokenizer.from_file(str(options.tokenizer)))
    with urllib.request.urlopen(f"{options.url}/v1/models") as answer:
        model = json.load(answer)["data"][0]["id"]
    ids, kinds = 0, list(KINDS)
    for at in range(options.count):
        _, conversation, _, _ = maker.dialogue(kinds[at % len(kinds)])
        conversation["date"] = datetime.date.today().isoformat()
        mine = Rendered(*words)
        mine.prompt(conversation)
        data = json.dumps(body(conversation, model)).encode()
        request = urllib.request.Request(f"{options.url}/tokenize", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            theirs = json.load(answer)["tokens"]
        if mine.ids != theirs:
            raise SystemExit(f"{json.dumps(conversation)}\n{mine.ids}\n{theirs}")
        ids += len(theirs)
    print(f"{options.count} conversations, {ids} ids: equal")


if __name__ == "__main__":
    main()
