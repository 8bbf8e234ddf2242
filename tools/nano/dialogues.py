"""Synthetic dialogues for the nano model, made by seed.

    python dialogues.py [--data DIR] [--count N] [--seed N] [--heldout]    print some, as JSON

Every item has a key: what it is about (two operands, the words to sort, a phrase). A hash of the key
decides whether the item is held out; training never makes such an item, evaluation only such ones.
"""

import argparse
import datetime
import hashlib
import json
import random
import re

import phrases
from harmony import compact
from prepare import SEPARATOR, data_dir

# How often each kind is the last turn, and which kinds earlier turns have.
SHARES = {"talk": 6, "fact": 10, "add": 8, "subtract": 17, "multiply": 18, "copy": 22, "sort numbers": 13,
          "sort words": 16, "recall": 8, "call": 20, "result": 14, "json": 16}
POLISH_SHARES = dict(SHARES, multiply=40, copy=50, call=28, **{"sort words": 20})
EASY = ["talk", "fact", "add", "subtract", "multiply", "multiply", "multiply", "copy", "copy", "sort numbers",
        "sort words", "sort words"]
KINDS = list(SHARES)
FAMILIES = [[kind for kind in KINDS if kind not in ("call", "result", "json")], ["call", "result"], ["json"]]
HELDOUT = 13              # of 256 keys
FACTS = 130               # first sentences of pages


def is_held_out(key):
    return hashlib.sha256(key.encode()).digest()[0] < HELDOUT


def page_facts(text):
    """First sentences of pages on keywords, types, traits and macros: name -> sentence."""
    found, seen = {}, set()
    pattern = r"# (Struct|Trait|Enum|Macro|Keyword|Primitive Type) `?([A-Za-z_]+)`?\n\n([^\n#-][^\n]*)"
    for page in text.split(SEPARATOR):
        match = re.match(pattern, page)
        if not match:
            continue
        kind, name, sentence = match[1], match[2], re.split(r"(?<=[.])\s", match[3])[0]
        if not (20 <= len(sentence) <= 62 and sentence.endswith(".") and sentence.isascii()) or len(name) > 12:
            continue
        key = {"Keyword": "the keyword `{}`", "Macro": "the macro `{}`"}.get(kind, "`{}`").format(name)
        if key in seen or re.search(r"[Ss]imd|SIMD|Windows|WASI|NonZero|Unix|^See |This ", sentence + name):
            found.pop(key, None)
        else:
            found[key] = sentence
        seen.add(key)
    chosen = sorted(found, key=lambda key: hashlib.sha256(key.encode()).digest())[:FACTS]
    return {key: found[key] for key in sorted(chosen)}


class Maker:
    """Makes dialogues; `held` chooses items that are held out for the last turn."""

    def __init__(self, seed, text):
        self.random = random.Random(seed)
        self.text = text
        self.facts = dict(phrases.GLOSSARY, **page_facts(text))
        words = sorted(set(re.findall(r"(?<![A-Za-z])[a-z]{3,9}(?![A-Za-z])", text[:400_000])))
        self.words = words + phrases.SORTED * 4
        self.held = False
        self.head = None
        self.shares = SHARES

    def pick(self, values):
        return self.random.choice(values)

    def chance(self, share):
        return self.random.random() < share

    def until(self, make):
        """Repeats make() -> (key, item) until the item is on the wanted side."""
        while True:
            key, item = make()
            if is_held_out(key) == self.held:
                return item

    def invented(self):
        word = "".join(self.pick(phrases.SYLLABLES) for _ in range(self.random.randint(2, 3)))
        return word

    def value(self, kind):
        """A value that requests have."""
        r = self.random
        return {
            "city": lambda: self.pick(phrases.CITIES) if self.chance(0.6) else self.invented().capitalize(),
            "name": lambda: self.pick(phrases.NAMES) if self.chance(0.5) else self.invented().capitalize(),
            "number": lambda: r.randint(0, 99), "small": lambda: r.randint(1, 12),
            "degrees": lambda: r.randint(-9, 39), "time": lambda: f"{r.randint(0, 23):02}:{r.randint(0, 59):02}",
            "sky": lambda: self.pick(phrases.SKIES), "status": lambda: self.pick(["sent", "delivered", "saved"]),
            "day": lambda: self.pick(phrases.DAYS), "colour": lambda: self.pick(phrases.COLOURS),
            "language": lambda: self.pick(phrases.LANGUAGES), "invented": self.invented,
            "word": lambda: self.pick(phrases.SORTED) if self.chance(0.7) else self.pick(self.words),
            "words": lambda: " ".join(self.pick(self.words) for _ in range(r.randint(1, 4))),
            "file": lambda: f"{self.pick(self.words)}.{self.pick(['txt', 'rs', 'md', 'json'])}",
        }[kind]()

    # Single turns: (user, reasoning, answer, answer without reasoning).

    def talk(self):
        def make():
            label, answer, ways = self.pick(phrases.TALK)
            way = self.pick(ways)
            before = self.pick(phrases.TALK_BEFORE)
            if before and self.chance(0.7):
                way = way[0].lower() + way[1:] if not re.match(r"I |OK|I'", way) else way
            text = before + way
            if text[-1] in ".?":
                mark = text[-1]
                text = text[:-1] + self.pick(phrases.TALK_AFTER) + (mark if self.chance(0.85) else "")
            else:
                text += self.pick(phrases.TALK_AFTER) + self.pick(["", "!", ".", "!!"])
            return "talk " + re.sub(r"[^a-z]+", " ", text.lower()).strip(), (text, label, answer, answer)
        return self.until(make)

    def fact(self):
        def make():
            name = self.pick(list(self.facts))
            text = self.pick(phrases.ASK_BEFORE) + self.pick(phrases.ASK).format(name)
            text = text[0].upper() + text[1:]
            if "`" in text and self.chance(0.4):
                text = text.replace("`", "")
            return "fact " + text.replace("`", "").lower(), (text, f"A question about {name}.", self.facts[name], self.facts[name])
        return self.until(make)

    def sum_text(self, a, b, sign, word):
        forms = ["What is {a} {s} {b}?", "{a} {s} {b}", "{a}{s}{b}", "Compute {a} {s} {b}.", "How much is {a} {s} {b}?",
                 "Calculate {a} {s} {b}", "What is {a} {w} {b}?", "{a} {s} {b} = ?", "{a} {w} {b}"]
        return self.pick(forms).format(a=a, b=b, s=sign, w=word)

    def operand(self):
        return self.random.randint(0, 99) if self.chance(0.85) else self.random.randint(0, 9)

    def sum_turn(self, a, b, sign, word, steps, result):
        text = self.sum_text(a, b, sign, word)
        answer = f"{a} {sign} {b} = {result}"
        return text, f"{a}{sign}{b}: {steps}, {result}", answer, f"{steps}: {answer}"

    def add(self):
        def make():
            a, b = self.operand(), self.operand()
            steps = f"{a % 10}+{b % 10}={a % 10 + b % 10}"
            if a > 9 or b > 9:
                carry = "+1" if a % 10 + b % 10 > 9 else ""
                steps += f", {a // 10}+{b // 10}{carry}={(a + b) // 10}"
            low, high = sorted((a, b))
            return f"add {low} {high}", self.sum_turn(a, b, "+", "plus", steps, a + b)
        return self.until(make)

    def subtract(self):
        def make():
            a, b = self.operand(), self.operand()
            (x, y), swapped = (max(a, b), min(a, b)), a < b
            borrow = x % 10 < y % 10
            steps = f"{x}-{y}, " if swapped else ""
            steps += f"{'1' if borrow else ''}{x % 10}-{y % 10}={(x - y) % 10}"
            if x > 9:
                steps += f", {x // 10}{'-1' if borrow else ''}-{y // 10}={(x - y) // 10}"
            return f"subtract {a} {b}", self.sum_turn(a, b, "-", "minus", steps, a - b)
        return self.until(make)

    def multiply(self):
        # There are few pairs of one and two digits; longer factors in training keep them from being learnt by heart.
        def make():
            a = self.random.randint(0, 9)
            b = self.random.randint(100, 999) if not self.held and self.chance(0.5) else self.operand()
            steps, carry = [], 0
            for digit in reversed(str(b)):
                product = a * int(digit)
                steps.append(f"{a}x{digit}={product}" + (f"+{carry}={product + carry}" if carry else ""))
                carry = (product + carry) // 10
            # The steps take the longer factor apart; of two digits it is the second.
            swap = self.chance(0.4) and b > 9
            first, second = (b, a) if swap else (a, b)
            low, high = sorted((a, b))
            return f"multiply {low} {high}", self.sum_turn(first, second, "x", "times", ", ".join(steps), a * b)
        return self.until(make)

    def copy(self):
        def make():
            r = self.random
            way = r.random()
            if way < 0.6:
                text = " ".join(self.pick(self.words) for _ in range(r.randint(2, 7)))
            elif way < 0.8:
                text = "".join(self.pick("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(r.randint(3, 7)))
            else:
                text = ", ".join(self.pick(self.words) for _ in range(r.randint(2, 5)))
            ask = self.pick(["Repeat: {}", "Copy: {}", "Repeat after me: {}", "Copy this: {}", "Say: {}",
                             "Write exactly: {}", "Copy the text: {}", 'Repeat "{}"', 'Say "{}"'])
            return "copy " + text, (ask.format(text), "Copy the text.", text, text)
        return self.until(make)

    def sort_numbers(self):
        def make():
            values = self.random.sample(range(100), self.random.randint(2, 5))
            done = sorted(values)
            ask = self.pick(["Sort: {}", "Sort these numbers: {}", "Sort the numbers {}", "Put in order: {}", "Sort {}",
                             "Please sort {}", "Order these numbers: {}"])
            return f"sort {done}", (ask.format(self.pick([", ", ", ", " "]).join(map(str, values))),
                                    " < ".join(map(str, done)), ", ".join(map(str, done)), ", ".join(map(str, done)))
        return self.until(make)

    def sort_words(self):
        def make():
            values = self.random.sample(phrases.SORTED, self.random.randint(2, 5))
            done = sorted(values)
            ask = self.pick(["Sort: {}", "Sort these words: {}", "Sort the words {}", "Put in order: {}", "Sort {}",
                             "Please sort {}", "Put these words in order: {}"])
            return f"sort {done}", (ask.format(self.pick([", ", ", ", " "]).join(values)),
                                    " < ".join(done), ", ".join(done), ", ".join(done))
        return self.until(make)

    def turn(self, kind):
        return getattr(self, kind.replace(" ", "_"))()

    def free(self, make):
        """An item that is not held out, for the turns before the last."""
        held, self.held = self.held, False
        made = make()
        self.held = held
        return made

    # Conversations.

    def shared(self, name, make):
        """What the dialogues of a group have in common; made anew outside of a group."""
        if self.head is None:
            return make()
        if name not in self.head:
            self.head[name] = make()
        return self.head[name]

    def base(self, efforts=("medium",) * 4 + ("low", "high") * 2 + ("none",) * 4):
        def make():
            conversation = {"items": [], "tools": [], "effort": self.pick(efforts)}
            if self.chance(0.45):
                day = datetime.date(2024, 1, 1) + datetime.timedelta(self.random.randrange(1460))
                conversation["date"] = day.isoformat()
            if self.chance(0.12):
                conversation["items"].append({"instructions": self.pick(phrases.INSTRUCTIONS)})
            return conversation
        conversation = self.shared("base", make)
        return dict(conversation, items=list(conversation["items"]))

    def group(self, count):
        """Dialogues with one head: the same system and developer messages."""
        first = self.random.choices(list(self.shares), self.shares.values())[0]
        family = next(family for family in FAMILIES if first in family)
        self.head, made = {}, []
        for _ in range(count):
            made.append(self.dialogue(first))
            family = [kind for kind in family if kind != "call" or made[0][1]["effort"] != "none"]
            first = self.random.choices(family, [self.shares[kind] for kind in family])[0]
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

    def dialogue(self, kind=None, held=False):
        """(kind, conversation, what the model makes, places in the conversation to learn)."""
        self.held = held
        kind = kind or self.random.choices(list(self.shares), self.shares.values())[0]
        if kind == "recall":
            return kind, *self.recall()
        if kind in ("call", "result"):
            return kind, *self.function(kind)
        if kind == "json":
            return kind, *self.json()
        conversation, learn = self.base(), set()
        # Without reasoning every answer is learnt whole, so such dialogues are longer.
        turns = [(0, 1), (2, 2), (4, 3), (6, 2)] if conversation["effort"] == "none" else [(0, 4), (1, 3), (2, 2), (3, 1)]
        counts, weights = zip(*turns)
        for _ in range(self.random.choices(counts, weights)[0]):
            self.say(conversation, learn, self.free(lambda: self.turn(self.pick(EASY))))
        return kind, conversation, self.ask(conversation, self.turn(kind)), learn

    def recall(self):
        conversation, learn = self.base(), set()
        kinds = self.random.sample(phrases.MEMORIES, self.random.choices([1, 2, 3], [5, 3, 1])[0])
        asked = self.random.randrange(len(kinds))
        turns = []
        for at, memory in enumerate(kinds):
            name, ways, reply, ask, answer = memory

            def make():
                kind = {"colour": "colour", "number": "number", "pet": "word"}.get(name, name)
                value = self.invented() if name in ("word", "colour") and self.chance(0.4) else self.value(kind)
                return f"recall {name} {value}", value
            value = self.until(make) if at == asked else self.free(lambda: self.until(make))
            turns.append((self.pick(ways).format(value), "", reply.format(value), reply.format(value)))
            if at == asked:
                answer = answer.format(value)
                question = (self.pick(ask), f"The {name} is {value}.", answer, answer)
        while len(turns) < 3 and self.chance(0.35):
            turns.insert(self.random.randint(0, len(turns)), self.free(lambda: self.turn(self.pick(EASY))))
        for turn in turns:
            self.say(conversation, learn, turn)
        return conversation, self.ask(conversation, question), learn

    @staticmethod
    def tool(function):
        name, what, parameters = function[:3]
        kinds = {"number": "integer", "small": "integer"}
        properties = {key: {"type": kinds.get(kind, "string"), "description": text} for key, kind, text in parameters}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        return {"name": name, "description": what, "parameters": schema}

    def request(self, function):
        """(values, request) of a function."""
        def make():
            values = {key: self.value(kind) for key, kind, _ in function[2]}
            return f"call {function[0]} {compact(values)}", values
        values = self.until(make)
        return values, self.pick(function[3]).format(**values)

    def result(self, function, values):
        """(output, answer) of a function."""
        got = {key: self.value(kind) for key, kind in function[4].items()}
        return compact(got), function[5].format(**values, **got)

    def function(self, kind):
        conversation = self.base(["medium", "medium", "low", "high"] + (["none"] if kind == "result" else []))
        effort, learn = conversation["effort"], set()
        chosen = self.shared("functions", lambda: self.random.sample(
            phrases.FUNCTIONS, self.random.choices([1, 2, 3], [4, 4, 2])[0]))
        conversation["tools"] = [self.tool(function) for function in chosen]
        items = conversation["items"]
        if self.chance(0.12):
            self.say(conversation, learn, self.free(self.talk))
        function = self.pick(chosen)
        values, text = self.request(function)
        items.append({"user": {"name": None, "text": text}})
        reasoning = f"I call {function[0]}."
        call = {"id": "call_1", "name": function[0], "arguments": compact(values)}
        if kind == "call":
            return conversation, [{"reasoning": reasoning}, {"call": call}], learn
        output, answer = self.result(function, values)
        if effort != "none":
            items.append({"reasoning": reasoning})
            learn.add(len(items) - 1)
        items += [{"call": call}, {"output": {"id": "call_1", "name": function[0], "text": output}}]
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

    def json(self):
        conversation = self.base()
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
        return conversation, self.ask(conversation, (ask, ", ".join(values), answer, answer)), set()


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
