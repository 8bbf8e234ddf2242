"""Chat templates: the text and the tokens that kernmill makes of conversations against those of transformers.

    compare_templates.py DIR [--program FILE] [--count N] [--seed N] [--only NAME...]

DIR has the templates (`*.jinja`), and perhaps the tokenizer of one: NAME.json beside NAME.jinja. Every other template
gets nano's vocabulary with all that it may write as a special token. Every template is given some conversations, and N
random ones. The text must be that of transformers, of the conversation as it is, or where that is refused, of one of
its other forms. The ids must be those that the library `tokenizers` makes of this text, as transformers does. Only
where a conversation has special tokens written out they differ: the prompt must not have more of them than without.
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
import tempfile

from jinja2.exceptions import TemplateError
from tokenizers import Tokenizer
from transformers.utils.chat_template_utils import _alias_reasoning_fields, _compile_jinja_template

NANO = pathlib.Path(__file__).parents[2] / "model-specs/nano/tokenizer.json"

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


PLAIN = ["Hello", "world", "<b>", "&amp;", "it's", '"q"', "世界", "😀", "é", "\\n", "{{ x }}", "{% if %}", "a\tb", "  ", "\n", "1.0",
         "/think", "None", "```py\nx = 1\n```"]
WORDS = PLAIN + ["</s>", "<|im_end|>", "[INST]", "<think>", "</think>", "<tool_call>"]


def random_conversation(dice):
    """A conversation as clients have them: turns of users, with thoughts, calls and answers."""
    # Most conversations have no special tokens written out.
    words = WORDS if dice.random() < 0.25 else PLAIN
    text = lambda most=6: dice.choice(["", " ", "\n"]) + " ".join(dice.choices(words, k=dice.randint(1, most))) + dice.choice(["", " ", "\n"])
    plain = lambda: " ".join(dice.choices(PLAIN[:10], k=3))
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


def rendered(source, named, conversation):
    """What transformers makes of a conversation as it is, and a function for all that it makes of other forms."""
    effort = conversation.get("effort", "medium")
    values = {"enable_thinking": effort != "none", "documents": None} | named
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


def marks(source):
    """What looks like a special token in a template."""
    found = re.findall(r"<[|｜][^\s'\"<>{}]{1,40}[|｜]>|</?[a-zA-Z_:]{3,30}>|\[/?[A-Z_]{3,20}\]|\]<\][^'\"{}\s]{1,30}\[>\[", source)
    return sorted({*found, "<s>", "</s>", "<|im_end|>"})


def written_out(tokens):
    """Special tokens that are put into texts: all but the marks of thoughts and calls, which templates look for."""
    return "".join(one for one in tokens if not re.fullmatch(r"</?[a-z_:]+>|\[/?THINK\]|<\|/?(START|END)_THINKING\|>", one))


def made_tokenizer(source, path):
    """Writes a tokenizer of nano's vocabulary and a template's special tokens. Marks of thoughts and calls are
    ordinary added tokens, as in many models."""
    made = json.loads(NANO.read_text(encoding="utf-8"))
    own = made["added_tokens"]
    for content in marks(source):
        if all(content != one["content"] for one in own):
            special = not re.fullmatch(r"</?[a-z_:]+>", content)
            own.append(own[0] | {"id": own[-1]["id"] + 1, "content": content, "special": special})
    path.write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
    return path


def named_tokens(tokenizer, is_made):
    """Texts of the tokens around a text, by the names that templates have for them."""
    texts = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    begins = ["<s>"] if is_made else ["<bos>", "<|startoftext|>", "<|im_start|>", "<s>"]
    ends = ["</s>"] if is_made else ["<eos>", "<|return|>", "<|im_end|>", "</s>"]
    first = lambda known: next(text for text in known if text in texts)
    return {"bos_token": first(begins), "eos_token": first(ends)}


def texts_of(value):
    """All texts in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_of(part)


def token_verdict(model, conversation, ours):
    """How the ids of a prompt compare with those that transformers makes of its text."""
    theirs = model["tokenizer"].encode(ours["text"], add_special_tokens=False).ids
    if ours["ids"] == theirs:
        return "same tokens"
    added = model["added"]
    is_written = any(token in text for text in texts_of(conversation) for token in added.values())
    decode = lambda ids: model["tokenizer"].decode(ids, skip_special_tokens=False)
    rest = iter(id for id in theirs if id in added)
    is_kept = all(id in rest for id in ours["ids"] if id in added) and decode(ours["ids"]) == decode(theirs)
    return "special tokens of texts kept as text" if is_written and is_kept else "OTHER TOKENS"


def answers(program, cases, models):
    """What kernmill makes of the cases, one after the other."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as lines:
        for path, its in itertools.groupby(cases, lambda case: case[1]):
            model = {"template": models[path]["source"], "tokenizer": models[path]["file"], "named": models[path]["named"]}
            lines.writelines(json.dumps(one) + "\n" for one in [model, *(conversation for *_, conversation in its)])
        lines.seek(0)
        running = subprocess.Popen([program], stdin=lines, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        yield from (json.loads(line) for line in running.stdout)
        if running.wait() != 0:
            sys.exit(f"{program} failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--program", default="target/debug/examples/templates", help="the example `templates`")
    parser.add_argument("--count", type=int, default=0, help="random conversations for each template")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="names of templates, without `.jinja`")
    parser.add_argument("--show", action="store_true", help="print where texts differ")
    arguments = parser.parse_args()
    scratch = tempfile.TemporaryDirectory()
    cases, models = [], {}
    for path in sorted(arguments.directory.glob("*.jinja")):
        if arguments.only and path.stem not in arguments.only:
            continue
        source, real = path.read_text(encoding="utf-8"), path.with_suffix(".json")
        file = real if real.exists() else made_tokenizer(source, pathlib.Path(scratch.name) / real.name)
        tokenizer = Tokenizer.from_file(str(file))
        added = {id: token.content for id, token in tokenizer.get_added_tokens_decoder().items() if token.content.strip()}
        named = named_tokens(tokenizer, file != real)
        models[path.name] = {"source": source, "file": str(file), "tokenizer": tokenizer, "added": added, "named": named}
        hostile = written_out(added.values() if len(added) < 200 else named.values())
        for kind, more in ("plain", ""), ("calm", ""), ("hostile", hostile):
            for name, conversation in conversations(more).items():
                cases.append((kind, path.name, name, conversation | {"date": "2026-11-26"}))
        dice = random.Random(f"{arguments.seed} {path.name}")
        for n in range(arguments.count):
            cases.append(("random", path.name, str(n), random_conversation(dice) | {"date": "2026-11-26"}))
    counts, special, has_failed, last = {}, {}, False, None
    print(f"{len(models)} templates", flush=True)
    for (kind, path, name, conversation), ours in zip(cases, answers(arguments.program, cases, models)):
        if path != last:
            print(f"{path}, behind {sum(counts.values())} conversations", flush=True)
        model, last = models[path], path
        how_many = sum(id in model["added"] for id in ours.get("ids", []))
        if kind == "calm":
            special[path, name] = how_many if "text" in ours else None
            continue
        if kind == "hostile":
            was = special.get((path, name))
            verdict = "not comparable" if "text" not in ours or was is None else "safe" if how_many <= was else "FORGED"
            detail = f"{was} special tokens, now {how_many}: {ours.get('error')}"
        else:
            theirs, others = rendered(model["source"], model["named"], conversation)
            if "text" not in ours:
                verdict = "both refuse" if not isinstance(theirs, str) else "only theirs renders"
            elif ours["text"] == theirs:
                verdict = "same"
            elif not ours["tells_tools"] and conversation.get("tools"):
                verdict = "functions told in the instructions"
            elif not ours["tells_calls"] and any("call" in item for item in conversation["items"]):
                verdict = "calls told in texts"
            elif ours["text"] in others():
                verdict = "same in another form"
            else:
                verdict = "DIFFERENT"
            if "text" in ours:
                verdict += ", " + token_verdict(model, conversation, ours)
            detail = f"{conversation}\n   ours: {ours}\n   theirs: {theirs!r}"
        counts[kind, verdict] = counts.get((kind, verdict), 0) + 1
        is_bad = re.search("DIFFERENT|only theirs renders|FORGED|OTHER TOKENS", verdict)
        has_failed = has_failed or bool(is_bad)
        if arguments.show and is_bad:
            print(f"{kind} {path} {name}: {verdict}\n   {detail}")
    for (kind, verdict), count in sorted(counts.items()):
        print(f"{kind}: {count} {verdict}")
    sys.exit(int(has_failed))


if __name__ == "__main__":
    main()
