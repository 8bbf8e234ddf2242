"""Synthetic dialogues for the nano model, made by seed.

    python dialogues.py [--data DIR] [--count N] [--seed N] [--heldout]    print some, as JSON

turns.py makes the single turns and says which of them are held out.
"""

import argparse
import datetime
import json

import phrases
import wordings
from functions import Functions
from harmony import compact
from prepare import data_dir
from turns import EASY, Turns, is_held_out

# How often each kind is the last turn.
SHARES = {"talk": 24, "fact": 20, "add": 18, "subtract": 26, "multiply": 16, "copy": 90, "sort numbers": 18,
          "sort words": 110, "recall": 10, "tell": 6, "unknown": 16, "call": 110, "result": 10, "json": 44}
KINDS = list(SHARES)
PLAIN = [kind for kind in KINDS if kind not in ("call", "result", "json")]
WITH_FUNCTIONS = 0.4      # of the plain dialogues: functions are there, too
# The name and the arguments stand in the call, where the engine holds them to what is declared.
CALL = "I call a function."
KNOWN_FUNCTIONS = 0.3     # of the functions: those of phrases.py, the rest is drawn


class Maker(Turns):
    """Makes dialogues; `held` chooses items that are held out for the last turn."""

    def __init__(self, seed, text):
        super().__init__(seed, text)
        self.text = text
        self.functions = Functions(self)
        self.head = None
        self.shares = SHARES

    def shared(self, name, make):
        """What the dialogues of a group have in common; made anew outside of a group."""
        if self.head is None:
            return make()
        if name not in self.head:
            self.head[name] = make()
        return self.head[name]

    def base(self, with_functions=False, efforts=("medium",) * 4 + ("low", "high") * 2 + ("none",) * 4):
        def make():
            conversation = {"items": [], "tools": [], "effort": self.pick(efforts)}
            if self.chance(0.45):
                day = datetime.date(2024, 1, 1) + datetime.timedelta(self.random.randrange(1460))
                conversation["date"] = day.isoformat()
            if self.chance(0.12):
                conversation["items"].append({"instructions": self.pick(phrases.INSTRUCTIONS)})
            return conversation
        conversation = self.shared("base", make)
        conversation = dict(conversation, items=list(conversation["items"]))
        if with_functions:
            self.chosen = self.shared("functions", self.some_functions)
            conversation["tools"] = [self.tool(function) for function in self.chosen]
        return conversation

    def group(self, count):
        """Dialogues with one head: the same system and developer messages."""
        first = self.random.choices(list(self.shares), self.shares.values())[0]
        plain = [] if first == "json" else PLAIN
        with_functions = first in ("call", "result") or bool(plain) and self.chance(WITH_FUNCTIONS)
        family = plain + ["call", "result"] if with_functions else plain or ["json"]
        weights = [self.shares[kind] * (3 if kind in ("call", "result") else 1) for kind in family]
        self.head, made = {}, []
        for _ in range(count):
            made.append(self.dialogue(first, with_functions=with_functions))
            first = self.random.choices(family, weights)[0]
        self.head = None
        return made

    def say(self, conversation, learn, turn):
        """Appends an answered turn."""
        user, _, answer, plain = turn
        none = conversation["effort"] == "none"
        conversation["items"] += [{"user": {"name": None, "text": user}}, {"answer": plain if none else answer}]
        if none or plain == answer:
            learn.add(len(conversation["items"]) - 1)

    def ask(self, conversation, turn):
        """Appends the last question; returns what the model is to make."""
        user, reasoning, answer, plain = turn
        conversation["items"].append({"user": {"name": None, "text": user}})
        if conversation["effort"] == "none":
            return [{"answer": plain}]
        return [{"reasoning": reasoning}, {"answer": answer}]

    def dialogue(self, kind=None, held=False, with_functions=None):
        """(kind, conversation, what the model makes, places in the conversation to learn)."""
        self.held = held
        kind = kind or self.random.choices(list(self.shares), self.shares.values())[0]
        if with_functions is None:
            with_functions = kind in ("call", "result") or kind in PLAIN and self.chance(WITH_FUNCTIONS)
        conversation, learn = self.base(with_functions), set()
        if kind == "json":
            return kind, *self.json(conversation, learn)
        # Without reasoning every answer is learnt whole, so such dialogues are longer.
        turns = [(0, 1), (2, 2), (4, 3), (6, 2)] if conversation["effort"] == "none" else [(0, 5), (1, 3), (2, 2),
                                                                                           (3, 1)]
        turns = turns[:3] if kind in ("recall", "call", "result") or with_functions else turns
        counts, weights = zip(*turns)
        count = self.random.choices(counts, weights)[0]
        if kind == "recall":
            return kind, *self.recall(conversation, learn, count)
        for _ in range(count // 2 if with_functions else count):
            if with_functions and self.chance(0.35):
                self.called(conversation, learn)
            else:
                self.say(conversation, learn, self.free(lambda: self.turn(self.pick(EASY))))
        if kind in ("call", "result"):
            return kind, *self.function(kind, conversation, learn)
        return kind, conversation, self.ask(conversation, self.turn(kind)), learn

    def recall(self, conversation, learn, more):
        kinds = self.random.sample(phrases.MEMORIES, self.random.choices([1, 2, 3], [5, 3, 1])[0])
        asked = self.random.randrange(len(kinds))
        turns = []
        for at, memory in enumerate(kinds):
            name, ways, reply, ask, answer = memory

            def make():
                value = self.remembered(name)
                return f"recall {name} {value}", value
            value = self.until(make) if at == asked else self.free(lambda: self.until(make))
            turns.append((self.pick(ways).format(value), "", reply.format(value), reply.format(value)))
            if at == asked:
                answer = answer.format(value)
                question = self.pick(ask)
                if self.chance(0.3):
                    question = wordings.framed(self.random, question, [""])
                question = (question, f"The {name} is {value}.", answer, answer)
        for _ in range(more // 2):
            kind = self.pick([kind for kind in EASY if kind != "tell"])
            turns.insert(self.random.randint(0, len(turns)), self.free(lambda: self.turn(kind)))
        for turn in turns:
            self.say(conversation, learn, turn)
        return conversation, self.ask(conversation, question), learn

    def some_functions(self):
        """One to four functions: known ones and drawn ones."""
        known, made, names = list(phrases.FUNCTIONS), [], set()
        for _ in range(self.random.choices([1, 2, 3, 4], [3, 4, 4, 1])[0]):
            function = self.pick(known) if self.usual or self.chance(KNOWN_FUNCTIONS) else self.functions.function()
            name = function["name"] if isinstance(function, dict) else function[0]
            if name not in names:
                made.append(function)
                names.add(name)
        return made

    def tool(self, function):
        if isinstance(function, dict):
            return self.functions.tool(function)
        name, what, parameters = function[:3]
        kinds = {"number": "integer", "small": "integer"}
        properties = {key: {"type": kinds.get(kind, "string"), "description": text} for key, kind, text in parameters}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        return {"name": name, "description": what, "parameters": schema}

    def request(self, function):
        """(name, values, request) of a function."""
        def make():
            if isinstance(function, dict):
                values, text = self.functions.request(function)
                return f"call {text}", (function["name"], values, text)
            values = {key: self.value(kind) for key, kind, _ in function[2]}
            text = self.pick(function[3]).format(**values)
            text = self.pick(wordings.BEFORE) + text if self.chance(0.15) else text
            return f"call {function[0]} {compact(values)}", (function[0], values, text)
        return self.until(make)

    def result(self, function, values):
        """(output, answer) of a function."""
        if isinstance(function, dict):
            got, answer = self.functions.result(function, values)
            return compact(got), answer
        got = {key: self.value(kind) for key, kind in function[4].items()}
        return compact(got), function[5].format(**values, **got)

    def call(self, conversation, learn, held=False):
        """Appends a request; returns (function, values, call)."""
        # The conversation's tools stand in the order of the functions.
        function = self.pick(self.chosen)
        name, values, text = self.request(function) if held else self.free(lambda: self.request(function))
        conversation["items"].append({"user": {"name": None, "text": text}})
        return function, values, {"id": "call_1", "name": name, "arguments": compact(values)}

    def called(self, conversation, learn):
        """Appends a request with its call, the result and the answer."""
        function, values, call = self.call(conversation, learn)
        output, answer = self.result(function, values)
        items = conversation["items"]
        items += [{"call": call}, {"output": {"id": "call_1", "name": call["name"],
                                              "text": output}}, {"answer": answer}]
        learn.update((len(items) - 3, len(items) - 1))

    def function(self, kind, conversation, learn):
        items = conversation["items"]
        function, values, call = self.call(conversation, learn, self.held)
        none = conversation["effort"] == "none"
        if kind == "call":
            return conversation, ([] if none else [{"reasoning": CALL}]) + [{"call": call}], learn
        output, answer = self.result(function, values)
        if not none:
            items.append({"reasoning": CALL})
            learn.add(len(items) - 1)
        items += [{"call": call}, {"output": {"id": "call_1", "name": call["name"], "text": output}}]
        learn.add(len(items) - 2)
        return conversation, [{"answer": answer}], learn

    def fields(self):
        return self.random.sample(phrases.FIELDS, self.random.choices([1, 2, 3, 4], [1, 4, 4, 1])[0])

    def form(self, fields):
        kinds = {"number": "integer", "small": "integer"}
        properties = {name: {"type": kinds.get(kind, "string")} for name, kind, _ in fields}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        if self.chance(0.4):
            schema["additionalProperties"] = False
        return {"name": self.pick(phrases.FORMS), "description": None, "schema": schema}

    def json(self, conversation, learn):
        fields = self.shared("fields", self.fields)

        def make():
            nonlocal fields
            if self.held:                # some have too few values for one of them to be held out
                fields = self.fields()
            values = {name: self.value(kind) for name, kind, _ in fields}
            return f"json {compact(values)}", values
        values = self.until(make)
        parts = [self.pick(ways).format(values[name]) for name, _, ways in fields]
        self.random.shuffle(parts)
        text = ", ".join(parts)
        ask = self.pick(["{}", "Write JSON: {}", "As JSON: {}", "Fill the form: {}", "Make a record: {}"]).format(text)
        ask = (ask[0].upper() + ask[1:]) + self.pick([".", ""])
        conversation["format"] = self.shared("format", lambda: self.form(fields))
        answer = compact(values)
        return conversation, self.ask(conversation, (ask, ", ".join(values), answer, answer)), learn


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="directory of prepare.py's output (default: $KERNMILL_DATA)")
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--heldout", action="store_true")
    options = parser.parse_args()
    maker = Maker(options.seed, (data_dir(options.data) / "train.txt").read_text(encoding="utf-8"))
    kinds = KINDS
    for at in range(options.count):
        kind, conversation, made, _ = maker.dialogue(kinds[at % len(kinds)], options.heldout)
        print(json.dumps({"kind": kind, "conversation": conversation, "made": made}, ensure_ascii=False))


if __name__ == "__main__":
    main()
