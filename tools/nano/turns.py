"""Single turns of the dialogues: a request, the reasoning and the answer.

Every item has a key: what it is about (two operands, the words to sort, a phrase). A hash of the key
decides whether the item is held out; training never makes such an item, evaluation only such ones.
"""

import hashlib
import random
import re

import phrases
import wordings
from prepare import SEPARATOR

# Kinds of turns before the last.
EASY = ["talk", "talk", "fact", "fact", "add", "subtract", "multiply", "multiply", "copy", "copy", "sort numbers",
        "sort words",
        "unknown", "tell"]
LONG_NUMBERS = 0.12       # of the sums in training: three digits
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


class Turns:
    """Makes turns; `held` chooses items that are held out."""

    def __init__(self, seed, text):
        self.random = random.Random(seed)
        self.facts = dict(phrases.GLOSSARY, **page_facts(text))
        words = sorted(set(re.findall(r"(?<![A-Za-z])[a-z]{3,11}(?![A-Za-z])", text)))
        self.prose = words
        self.words = words + phrases.SORTED * 4
        self.sentences = [line for line in re.split(r"(?<=[.!?])\s+|\n+", text[400_000:900_000]) if 12 < len(line) < 70]
        self.known = set(re.findall(r"[a-z]+", " ".join(self.facts).lower()))
        self.held = False
        self.usual = False           # sort words of phrases.py alone, and call functions of it

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
        if self.chance(0.4):                 # the beginning of a word and the end of another
            first, last = self.pick(self.prose), self.pick(self.prose)
            return (first[:self.random.randint(2, 5)] + last[-self.random.randint(2, 5):])[:10]
        if self.chance(0.5):
            return "".join(self.pick(phrases.SYLLABLES) for _ in range(self.random.randint(2, 3)))
        word = "".join(self.pick(phrases.ONSETS) + self.pick("aeiou") for _ in range(self.random.randint(1, 3)))
        return word + self.pick(phrases.CODAS)

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
            "words": lambda: self.pick(["the ", "a ", "", "", "", ""]) + " ".join(
                self.pick(self.words) for _ in range(r.randint(1, 4))),
            "thing": lambda: self.pick(["the ", "the ", "a ", ""]) + self.pick(self.words),
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
            said = name
            if self.chance(0.25):
                said = re.sub(r"^(an?|the) ", "", said)
            if "`" in said and self.chance(0.5):
                said = said.replace("`", "")
            said = re.sub(r"^(keyword|macro) (.*)", r"\2 \1", said) if self.chance(0.4) else said
            text = wordings.ask_text(self.random, said, self.prose)
            key = "fact " + re.sub(r"[^a-z ]", "", text.lower())
            return key, (text, f"A question about {name}.", self.facts[name], self.facts[name])
        return self.until(make)

    def tell(self):
        """A statement that asks for nothing."""
        def make():
            name, ways, reply, _, _ = self.pick(phrases.MEMORIES)
            value = self.remembered(name)
            answer = reply.format(value)
            text = self.pick(ways).format(value)
            if self.chance(0.4):
                text = wordings.framed(self.random, text, [""])
            return f"tell {name} {value}", (text, f"The {name} is {value}.", answer, answer)
        return self.until(make)

    def stranger(self):
        """A word that nobody knows."""
        while True:
            word = self.invented()
            if word not in self.known and word.rstrip("s") not in self.known:
                return word.capitalize() if self.chance(0.2) else word

    def unknown(self):
        """What the model cannot do or does not know: it says so in a few words."""
        def make():
            way = self.random.random()
            if way < 0.3:
                word = self.stranger()
                said = self.pick(["{}", "{}", "a {}", "the {}", "an {}" if word[0] in "aeiou" else "a {}"]).format(word)
                text = wordings.ask_text(self.random, said, self.prose)
                answer = f"I do not know {said}."
                return "unknown " + text.lower(), (text, f"I do not know {said}.", answer, answer)
            answer = phrases.NOT_UNDERSTOOD
            if way < 0.4:
                a, b = self.operand(), self.operand()
                text = wordings.framed(self.random, self.pick(phrases.DIVIDE).format(a=a, b=b))
                answer = phrases.CANNOT_DIVIDE
                return f"unknown {a} {b}", (text, "I cannot divide.", answer, answer)
            if way < 0.6:
                text = self.pick(self.sentences)
            elif way < 0.75:
                count = self.random.randint(1, 6)
                text = " ".join(self.invented() if self.chance(0.5) else self.pick(self.prose) for _ in range(count))
                text += self.pick(["", ".", "?", "!"])
            else:
                text = self.pick(phrases.WISHES).format(
                    w=self.pick(self.prose), v=self.pick(self.prose), n=self.value("name"), c=self.value("city"),
                    l=self.value("language"))
                text = wordings.framed(self.random, text, ["", ".", "?", "!"])
            return "unknown " + text.lower(), (text, "I do not understand.", answer, answer)
        return self.until(make)

    def operand(self):
        return self.random.randint(0, 99) if self.chance(0.85) else self.random.randint(0, 9)

    def operands(self):
        """Two operands; in training some are longer."""
        if not self.held and self.chance(LONG_NUMBERS):
            return self.random.randint(0, 999), self.random.randint(0, 999)
        return self.operand(), self.operand()

    def sum_turn(self, kind, a, b, sign, steps, result):
        text = wordings.sum_text(self.random, kind, a, b, self.prose)
        answer = f"{a} {sign} {b} = {result}"
        return text, f"{a}{sign}{b}: {steps}, {result}", answer, f"{steps}: {answer}"

    def add(self):
        def make():
            a, b = self.operands()
            steps, carry, x, y = [], 0, a, b
            while not steps or x or y:
                total = x % 10 + y % 10 + carry
                steps.append(f"{x % 10}+{y % 10}{'+1' if carry else ''}={total}")
                carry, x, y = total // 10, x // 10, y // 10
            low, high = sorted((a, b))
            return f"add {low} {high}", self.sum_turn("add", a, b, "+", ", ".join(steps), a + b)
        return self.until(make)

    def subtract(self):
        def make():
            a, b = self.operands()
            x, y = max(a, b), min(a, b)
            steps, borrowed = [f"{x}-{y}"] if a < b else [], 0
            first = True
            while first or x:
                borrow = int(x % 10 - borrowed < y % 10)
                rest = x % 10 - borrowed - y % 10 + 10 * borrow
                steps.append(f"{'1' if borrow else ''}{x % 10}{'-1' if borrowed else ''}-{y % 10}={rest}")
                first, borrowed, x, y = False, borrow, x // 10, y // 10
            return f"subtract {a} {b}", self.sum_turn("subtract", a, b, "-", ", ".join(steps), a - b)
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
            return f"multiply {low} {high}", self.sum_turn("multiply", first, second, "x", ", ".join(steps), a * b)
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
            if self.chance(0.2):
                text = text.title()
            text_asked = self.pick(phrases.COPY).format(text)
            if self.chance(0.3):
                text_asked = self.pick(wordings.BEFORE) + text_asked
            return "copy " + text, (text_asked, "Copy the text.", text, text)
        return self.until(make)

    def sort_numbers(self):
        def make():
            high = 1000 if not self.held and self.chance(0.15) else 100
            values = self.random.sample(range(high), self.random.choices([2, 3, 4, 5], [1, 3, 3, 2])[0])
            done = sorted(values)
            text = wordings.sort_text(self.random, values, "numbers", self.prose)
            answer = ", ".join(map(str, done))
            return f"sort {done}", (text, " < ".join(map(str, done)), answer, answer)
        return self.until(make)

    def sortable(self):
        """A list of words, some of them alike at the beginning."""
        source, count = self.random.random(), self.random.choices([2, 3, 4, 5, 6], [2, 6, 6, 4, 1])[0]
        drawn = {"words": lambda: self.pick(self.prose), "list": lambda: self.pick(phrases.SORTED),
                 "invented": self.invented, "names": lambda: self.value("name"), "cities": lambda: self.value("city")}
        kind = "list" if self.usual or source < 0.2 else "words" if source < 0.55 else "invented" if source < 0.7 else \
            "names" if source < 0.8 else "cities" if source < 0.9 else None
        case, values = self.random.random(), {}
        while len(values) < count:
            word = drawn[kind or self.pick(list(drawn))]()
            if values and self.chance(0.1):
                start = self.pick(list(values))[:self.random.randint(1, 2)]
                word = self.pick([other for other in self.prose if other.startswith(start)] or [word])
            if case < 0.25 or case < 0.45 and self.chance(0.5):
                word = word.capitalize()
            elif case < 0.5:
                word = word.lower()
            if word.lower() not in values and word[:3].lower() not in (other[:3] for other in values):
                values[word.lower()] = word
        return list(values.values())

    def sort_words(self):
        """The first three letters of each word are spelled, then put in order.

        In the first list a word stands before its letters, which are spelled from it, and behind them, where
        the second list finds it by its letters.
        """
        def make():
            values = self.sortable()
            done = sorted(values, key=str.lower)
            spelled = {word: f"{' '.join(word[:3].lower())} {word}" for word in values}
            first = ", ".join(f"{word} {spelled[word]}" for word in values)
            steps, answer = f"{first}: {', '.join(spelled[word] for word in done)}", ", ".join(done)
            text = wordings.sort_text(self.random, values, "words", self.prose)
            return f"sort {done}", (text, steps, answer, f"{steps}: {answer}")
        return self.until(make)

    def turn(self, kind):
        return getattr(self, kind.replace(" ", "_"))()

    def free(self, make):
        """An item that is not held out, for the turns before the last."""
        held, self.held = self.held, False
        made = make()
        self.held = held
        return made

    def remembered(self, name):
        """A value of a memory."""
        if name in ("word", "colour") and self.chance(0.4):
            return self.invented()
        return self.value({"pet": "word"}.get(name, name))
