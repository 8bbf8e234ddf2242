"""Chat templates: the text that kernmill-chat makes of conversations against that of transformers.

    compare_templates.py DIR [--program FILE] [--count N] [--seed N]

DIR has the templates (`*.jinja`). Every template is given some conversations, and N random ones. The text must be
that of transformers, of the conversation as it is, or where that is refused, of one of its other forms. Where a
conversation has special tokens written out, those in the prompt must be as many as without them.
"""

import argparse
import copy
import datetime
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys

from jinja2.exceptions import TemplateError
from transformers.utils.chat_template_utils import _alias_reasoning_fields, _compile_jinja_template

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


WORDS = ["Hello", "world", "<b>", "&amp;", "it's", '"q"', "世界", "😀", "é", "\\n", "{{ x }}", "{% if %}", "a\tb", "  ", "\n", "1.0",
         "/think", "</s>", "<|im_end|>", "[INST]", "<think>", "</think>", "<tool_call>", "None", "```py\nx = 1\n```"]


def random_conversation(dice):
    """A conversation as clients have them: turns of users, with thoughts, calls and answers."""
    text = lambda most=6: dice.choice(["", " ", "\n"]) + " ".join(dice.choices(WORDS, k=dice.randint(1, most))) + dice.choice(["", " ", "\n"])
    plain = lambda: " ".join(dice.choices(WORDS[:10], k=3))
    tools = [TOOL | {"name": name, "description": plain()} for name in dice.sample(["get_weather", "add", "find_all"], dice.randint(1, 3))]
    tools = tools if dice.random() < 0.5 else []
    items = [{"instructions": text()}] if dice.random() < 0.5 else []
    for turn in range(dice.randint(1, 4)):
        if turn:
            items.append({"answer": text()})
        if turn and dice.random() < 0.1:
            items.append({"instructions": text()})
        items += [{"user": {"text": text()}} for _ in range(dice.choice([1, 1, 1, 1, 2]))]
        if tools and dice.random() < 0.5:
            items += [{"reasoning": text()}] * dice.randint(0, 1) + [{"preamble": text()}] * dice.randint(0, 1)
            calls = range(dice.choice([1, 1, 2]))
            ids = [f"c{dice.randrange(10**8):08}" for _ in calls]
            names = [dice.choice(tools)["name"] for _ in calls]
            for id, name in zip(ids, names):
                value = dice.choice([plain(), dice.randrange(100), 1.5, True, None, [1, "a"], {"b": plain()}])
                arguments = dice.choice([{}, {"city": plain()}, {"city": plain(), "x": value}])
                items.append({"call": {"id": id, "name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}})
            items += [{"output": {"id": id, "name": name, "text": text()}} for id, name in zip(ids, names)]
    return {"items": items, "tools": tools, "effort": dice.choice(["none", "low", "medium"])}


def messages(items, has_text_arguments, has_null_content):
    """Messages of a conversation as templates get them."""
    made, is_turn = [], False
    for item in items:
        [(kind, value)] = item.items()
        is_own = kind in ("reasoning", "preamble", "answer", "call")
        if is_own and not is_turn:
            made.append({"role": "assistant", "content": ""})
        is_turn = is_own
        if kind == "instructions":
            made.append({"role": "system", "content": value})
        elif kind == "user":
            made.append({"role": "user", "content": value["text"]})
        elif kind == "output":
            one = {"role": "tool", "content": value["text"], "name": value["name"], "tool_call_id": value["id"]}
            made.append(one)
        elif kind == "reasoning":
            made[-1]["reasoning_content"] = value
        elif kind == "call":
            arguments = json.loads(value["arguments"])
            if has_text_arguments:
                arguments = json.dumps(arguments, ensure_ascii=False)
            call = {"id": value["id"], "type": "function", "function": {"name": value["name"], "arguments": arguments}}
            made[-1].setdefault("tool_calls", []).append(call)
        else:
            before = made[-1]["content"]
            made[-1]["content"] = before + "\n\n" + value if before else value
    for one in made:
        if has_null_content and "tool_calls" in one and not one["content"]:
            one["content"] = None
    return made


def with_single_calls(given):
    """Several calls of a message one after the other, each with its output."""
    made, rest = [], list(given)
    while rest:
        one = rest.pop(0)
        calls = one.get("tool_calls", [])
        if len(calls) < 2:
            made.append(one)
            continue
        outputs = []
        while rest and rest[0]["role"] == "tool":
            outputs.append(rest.pop(0))
        for n, call in enumerate(calls):
            empty = None if one["content"] is None else ""
            made.append((one if n == 0 else {"role": "assistant", "content": empty}) | {"tool_calls": [call]})
            made += [output for output in outputs if output["tool_call_id"] == call["id"]]
    return made


def in_form(given, system, joins):
    """Messages with all instructions first, or in the user's first message, and neighbours joined."""
    made = copy.deepcopy(given)
    texts = [one["content"] for one in made if one["role"] == "system"]
    if system != "as it is" and texts:
        made = [one for one in made if one["role"] != "system"]
        first = next((one for one in made if one["role"] == "user"), None)
        if system == "first":
            made.insert(0, {"role": "system", "content": "\n\n".join(texts)})
        elif first:
            first["content"] = "\n\n".join([*texts, first["content"]])
    joined = []
    for one in made:
        if joins and joined and one["role"] == joined[-1]["role"] and one["role"] in ("user", "system"):
            joined[-1]["content"] += "\n\n" + one["content"]
        else:
            joined.append(one)
    return joined


def rendered(source, conversation):
    """What transformers makes of a conversation as it is, and a function for all that it makes of other forms."""
    effort = conversation.get("effort", "medium")
    values = {"enable_thinking": effort != "none", "bos_token": "<s>", "eos_token": "</s>", "documents": None}
    values["strftime_now"] = datetime.datetime(2026, 11, 26).strftime
    if effort != "none":
        values["reasoning_effort"] = effort
    tools = [{"type": "function", "function": tool} for tool in conversation.get("tools", [])]

    def text(given, has_tools):
        tools_given = {"tools": tools or None} if has_tools else {}
        given = _alias_reasoning_fields(copy.deepcopy(given))
        try:
            template = _compile_jinja_template(source)
            return template.render(messages=given, add_generation_prompt=True, **values, **tools_given)
        except Exception as error:
            return {"refused": isinstance(error, TemplateError), "error": f"{type(error).__name__}: {error}"}

    def others():
        made = set()
        ways = itertools.product([False, True], [False, True], [False, True], ["as it is", "first", "user"], [False, True])
        for has_text_arguments, has_null_content, is_single, system, joins in ways:
            given = messages(conversation["items"], has_text_arguments, has_null_content)
            given = in_form(with_single_calls(given) if is_single else given, system, joins)
            for has_tools in [True] if tools else [True, False]:
                one = text(given, has_tools)
                made |= {one} if isinstance(one, str) else set()
        return made

    return text(messages(conversation["items"], False, False), True), others


def tokens(source, kind):
    """What looks like a special token in a template. Where texts are compared, marks of thoughts are none: as
    tokens they could not be looked for in what a conversation says."""
    found = re.findall(r"<[|｜][^\s'\"<>{}]{1,40}[|｜]>|</?[a-z_]{3,30}>|\[/?[A-Z_]{3,20}\]", source)
    thoughts = {"<think>", "</think>"} if kind == "plain" else set()
    return sorted({*found, "<s>", "</s>", "<|im_end|>"} - thoughts)


def written_out(source):
    """Special tokens that are put into texts: all but the marks of thoughts and calls, which templates look for."""
    return "".join(one for one in tokens(source, "hostile") if not re.fullmatch(r"</?[a-z_]+>", one))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--program", default="target/debug/examples/templates", help="the example `templates`")
    parser.add_argument("--count", type=int, default=0, help="random conversations for each template")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print where texts differ")
    arguments = parser.parse_args()
    cases = []
    for path in sorted(arguments.directory.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        for kind, hostile in ("plain", ""), ("calm", ""), ("hostile", written_out(source)):
            for name, conversation in conversations(hostile).items():
                cases.append((kind, path.name, name, source, conversation | {"date": "2026-11-26"}))
        dice = random.Random(f"{arguments.seed} {path.name}")
        for n in range(arguments.count):
            cases.append(("random", path.name, str(n), source, random_conversation(dice) | {"date": "2026-11-26"}))
    lines = "".join(
        json.dumps({"template": source, "conversation": conversation, "tokens": tokens(source, kind)}) + "\n"
        for kind, _, _, source, conversation in cases
    )
    ran = subprocess.run([arguments.program], input=lines, text=True, stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in ran.stdout.split("\n") if line]
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
            theirs, others = rendered(source, conversation)
            if "text" not in ours:
                verdict = "both refuse" if not isinstance(theirs, str) else "only theirs renders"
            elif ours["text"] == theirs:
                verdict = "same"
            elif not ours["tells_tools"] and conversation.get("tools"):
                verdict = "functions told in the instructions"
            elif ours["text"] in others():
                verdict = "same in another form"
            else:
                verdict = "DIFFERENT"
            detail = f"{conversation}\n   ours: {ours}\n   theirs: {theirs!r}"
        counts[kind, verdict] = counts.get((kind, verdict), 0) + 1
        if arguments.show and verdict in ("DIFFERENT", "only theirs renders", "FORGED"):
            print(f"{kind} {path} {name}: {verdict}\n   {detail}")
    for (kind, verdict), count in sorted(counts.items()):
        print(f"{kind}: {count} {verdict}")
    bad = {"DIFFERENT", "only theirs renders", "FORGED"}
    sys.exit(1 if any(verdict in bad for _, verdict in counts) else 0)


if __name__ == "__main__":
    main()
