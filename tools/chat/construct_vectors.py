"""Parts of Jinja that templates use, and what transformers makes of them: vectors for kernmill-chat's tests.

    construct_vectors.py > chat/tests/chat/constructs.jsonl

Constructs are the lines of `constructs.txt`, in which ⏎ is a newline. Each vector has the construct as `source`,
and its text; or, where rendering fails, neither a text nor a message. The first line is the conversation.
"""

import json
import pathlib

from transformers.utils.chat_template_utils import _compile_jinja_template

ARGUMENTS = {"city": "Oslo", "days": [1, 2.5, None, True]}
CALL = {"name": "weather", "arguments": ARGUMENTS}
HELLO = " Hello <b> & 'you' 世界 \n"
CONVERSATION = {
    "items": [
        {"user": {"text": HELLO}},
        {"preamble": "I ask."},
        {"call": {"id": "call12345", "name": "weather", "arguments": json.dumps(ARGUMENTS)}},
        {"output": {"id": "call12345", "name": "weather", "text": "rain"}},
        {"answer": "It rains."},
        {"user": {"text": "Thanks"}},
    ]
}
MESSAGES = [
    {"role": "user", "content": HELLO},
    {"role": "assistant", "content": "I ask.", "tool_calls": [{"id": "call12345", "type": "function", "function": CALL}]},
    {"role": "tool", "content": "rain", "name": "weather", "tool_call_id": "call12345"},
    {"role": "assistant", "content": "It rains."},
    {"role": "user", "content": "Thanks"},
]


def main():
    print(json.dumps({"conversation": CONVERSATION}, ensure_ascii=False))
    lines = pathlib.Path(__file__).with_name("constructs.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        vector = {"source": line.replace("⏎", "\n")}
        values = {"bos_token": "<s>", "eos_token": "</s>", "enable_thinking": True, "reasoning_effort": "medium"}
        values |= {"tools": None, "documents": None}
        try:
            template = _compile_jinja_template(vector["source"])
            vector["text"] = template.render(messages=MESSAGES, add_generation_prompt=True, **values)
        except Exception:
            pass
        print(json.dumps(vector, ensure_ascii=False))


if __name__ == "__main__":
    main()
