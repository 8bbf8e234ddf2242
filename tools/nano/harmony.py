"""Harmony over token ids in Python: a second implementation beside chat/src/harmony.

Conversations are dictionaries with the fields of chat/src/conversation.rs, so the same JSON goes into
both (compare_harmony.py). `Rendered` also says which ids are the model's to learn.
"""

import json

SPECIAL = ["<|return|>", "<|constrain|>", "<|channel|>", "<|start|>", "<|end|>", "<|message|>", "<|call|>"]
END = "<|endoftext|>"
IDENTITY = "You are ChatGPT, a large language model trained by OpenAI."
CUTOFF = "2024-06"
CHANNELS = "# Valid channels: analysis, commentary, final. Channel must be included for every message."
CALLS = "\nCalls to these tools must go to the commentary channel: 'functions'."


def compact(value):
    """JSON as serde_json writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def system_text(conversation):
    top = f"{IDENTITY}\nKnowledge cutoff: {CUTOFF}"
    if conversation.get("date"):
        top += f"\nCurrent date: {conversation['date']}"
    effort = conversation.get("effort", "medium")
    text = "\n\n".join([top, f"Reasoning: {'low' if effort == 'none' else effort}", CHANNELS])
    return text + (CALLS if conversation.get("tools") else "")


def type_of(schema):
    """Scalars, lists of scalars and enums: what the dialogues need of TypeScript."""
    kind = schema["type"]
    if kind == "string" and schema.get("enum"):
        return " | ".join(f'"{value}"' for value in schema["enum"])
    if kind == "array":
        return type_of(schema["items"]) + "[]"
    return {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}[kind]


def object_type(schema):
    out = "{\n"
    for key, value in schema["properties"].items():
        if value.get("description"):
            out += f"// {value['description']}\n"
        out += f"{key}{'' if key in schema.get('required', []) else '?'}: {type_of(value)},\n"
    return out + "}"


def developer_text(conversation):
    sections = []
    heads = []
    for item in conversation["items"]:
        if "instructions" not in item:
            break
        heads.append(item["instructions"])
    if heads:
        sections.append("# Instructions\n\n" + "\n\n".join(heads))
    if conversation.get("tools"):
        lines = ["## functions\n", "namespace functions {\n"]
        for tool in conversation["tools"]:
            lines += [f"// {line}" for line in tool["description"].splitlines()]
            parameters = tool["parameters"]
            argument = f"_: {object_type(parameters)}" if parameters else ""
            lines.append(f"type {tool['name']} = ({argument}) => any;\n")
        lines.append("} // namespace functions")
        sections.append("# Tools\n\n" + "\n".join(lines))
    form = conversation.get("format")
    if form:
        section = f"# Response Formats\n\n## {form['name']}\n\n"
        section += "".join(f"// {line}\n" for line in (form["description"] or "").splitlines())
        sections.append(section + compact(form["schema"]))
    return "\n\n".join(sections) if sections else None


def begins_answer(conversation):
    """Whether the prompt begins the answer: without reasoning and functions, nothing else can follow."""
    return conversation.get("effort") == "none" and not conversation.get("tools")


class Rendered:
    """Ids with, for each, the id to learn in its place (-1: none)."""

    def __init__(self, encode, special):
        self.encode, self.special = encode, special
        self.ids, self.wanted = [], []
        self.head = 0        # ids of the system and developer messages

    def text(self, text, learn=False):
        ids = self.encode(text)
        self.ids += ids
        self.wanted += ids if learn else [-1] * len(ids)

    def mark(self, name, learn=False, want=None):
        """A special token; `want` is learnt in its place."""
        self.ids.append(self.special[f"<|{name}|>"])
        self.wanted.append(self.special[f"<|{want or name}|>"] if learn else -1)

    def message(self, author, text, channel=None, recipient=None, content=None, learn=False, end="end", want=None):
        self.mark("start")
        self.text(author)
        if recipient:
            self.text(f" to={recipient}")
        if channel:
            self.mark("channel")
            self.text(channel)
        if content:
            self.text(f" {content}")
        self.mark("message")
        self.text(text, learn)
        self.mark(end, learn, want)

    def prompt(self, conversation, learn=()):
        """The prompt of a conversation; the items with the places in `learn` are the model's to learn."""
        items = conversation["items"]
        self.message("system", system_text(conversation))
        developer = developer_text(conversation)
        if developer:
            self.message("developer", developer)
        self.head = len(self.ids)
        first = next((at for at, item in enumerate(items) if "instructions" not in item), len(items))
        answered = max((at for at, item in enumerate(items) if "answer" in item), default=first)
        for at in range(first, len(items)):
            (kind, value), = items[at].items()
            learns = at in learn
            if kind == "user":
                self.message("user", value["text"])
            elif kind == "reasoning":
                if at >= answered:
                    self.message("assistant", value, "analysis", learn=learns)
            elif kind == "answer":
                self.message("assistant", value, "final", learn=learns, want="return")
            elif kind == "call":
                self.message("assistant", value["arguments"], "commentary", f"functions.{value['name']}", "json",
                             learn=learns, end="call")
            elif kind == "output":
                self.message(f"functions.{value['name']}", value["text"], "commentary", "assistant")
            else:
                raise ValueError(kind)
        self.mark("start")
        self.text("assistant")
        if begins_answer(conversation):
            self.mark("channel")
            self.text("final")
            self.mark("message")

    def answer(self, conversation, made):
        """What the model generates after the prompt: reasoning, a call, an answer."""
        begun = True
        for item in made:
            (kind, value), = item.items()
            if not begun:
                self.mark("start", True)
                self.text("assistant", True)
            begun = False
            if not begins_answer(conversation):
                self.mark("channel", True)
                self.text({"reasoning": "analysis", "call": "commentary", "answer": "final"}[kind], True)
                if kind == "call":
                    self.text(f" to=functions.{value['name']}", True)
                    self.text(" ", True)
                    self.mark("constrain", True)
                    self.text("json", True)
                self.mark("message", True)
            self.text(value["arguments"] if kind == "call" else value, True)
            self.mark({"reasoning": "end", "call": "call", "answer": "return"}[kind], True)


def vocabulary(tokenizer):
    """(encode, special tokens by name) of a tokenizer."""
    known = {}

    def encode(text):
        if text not in known:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            if len(text) > 20:
                return list(ids)
            known[text] = ids
        return list(known[text])

    return encode, {name: tokenizer.token_to_id(name) for name in [*SPECIAL, END]}
