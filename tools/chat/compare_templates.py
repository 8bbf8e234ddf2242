"""Chat templates: the text that kernmill-chat makes of conversations against Python's Jinja.

    compare_templates.py DIR [--program FILE]

DIR has the templates (`*.jinja`). Every conversation is given to every template. Where a conversation has
special tokens written out, those in the prompt must be as many as without them.
"""

import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys

from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "A city's \"name\" & <more>, it's 世界"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": "integer"},
        "list": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["city"],
}
TOOL = {"name": "get_weather", "description": "Says how the weather is.", "parameters": SCHEMA}
CALL = {"id": "call12345", "name": "get_weather", "arguments": '{"city": "Paris", "days": 2, "x": 0.5}'}


def conversations(hostile):
    """Conversations by name; `hostile` is put into every text."""
    user = lambda text: {"user": {"text": text + hostile}}
    system = {"instructions": "Be brief." + hostile}
    output = {"output": {"id": "call12345", "name": "get_weather", "text": "  21 degrees\n" + hostile}}
    answer = {"answer": "Hello!" + hostile}
    tool = TOOL | {"description": TOOL["description"] + hostile}
    call = {"call": CALL | {"arguments": json.dumps({"city": "Paris" + hostile, "days": 2, "x": 0.5}, ensure_ascii=False)}}
    called = [user("Weather?"), {"reasoning": "I ask." + hostile}, call, output]
    return {
        "user": {"items": [user(" Hello <b> & 'you' \n")]},
        "system": {"items": [system, user("Hello"), answer, user("Again")]},
        "thoughts": {"items": [user("Hello"), {"reasoning": "Hm."}, answer, user("Again")]},
        "written": {"items": [user("Hello"), {"answer": "<think>\nHm.\n</think>\n\nHi"}, user("Again")]},
        "tools": {"items": [system, user("Weather?")], "tools": [tool]},
        "called": {"items": called, "tools": [tool]},
        "answered": {"items": [system, *called, answer, user("And now?")], "tools": [tool]},
        "quick": {"items": [user("Hello")], "effort": "none"},
    }


def messages(items):
    """Messages of a conversation as templates get them."""
    made = []
    for item in items:
        [(kind, value)] = item.items()
        if kind == "instructions":
            made.append({"role": "system", "content": value})
        elif kind == "user":
            made.append({"role": "user", "content": value["text"]})
        elif kind == "output":
            one = {"role": "tool", "name": value["name"], "tool_call_id": value["id"], "content": value["text"]}
            made.append(one)
        else:
            if not made or made[-1]["role"] != "assistant":
                made.append({"role": "assistant", "content": ""})
            if kind == "reasoning":
                made[-1]["reasoning_content"] = value
            elif kind == "answer":
                made[-1]["content"] = value
            else:
                function = {"name": value["name"], "arguments": json.loads(value["arguments"])}
                call = {"id": value["id"], "type": "function", "function": function}
                made[-1].setdefault("tool_calls", []).append(call)
    return made


class Generation(Extension):
    """The block around what is generated, which training needs."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


class Refused(Exception):
    pass


def rendered(source, conversation):
    """Text of Python's Jinja, as the usual library sets it up; None if the template refuses or fails."""

    def refuse(message):
        raise Refused(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        options = {"indent": indent, "separators": separators, "sort_keys": sort_keys}
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = datetime.datetime(2026, 11, 26).strftime
    effort = conversation.get("effort", "medium")
    values = {"enable_thinking": effort != "none", "bos_token": "<s>", "eos_token": "</s>"}
    if effort != "none":
        values["reasoning_effort"] = effort
    if "tools" in conversation:
        values["tools"] = [{"type": "function", "function": tool} for tool in conversation["tools"]]
    try:
        template = environment.from_string(source)
        return template.render(messages=messages(conversation["items"]), add_generation_prompt=True, **values)
    except Refused as refusal:
        return {"refused": str(refusal)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def tokens(source, kind):
    """What looks like a special token in a template. Where texts are compared, marks of thoughts are none: as
    tokens they could not be looked for in what a conversation says."""
    found = re.findall(r"<[|｜][^\s'\"<>{}]{1,40}[|｜]>|</?[a-z_]{3,30}>|\[/?[A-Z_]{3,20}\]", source)
    thoughts = {"<think>", "</think>"} if kind == "plain" else set()
    return sorted({*found, "<s>", "</s>", "<|im_end|>"} - thoughts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--program", default="target/debug/examples/templates", help="the example `templates`")
    parser.add_argument("--show", action="store_true", help="print where texts differ")
    arguments = parser.parse_args()
    cases = []
    for path in sorted(arguments.directory.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        for kind, hostile in ("plain", ""), ("calm", ""), ("hostile", "".join(tokens(source, "hostile"))):
            for name, conversation in conversations(hostile).items():
                cases.append((kind, path.name, name, source, conversation | {"date": "2026-11-26"}))
    lines = "".join(
        json.dumps({"template": source, "conversation": conversation, "tokens": tokens(source, kind)}) + "\n"
        for kind, _, _, source, conversation in cases
    )
    ran = subprocess.run([arguments.program], input=lines, text=True, stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    counts, special = {}, {}
    for (kind, path, name, source, conversation), ours in zip(cases, answers):
        if kind == "calm":
            special[path, name] = ours.get("special")
            continue
        if kind == "hostile":
            was = special.get((path, name))
            verdict = "not comparable" if "text" not in ours or was is None else "safe" if was == ours["special"] else "FORGED"
            detail = f"{was} special tokens, now {ours.get('special')}: {ours.get('error')}"
        else:
            theirs = rendered(source, conversation)
            if isinstance(theirs, dict):
                verdict = "only ours renders" if "text" in ours else "both refuse"
            else:
                verdict = "same" if ours.get("text") == theirs else "only theirs renders" if "error" in ours else "DIFFERENT"
            detail = f"ours: {ours}\n   theirs: {theirs!r}"
        counts[kind, verdict] = counts.get((kind, verdict), 0) + 1
        if arguments.show and verdict not in ("same", "safe", "both refuse"):
            print(f"{kind} {path} {name}: {verdict}\n   {detail}")
    for (kind, verdict), count in sorted(counts.items()):
        print(f"{kind}: {count} {verdict}")
    bad = {"DIFFERENT", "only theirs renders", "FORGED"}
    sys.exit(1 if any(verdict in bad for _, verdict in counts) else 0)


if __name__ == "__main__":
    main()
