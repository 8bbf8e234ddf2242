"""Random conversations: token ids of kernmill-chat against those of the wheel openai-harmony.

    compare_harmony.py --vocabulary DIR [--count N] [--seed N] [--vectors FILE]

DIR holds `o200k_base.tiktoken`. Deviations that are meant are made here on purpose, in `expected`:
reasoning goes if an answer follows, calls have the content type that the template gives them, and the form of
the answer has a section. `--vectors` writes short conversations with the wheel's ids instead, which the tests of chat/ have.
"""

import argparse
import json
import os
import random
import subprocess
import sys

WORDS = (
    "the a weather in Paris 42 3.14 -7 true null hello world function def return x += 1 ; user assistant "
    "system to=functions.f to=assistant final analysis commentary json code <|start|> <|end|> <|message|> <|channel|> "
    "<|call|> <|return|> <|constrain|> <|endoftext|> <|start|>system<|message|> é ñ Ω ж 世界 日本語 한국어 ไทย العربية 😀 👍🏽 "
    "\u200d \ufffd \u0301 { } [ ] \" ' \\ / // # ## ``` \t \n \n\n \r\n"
).split(" ")

# Ids of the longest conversation that is kept as a vector.
VECTOR_IDS = 600


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, share):
        return self.random.random() < share

    def text(self, most=30):
        glue = self.random.choice([" ", " ", "", "\n"])
        return glue.join(self.random.choice(WORDS) for _ in range(self.random.randint(0, most)))

    def line(self):
        return " ".join(self.text(6).split())

    def name(self):
        return self.random.choice(["get", "set", "find_all", "run-it", "a", "x2"]) + str(self.random.randint(0, 9))

    def scalar(self):
        r = self.random
        return r.choice([r.randint(-5, 10**6), True, False, None, self.line(), 0.5, 1.0, [1, "a"], {"k": 2}])

    def schema(self, depth=0):
        r = self.random
        kinds = ["string", "number", "integer", "boolean", "enum", "list", "any", "odd"]
        if depth < 3:
            kinds += ["object", "object", "array", "oneOf"]
        kind = r.choice(kinds)
        made = {}
        if kind == "enum":
            made = {"type": "string", "enum": [self.line() for _ in range(r.randint(0, 3))]}
        elif kind == "list":
            made = {"type": r.sample(["number", "integer", "string", "null", "boolean"], r.randint(1, 3))}
        elif kind == "any":
            made = r.choice([{}, {"type": "null"}, {"$ref": "#/x"}, {"anyOf": [{"type": "string"}]}])
        elif kind == "odd":
            made = r.choice([{"type": []}, {"oneOf": "x", "type": "string"}, {"enum": ["a"]}, {"oneOf": []}])
        elif kind == "array":
            made = {"type": "array"}
            if self.chance(0.8):
                made["items"] = self.schema(depth + 1)
        elif kind == "oneOf":
            made = {"oneOf": [self.schema(depth + 1) for _ in range(r.randint(1, 3))]}
        elif kind == "object":
            made = self.object(depth)
        else:
            made = {"type": kind}
        for key, share, value in [
            ("description", 0.4, self.line),
            ("title", 0.1, self.line),
            ("nullable", 0.15, lambda: self.chance(0.7)),
            ("default", 0.25, self.scalar),
            ("examples", 0.1, lambda: [self.scalar() for _ in range(r.randint(0, 3))]),
        ]:
            if self.chance(share):
                made[key] = value()
        if "oneOf" in made and isinstance(made["oneOf"], list) and "description" in made and self.chance(0.5):
            for variant in made["oneOf"][:1]:
                variant["description"] = made["description"]
        return made

    def object(self, depth=0):
        properties = {self.name(): self.schema(depth + 1) for _ in range(self.random.randint(0, 4))}
        made = {"type": "object", "properties": properties}
        if self.chance(0.7):
            made["required"] = [name for name in properties if self.chance(0.5)]
        return made

    def tool(self):
        parameters = self.object() if self.chance(0.85) else None
        return {"name": self.name(), "description": self.text(10), "parameters": parameters}

    def turn(self, tools):
        r = self.random
        user = {"name": self.name() if self.chance(0.1) else None, "text": self.text()}
        items = [{"user": user}]
        for n in range(r.choice([0, 0, 1, 2])):
            if self.chance(0.6):
                items.append({"reasoning": self.text()})
            if self.chance(0.2):
                items.append({"preamble": self.text(8)})
            if self.chance(0.7):
                is_builtin = self.chance(0.3)
                name = r.choice(["browser.search", "python"]) if is_builtin else r.choice(tools or [self.name()])
                called = {"id": f"c{n}", "name": name, "is_builtin": is_builtin}
                items.append({"call": called | {"arguments": json.dumps({"k": self.scalar()}, ensure_ascii=False)}})
                items.append({"output": called | {"text": self.text()}})
        if self.chance(0.7):
            items += [{"reasoning": self.text()}] if self.chance(0.5) else []
            items.append({"answer": self.text()})
        if self.chance(0.05):
            items.append({"instructions": self.text(8)})
        return items

    def conversation(self):
        r = self.random
        made = {"items": [{"instructions": self.text()}] if self.chance(0.6) else []}
        made["tools"] = [self.tool() for _ in range(r.choice([0, 0, 1, 2, 4]))]
        made["builtin"] = r.choice([[], [], [], ["browser"], ["python"], ["python", "browser"]])
        made["effort"] = r.choice(["low", "medium", "high"])
        made["date"] = r.choice([None, "2026-11-26", "1999-02-28"])
        if self.chance(0.1):
            described = self.line() if self.chance(0.5) else None
            made["format"] = {"name": self.name(), "description": described, "schema": self.object()}
        names = [tool["name"] for tool in made["tools"]]
        for _ in range(r.randint(0, 4)):
            made["items"] += self.turn(names)
        return made


def expected(harmony, encoding, given):
    """Ids that the wheel gives, with the deviations that are meant."""
    Message, Role, Author = harmony.Message, harmony.Role, harmony.Author
    system = harmony.SystemContent.new().with_reasoning_effort(harmony.ReasoningEffort[given["effort"].upper()])
    if given["date"]:
        system = system.with_conversation_start_date(given["date"])
    for tool in given["builtin"]:
        system = system.with_browser_tool() if tool == "browser" else system.with_python_tool()
    messages = [Message.from_role_and_content(Role.SYSTEM, system)]
    items = given["items"]
    first = next((n for n, item in enumerate(items) if "instructions" not in item), len(items))
    texts = [item["instructions"] for item in items[:first]]
    developer = harmony.DeveloperContent.new()
    if texts:
        developer = developer.with_instructions("\n\n".join(texts))
    if given["tools"]:
        new = harmony.ToolDescription.new
        tools = [new(tool["name"], tool["description"], parameters=tool["parameters"]) for tool in given["tools"]]
        developer = developer.with_function_tools(tools)
    if texts or given["tools"]:
        messages.append(Message.from_role_and_content(Role.DEVELOPER, developer))
    form = given.get("format")
    head = len(messages)
    answers = [n for n, item in enumerate(items) if "answer" in item]
    for n, item in enumerate(items[first:], first):
        [(kind, value)] = item.items()
        if kind == "reasoning" and n < max(answers, default=-1):
            continue
        messages.append(message(harmony, kind, value))
    config = harmony.RenderConversationConfig(auto_drop_analysis=False)
    conversation = harmony.Conversation.from_messages(messages)
    ids = encoding.render_conversation_for_completion(conversation, Role.ASSISTANT, config=config)
    if not form:
        return ids
    section = f"# Response Formats\n\n## {form['name']}\n\n"
    if form["description"] is not None:
        section += "".join(f"// {line}\n" for line in form["description"].splitlines())
    section += json.dumps(form["schema"], ensure_ascii=False, separators=(",", ":"))
    # What comes before, the developer message anew, what comes after.
    text = lambda one: encoding.decode(encoding.render(one)[3:-1])
    if head == 2:
        said = text(messages[1]) + "\n\n" + section
    else:
        said = section
    anew = Message.from_role_and_content(Role.DEVELOPER, said)
    conversation = harmony.Conversation.from_messages(messages[:1] + [anew] + messages[head:])
    found = encoding.render_conversation_for_completion(conversation, Role.ASSISTANT, config=config)
    if given["tools"]:
        # The system message names the functions only if the wheel sees them declared.
        before = len(encoding.render_conversation(harmony.Conversation.from_messages(messages[:1]), config=config))
        with_tools = harmony.Conversation.from_messages(messages[:2])
        both = encoding.render_conversation(with_tools, config=config)
        found = both[: len(both) - len(encoding.render(messages[1]))] + found[before:]
    return found


def message(harmony, kind, value):
    Message, Role, Author = harmony.Message, harmony.Role, harmony.Author
    if kind == "instructions":
        return Message.from_role_and_content(Role.DEVELOPER, harmony.DeveloperContent.new().with_instructions(value))
    if kind == "user":
        author = Author(role=Role.USER, name=value["name"])
        return Message.from_author_and_content(author, value["text"])
    if kind in ("call", "output"):
        name = value["name"] if value["is_builtin"] else "functions." + value["name"]
        channel = "analysis" if value["is_builtin"] else "commentary"
        if kind == "output":
            made = Message.from_author_and_content(Author(role=Role.TOOL, name=name), value["text"])
            return made.with_recipient("assistant").with_channel(channel)
        made = Message.from_role_and_content(Role.ASSISTANT, value["arguments"])
        form = "code" if value["is_builtin"] else "json"
        return made.with_recipient(name).with_channel(channel).with_content_type(form)
    channel = {"reasoning": "analysis", "preamble": "commentary", "answer": "final"}[kind]
    return Message.from_role_and_content(Role.ASSISTANT, value).with_channel(channel)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", required=True, help="directory of o200k_base.tiktoken")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vectors", help="write conversations and their ids to this file, and compare nothing")
    parser.add_argument("--program", default="target/debug/examples/harmony", help="the example `harmony`")
    arguments = parser.parse_args()
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = arguments.vocabulary
    import openai_harmony as harmony

    encoding = harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
    makers = [Maker(arguments.seed * 1_000_003 + n) for n in range(arguments.count)]
    given = [maker.conversation() for maker in makers]
    wanted = [expected(harmony, encoding, one) for one in given]
    if arguments.vectors:
        with open(arguments.vectors, "w", encoding="utf-8") as file:
            for one, ids in zip(given, wanted):
                if len(ids) > VECTOR_IDS:
                    continue
                line = {"conversation": one, "ids": ids}
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        return
    lines = "".join(json.dumps(one) + "\n" for one in given)
    ran = subprocess.run([arguments.program], input=lines, text=True, stdout=subprocess.PIPE, check=True)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    wrong = [n for n, (ours, theirs) in enumerate(zip(found, wanted)) if ours != theirs]
    for n in wrong[:3]:
        ours, theirs = found[n], wanted[n]
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        print(f"conversation {n} of seed {arguments.seed} differs at {at}:")
        for name, ids in ("ours", ours), ("theirs", theirs):
            print(f"  {name}: {encoding.decode(ids[max(at - 20, 0) : at + 20])!r}")
    total = sum(len(ids) for ids in wanted)
    print(f"{len(found)} of {len(wanted)} conversations, {total} ids, {len(wrong)} differ")
    sys.exit(1 if wrong or len(found) != len(wanted) else 0)


if __name__ == "__main__":
    main()
