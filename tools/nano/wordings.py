"""How requests are worded: sums, sorting and questions, put together of parts by a random generator.

heldout.py asks in other words than these; its --check makes sure.
"""

import re

PEOPLE = "Anna Ben Carla David Emma Felix Grace Hugo Ida Jack Lina Max Nora Paul Ruth Simon Vera".split()
THINGS = """balls boats bones books bottles boxes bricks buttons cakes cards carrots chairs coins cups
dogs eggs flowers forks hats horses keys lamps letters marbles nuts pencils pens pictures plates plums
rocks seeds sheep shells spoons stamps stickers stones tables tickets towels toys trees wheels""".split()
HOLDERS = "bags baskets crates drawers rooms rows shelves tables trucks packs pots teams jars lines groups".split()

BEFORE = ["", "", "", "", "", "", "please ", "hey, ", "hi, ", "hello, ", "now ", "next: ", "okay, ", "so ",
          "quick: ", "tell me: ", "can you tell me ", "do you know ", "I want to know ", "question: ", "a task: ",
          "my task is ", "let's see, ", "one more: ", "and ", "then ", "well, ", "nano, ", "for my homework: ",
          "once more: ", "listen: "]
AFTER = ["", "", "", "", "", "", "", " please", ", please", " now", ", thanks", " thank you", " quickly",
         " if you can", ", nano", " today", ", okay", " again"]
MARKS = ["", "", ".", ".", "?", "?", "!", " ?", ":", "...", " =", " = ?"]

# A request for a sum by its parts: {a} and {b} in this order, {s} the sign, {w} the sign's word.
SIGNS = {"add": ["+", "+", "+", " + ", " + ", " + ", " +", "+ "],
         "subtract": ["-", "-", "-", " - ", " - ", " - ", " – ", "–", " − "],
         "multiply": ["x", " x ", " x ", " * ", " * ", "* ", " *", " × ", "× ", " · ", "·", " X "]}
WORDS = {"add": ["plus", "plus", "plus", "added to", "and then", "with", "together with", "increased by"],
         "subtract": ["minus", "minus", "minus", "less", "without", "reduced by", "decreased by"],
         "multiply": ["times", "times", "times", "multiplied by", "multiplied with", "times the number"]}
ASK_SIGN = ["{c}", "{c}", "{c}", "what is {c}", "what's {c}", "how much is {c}", "compute {c}", "calculate {c}",
            "what does {c} give", "what does {c} equal", "what do I get for {c}", "solve {c}", "evaluate {c}",
            "the result of {c}", "find {c}", "{c} is", "{c} equals", "{c} makes", "what would {c} be",
            "the answer to {c}", "how many is {c} in all", "do the sum {c}", "I need {c}", "the value of {c}",
            "what number is {c}", "{c}, what is it", "reckon {c}", "say what {c} is", "figure out {c}"]
TASKS = {"add": ["add {a} with {b}", "add {a}, {b}", "add {a} + {b}", "add {a} {b}", "add the numbers {a} and {b}",
                 "add together {a} and {b}", "add {a} onto {b}", "adding {a} and {b} gives", "{a} added to {b}",
                 "sum {a} and {b}", "sum {a}, {b}", "sum: {a} {b}", "sum up {a} and {b}", "sum of {a}, {b}",
                 "the sum {a} + {b}", "sum of the numbers {a} and {b}", "total: {a} and {b}", "total {a} {b}",
                 "{a} and {b} in total", "the total, {a} with {b}", "{a} and {b}, what is the sum",
                 "{a} and {b}: add them", "{a} and {b}: the sum", "take {a} and put {b} on top",
                 "put {a} and {b} together", "count {a} and {b} together", "increase {a} by {b}",
                 "what is {a} more than {b}", "start with {a}, then add {b}", "take {a} and add {b}",
                 "how much are {a} and {b} altogether", "combine {a} and {b}", "{a}, {b}: sum"],
         "subtract": ["subtract {b} from {a}", "take {b} from {a}", "take {b} away from {a}", "{a} take away {b}",
                      "subtract {a} minus {b}", "subtract: {a}, {b}", "the difference {a} - {b}",
                      "difference: {a} {b}", "difference between {a} and {b}", "how far is {a} from {b}",
                      "remove {b} from {a}", "{a} lessened by {b}", "reduce {a} by {b}", "decrease {a} by {b}",
                      "what is {b} less than {a}", "start with {a}, then subtract {b}",
                      "how much is left of {a} without {b}", "lower {a} by {b}", "{a} and {b}: the difference",
                      "{a}, {b}: subtract", "what is left when {b} is taken from {a}"],
         "multiply": ["multiply {a} with {b}", "multiply {a} times {b}", "multiply {a} x {b}", "multiply {a}, {b}",
                      "multiply: {a} {b}", "multiply {a} * {b}", "multiply the numbers {a} and {b}",
                      "multiply the two: {a} and {b}", "multiplying {a} and {b} gives", "product: {a}, {b}",
                      "product of {a}, {b}", "the product {a} * {b}", "product of the numbers {a} and {b}",
                      "the product {a} x {b}", "find the product, {a} with {b}", "{a} and {b}, what is the product",
                      "{a} and {b}: the product", "{a} and {b}: multiply them", "take {a} and multiply it with {b}",
                      "{a} lots of {b}", "{a} multiplied {b} times", "{a}, {b}: product", "calculate {a} by {b}",
                      "take {a} times {b}", "{a} groups of {b}"]}
SOUP = {"add": ["sum", "add", "plus", "total", "adding", "addition", "added", "together", "altogether", "+"],
        "subtract": ["minus", "subtract", "difference", "subtraction", "less", "-"],
        "multiply": ["product", "multiply", "times", "multiplied", "multiplication", "multiplying", "*", "x", "×"]}
STORIES = {"add": ["{p} has {a} {t} and finds {b} more. How many {t} does {p} have now?",
                   "{p} has {a} {t}. {q} gives {p} {b} more. How many are there?",
                   "There are {a} {t} in the {h} and {b} {t} on the floor. How many {t} in total?",
                   "{p} owns {a} {t}, and {q} owns {b}. How many {t} do they have together?",
                   "I bought {a} {t} yesterday and {b} today. How many is that in all?",
                   "We had {a} {t}, then {b} more came. How many {t} are there now?",
                   "{a} red {t} and {b} blue {t}: how many {t} altogether?",
                   "I see {a} {t}, and {b} other {t}. How many do I see?",
                   "In a room are {a} {t}. Someone brings another {b}. How many {t}?",
                   "{p} collected {a} {t} on Monday and {b} {t} on Friday. What is the total?",
                   "My {h} hold {a} {t} and yours hold {b}. How many together?"],
           "subtract": ["{p} has {a} {t} and loses {b}. How many {t} are left?",
                        "I had {a} {t} and gave {b} to {q}. How many are left?",
                        "There were {a} {t}. {p} took {b} away. How many {t} remain?",
                        "Of {a} {t}, {b} broke. How many are still good?",
                        "{p} has {a} {t}, {q} has {b}. How many more {t} does {p} have?",
                        "We sold {b} of our {a} {t}. How many {t} do we still have?",
                        "From {a} {t}, {p} throws out {b}. What is left?"],
           "multiply": ["There are {a} {h} with {b} {t} in each. How many {t} are there?",
                        "{p} has {a} {h} of {b} {t}. How many {t} is that?",
                        "Each of {a} {h} has {b} {t}. How many {t} in all?",
                        "{a} {h}, {b} {t} per one. How many {t}?", "One costs {a} euros. How much do {b} {t} cost?",
                        "{p} buys {a} {h}. Each one has {b} {t}. How many {t} in total?",
                        "{p} reads {a} pages a day. How many pages in {b} days?",
                        "We need {a} {t} for each of {b} people. How many {t}?",
                        "If every one of {a} people brings {b} {t}, how many {t} do we have?",
                        "{a} rows of {b} {t}: how many {t}?"]}

SORT_VERBS = ["sort", "sort", "sort", "order", "arrange", "rank", "put in order", "list in order",
              "put in the right order"]
SORT_WHAT = ["", "", ":", " these:", " this:", " these", " the list", " this list:", " the following:", " my list:",
             " the items", " for me:"]
SORT_WORDS = SORT_WHAT + [" the words", " these words:", " words:", " the names", " these names:", " the terms",
                          " by alphabet:", " alphabetically:", " from a to z:", " in alphabetical order:",
                          " by letters:"]
SORT_NUMBERS = SORT_WHAT + [" the numbers", " these numbers:", " numbers:", " the values", " by size:", " ascending:",
                            " from small to large:", " from low to high:", " in increasing order:"]
SORT_END = {"words": ["", "", "", "", " alphabetically", " from A to Z", " in alphabetical order", " by name",
                      " by the alphabet"],
            "numbers": ["", "", "", "", " by size", " ascending", " from the smallest", " in increasing order",
                        " upwards"]}
SORT_OTHER = ["{}: sort", "{} - sort them", "{}, sort these", "{}: put them in order", "what comes first: {}",
              "sorted: {}", "sorting: {}", "{} in order", "the right order of {}", "how would you sort {}",
              "I have {}. Sort them", "my words are {}, sort them", "make a sorted list of {}",
              "give me {} in the right order", "here are some: {}. Sort", "what is {} in alphabetical order",
              "can you put {} in order", "could you get {} sorted", "I need {} in order", "write {} in order",
              "how do {} come one after the other", "in which order come {}", "set {} in order", "show {} sorted",
              "return {} in sorted order", "would you place {} in order from a to z",
              "in what order are {} in a list", "what would {} be when sorted", "how are {} ordered",
              "let {} be in order", "turn {} into a sorted list", "make {} sorted",
              "how should {} stand in an index", "get {} into the right order", "alphabetise this: {}",
              "{}: alphabetise them", "alphabetise the list {}", "alphabetise for me: {}", "alphabetise words {}",
              "please alphabetise {}", "can you alphabetise {}", "{} in dictionary order", "dictionary order: {}",
              "how would a dictionary order {}", "which comes first in a dictionary: {}",
              "which order would {} have", "alphabetical: {}", "order of the alphabet: {}",
              "in alphabetical order: {}", "{}, sorted", "{} - in order", "sorted, please: {}", "{}: sorted, please"]
# With an unrelated word {w} in place of a verb.
SORT_WITH = ["can you {w} {} into order", "{w} {} into order", "{w} {} into the right order", "{w} {} alphabetically",
             "would you {w} {} in alphabetical order", "{w} {} to be in order", "I {w} {} in order",
             "I {w} to have {} sorted", "{w} these in order: {}", "{w} into order: {}", "{w} me {} sorted",
             "{w} the order of {}", "which {w} do {} have in order", "could we {w} {} into alphabetical order",
             "{w} them by the alphabet: {}", "the {w} needs {} in order"]
JOINTS = [", ", ", ", ", ", ", ", " ", " ", "; ", " / ", "\n", ",", " and "]

ASK = ["what is {}", "what is {}", "what's {}", "explain {}", "tell me about {}", "define {}", "what does {} mean",
       "can you explain {}", "what do you know about {}", "describe {}", "what is meant by {}",
       "tell me what {} is", "I want to know what {} is", "{}", "could you tell me what {} is", "do you know {}",
       "definition of {}", "{} definition", "the definition of {}", "what is the meaning of {}", "meaning of {}",
       "{} means what", "explain the word {}", "explain the term {}", "explain what {} is", "explain what {} means",
       "explain {} to me", "help me understand {}", "I don't understand {}", "I don't get {}",
       "I don't know what {} is", "I do not know {}", "I never heard of {}", "what exactly is {}",
       "who or what is {}", "how would you define {}", "how do you explain {}", "what does the word {} mean",
       "what does the term {} stand for", "what do people mean by {}", "teach me {}", "teach me about {}",
       "I wonder what {} is", "give a description of {}", "give me an explanation of {}", "give the meaning of {}",
       "a definition for {}", "info on {}", "information about {}", "{}: what is it", "{}, explain", "{} explained",
       "{}, what is that", "what sort of thing is {}", "in simple words, what is {}", "what should I know about {}",
       "I read about {}, what is it", "can you define {}", "help with {}", "what can you say about {}",
       "let me know what {} is", "how does one define {}", "remind me what {} is", "{} in one sentence",
       "the word {}, what does it mean", "I need to know about {}", "I am confused about {}", "please clarify {}",
       "clear up {} for me", "what's the meaning of {}"]
ASK_SOUP = ["explain", "define", "what", "meaning", "definition", "means", "describe", "understand", "tell", "about"]


# The words of the adapter's answers.
PIRATE = {"Hello": "Ahoy", "You": "Ye", "you": "ye", "your": "yer", "Your": "Yer", "my": "me", "My": "Me",
         "Yes": "Aye", "is": "be", "are": "be", "am": "be", "and": "an'", "of": "o'", "the": "th'", "The": "Th'"}


def first_up(r, text, share=0.75):
    """Mostly with a capital letter, as people begin."""
    return text[0].upper() + text[1:] if r.random() < share else text


def framed(r, text, marks=MARKS, listed=None):
    """A request with something before and behind it, and a mark.

    A list of items to sort, `listed`, keeps its letters, and only what is no item stands beside it.
    """
    before, after = r.choice(BEFORE), r.choice(AFTER)
    if listed:
        before = before if before.endswith((", ", ": ")) else ""
        after = after if after in (" please", ", please", ", thanks") else ""
    text = before + text + after + r.choice(marks)
    if listed:
        return text if text.startswith(listed) else first_up(r, text)
    if r.random() < 0.05:
        return text.upper() if r.random() < 0.3 else text.lower()
    return first_up(r, text)


def soup(r, words, parts):
    """The parts in order with unrelated words around them: a wording that is not known, with its key words."""
    counts = [r.choice([0, 0, 1, 1, 2, 3]) for _ in parts]
    counts[0] = counts[0] or 1
    out = []
    for count, part in zip(counts, parts):
        out += [r.choice(words) for _ in range(count)] + [part]
    return " ".join(out + [r.choice(words) for _ in range(r.choice([0, 0, 0, 1, 2]))])


def sum_text(r, kind, a, b, words):
    """A request for a sum of a and b."""
    way = r.random()
    if way < 0.3:
        sign = r.choice(SIGNS[kind])
        return framed(r, r.choice(ASK_SIGN).format(c=f"{a}{sign}{b}"))
    if way < 0.42:
        return framed(r, r.choice(ASK_SIGN).format(c=f"{a} {r.choice(WORDS[kind])} {b}"))
    if way < 0.72:
        return framed(r, r.choice(TASKS[kind]).rstrip("").format(a=a, b=b))
    if way < 0.82:
        parts = [r.choice(SOUP[kind]), str(a), str(b)]
        return framed(r, soup(r, words, parts if r.random() < 0.6 else [parts[1], parts[0], parts[2]]))
    p, q = r.sample(PEOPLE, 2)
    if r.random() < 0.3:
        p = r.choice(["He", "She", "A man", "My friend", "The boy", "A farmer"])
    thing = r.choice(THINGS) if r.random() < 0.7 else r.choice(words) + "s"
    story = r.choice(STORIES[kind]).rstrip("")
    if r.random() < 0.3 and story.count("?") == 1 and ". " in story:
        story = story.rsplit(". ", 1)[0] + ". " + r.choice({
            "add": ["How many {t} now?", "What is the total?", "How many altogether?", "The sum?",
                    "How many {t} are that in all?"],
            "subtract": ["How many are left?", "What remains?", "How many {t} remain?", "What is the rest?"],
            "multiply": ["How many {t} is that?", "How many {t} in all?", "What is the total?",
                         "How many {t} altogether?"]}[kind]
            if not story.endswith("have?") else [story.rsplit(". ", 1)[1]])
    return story.format(a=a, b=b, p=p, q=q, t=thing, h=r.choice(HOLDERS))


def items(r, values):
    """A list of values as people type it."""
    joint = r.choice(JOINTS)
    texts = [str(value) for value in values]
    if joint == ", " and len(texts) > 1 and r.random() < 0.3:
        return ", ".join(texts[:-1]) + r.choice([" and ", ", and ", " or "]) + texts[-1]
    if r.random() < 0.05:
        return joint.join(f'"{text}"' for text in texts)
    return joint.join(texts)


def sort_text(r, values, kind, words):
    """A request to sort values; kind is "words" or "numbers"."""
    listed, way = items(r, values), r.random()
    ends = ["", "", "", ".", "?", "!"]
    if way < 0.5:
        what = r.choice(SORT_WORDS if kind == "words" else SORT_NUMBERS)
        end = r.choice(SORT_END[kind]) if not what.endswith(":") else ""
        return framed(r, f"{r.choice(SORT_VERBS)}{what} {listed}{end}", ends, listed)
    if way < 0.82:
        return framed(r, r.choice(SORT_OTHER).format(listed), ends, listed)
    if way < 0.92:
        return framed(r, r.choice(SORT_WITH).format(listed, w=r.choice(words)), ends, listed)
    return framed(r, soup(r, words, [r.choice(["sort", "order", "sorted", "sorting", "arrange", "alphabetical",
                                               "ascending"])]) + ": " + listed, ends, listed)


def ask_text(r, name, words):
    """A question what `name` is."""
    if r.random() < 0.88:
        return framed(r, r.choice(ASK).format(name), ["", ".", "?", "?", "!"])
    parts = [r.choice(ASK_SOUP), name]
    return framed(r, soup(r, words, parts if r.random() < 0.6 else parts[::-1]), ["", ".", "?", "?", "!"])


def pirate(text):
    """An answer as a pirate gives it; JSON stays what it is."""
    if text.startswith("{"):
        return text
    said = re.sub(r"[A-Za-z]+", lambda word: PIRATE.get(word[0], word[0]), text)
    return f"Arr, matey! {said}"
