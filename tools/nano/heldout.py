"""Share of held-out requests that a running server answers right: other words than those of the training.

    kernmill serve &
    python heldout.py [--url http://127.0.0.1:8080] [--model NAME] [--count N] [--seed N] [--wrong]
    python heldout.py --model pirate --pirate --kinds explanations "small talk"
    python heldout.py --check 20000      # does the training say one of these? Asks no server

Phrasings, lists of words and functions are this file's own. The requests go to /v1/chat/completions, greedily
and with the default effort. `--count` is the number of requests of each kind. With `--pirate` the answers are to
be those of the pirate (`--model pirate` of a server with `--lora pirate=...`).
"""

import argparse
import concurrent.futures
import json
import random
import re
import urllib.request

import functions
import phrases
import wordings
from dialogues import Maker
from harmony import compact
from prepare import data_dir

SUMS = ["Please add {a} and {b}", "Please add {a} and {b}.", "the sum of {a} and {b}",
        "What's the sum of {a} and {b}?", "Add {a} to {b}.", "Could you add up {a} and {b}?",
        "How much do {a} and {b} make together?", "I need the total of {a} and {b}.", "{a}+{b}, go!",
        "Give me {a} plus {b}", "Work out {a} + {b} for me", "What do you get when adding {a} to {b}?",
        "I have {a} apples and get {b} more. How many apples do I have now?",
        "Tom has {a} apples, Sue has {b} apples. How many apples are there together?",
        "{a} birds sit on a roof, then {b} more land. How many birds are sitting there?"]
PRODUCTS = ["{a}*{b}", "{a}×{b}", "Multiply {a} by {b}", "Multiply {a} by {b}, please.",
            "the product of {a} and {b}", "product {a} {b}", "What's the product of {a} and {b}?",
            "Could you multiply {a} and {b}?", "Tell me what {a} * {b} comes to.",
            "What do I get when I multiply {a} by {b}?", "{a} boxes hold {b} apples each. How many apples is that?",
            "Work out {a} times {b}", "I have {a} bags with {b} apples in each bag. How many apples do I have?",
            "Give me {a} x {b}", "How many are {a} times {b}?"]
DIFFERENCES = ["Please subtract {b} from {a}", "What's the difference of {a} and {b}?", "Give me {a} minus {b}",
               "Work out {a} - {b}", "I have {a} apples and eat {b} of them. How many apples are left?"]
SORTS = ["Can you bring {} into alphabetical order?", "Alphabetical order: {}", "{} - sorted please",
         "I want {} sorted.", "Arrange these alphabetically: {}", "Sort the following words: {}",
         "Which order do {} have in a dictionary?", "Could you please sort {}?", "Bring these into order: {}",
         "Alphabetise {}"]
NUMBER_SORTS = ["Could you please sort {}?", "Bring these numbers into order: {}", "From smallest to largest: {}",
                "{} - sorted please", "I want {} sorted.", "Which order do {} have by size?"]
ANIMALS = """baboon badger beaver bison camel cheetah cobra coyote crocodile dolphin donkey eagle
elephant falcon ferret giraffe gorilla hamster heron hyena jaguar kangaroo koala leopard lizard llama
monkey otter panther parrot penguin puffin rabbit raccoon salmon scorpion shark squirrel tortoise turkey
vulture walrus weasel wombat yak""".split()
TOWNS = """Amsterdam Ankara Baghdad Bangkok Beirut Brussels Budapest Caracas Copenhagen Dakar Denver
Florence Glasgow Havana Jakarta Kiev Krakow Leipzig Liverpool Mumbai Nicosia Odessa Palermo Riga
Rotterdam Salzburg Santiago Stockholm Tunis Utrecht Valencia Venice Verona Wellington Yerevan""".split()
FRUITS = """apricot avocado banana blueberry cherry coconut cranberry date elderberry fig grape guava
kiwi lemon lime lychee mango melon nectarine olive papaya peach persimmon pineapple pomegranate quince
raspberry strawberry tangerine watermelon""".split()
GUESTS = """Agnes Boris Celia Dennis Edith Fiona Gustav Harriet Irene Jonas Kirsten Lars Marvin Norbert
Oliver Penny Quentin Rita Steven Tina""".split()
QUESTIONS = ["{} meaning", "I do not understand {}", "I do not understand {}.", "give me a definition of {}",
             "Give me a definition of {}.", "I would like to learn about {}.", "Any idea what {} is?",
             "What on earth is {}?", "Say something about {}.", "Could you explain {} in a sentence?",
             "What's {} supposed to be?", "What is the idea of {}?", "{} - what does it mean?",
             "My colleague talks about {}. What does it mean?", "Help! What is {}?",
             "Please tell me something about {}"]
# Small talk by the labels that phrases.py has for it.
TALK = {"A greeting.": ["Howdy!", "Hello! Nice to meet you.", "Hello to you", "Hey, good to meet you", "Hello!!!"],
        "A greeting.|A question about how I am.": ["Hi, how do you do"],
        "A morning greeting.": ["Good morning to everyone"],
        "An evening greeting.": ["A lovely evening to you", "Good evening everybody"],
        "Thanks.": ["Thank you so much!", "Thank you very much indeed", "Okay, thanks a million"],
        "Thanks.|Praise.": ["thanks, that was helpful"],
        "Thanks.|A goodbye.": ["Thanks, bye"],
        "A goodbye.": ["Bye for now", "Goodbye and see you tomorrow", "See you next week",
                       "I have to leave, goodbye"],
        "A question about my name.": ["Who is this?", "And who are you?", "What name do you have?",
                                      "Please tell me your name"],
        "A question about my maker.": ["Who has made you?", "Who is the maker of this model?",
                                       "Which people built you?"],
        "A question about my abilities.": ["What are you able to do?", "What things can you do for me?",
                                           "How could you help me?"],
        "A question about how I am.": ["How are you feeling today?", "Are you doing well?"],
        "A question about how I am.|A greeting.": ["Hello, how are you?"],
        "A question about being human.": ["Are you an AI?", "Are you a real human?", "Are you a machine?"],
        "A wish for a joke.": ["Could you tell me a joke?", "I would love to hear a joke"],
        "Praise.": ["That was a great answer", "You are very clever!", "Good job, nano!"],
        "Blame.": ["That answer is wrong"],
        "Blame.|A refusal.": ["No, this is not right"],
        "A question about my size.": ["How many parameters have you got?"],
        "A question about kernmill.": ["What does the kernmill project do?"],
        "An apology.": ["I'm sorry about that"],
        "A question about languages.": ["Do you speak Spanish?", "Can you understand English?"],
        "A question about my day.": ["Do you ever sleep?"],
        "A question about what I like.": ["What do you like the most?"],
        "Agreement.": ["Sure, okay"],
        "A refusal.|Thanks.": ["No, thank you"],
        "A question about my texts.": ["What have you been trained on?"]}

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
# Functions: name, description, parameters, requests; a parameter's list of values stands in VALUES.
FUNCTIONS = [
    ("convert_currency", "Converts an amount of money.", {"amount": WHOLE, "from": TEXT, "to": TEXT},
     ["Convert {amount} {from} to {to}.", "How much is {amount} {from} in {to}?"]),
    ("play_song", "Plays a song.", {"title": TEXT}, ["Play {title}", "Please play the song {title}.",
                                                     "I want to hear {title}"]),
    ("water_plants", "Waters the plants in a room.", {"room": TEXT, "litres": WHOLE},
     ["Water the plants in the {room} with {litres} litres.",
      "Give the plants in the {room} {litres} litres of water"]),
    ("create_reminder", "Creates a reminder.", {"what": TEXT, "weekday": TEXT},
     ["Remind me of {what} on {weekday}.", "Create a reminder for {what} on {weekday}"]),
    ("get_population", "Returns how many people live in a country.", {"country": TEXT},
     ["How many people live in {country}?", "What is the population of {country}?", "Population of {country}"]),
    ("set_temperature", "Sets the temperature of a room.", {"room": TEXT, "celsius": WHOLE},
     ["Set the {room} to {celsius} degrees.", "Make it {celsius} degrees in the {room}",
      "Set the temperature of the {room} to {celsius}"]),
    ("order_pizza", "Orders a pizza.", {"topping": TEXT, "count": WHOLE},
     ["Order {count} pizzas with {topping}.", "I'd like {count} pizzas with {topping}, please"]),
    ("call_contact", "Calls somebody on the phone.", {"contact": TEXT}, ["Call {contact}", "Please phone {contact}.",
                                                                         "Give {contact} a call"]),
    ("lock_door", "Locks a door.", {"door": TEXT}, ["Lock the {door} door.", "Please lock the door of the {door}"]),
    ("track_package", "Says where a package is.", {"code": TEXT}, ["Where is my package {code}?",
                                                                   "Track package {code}", "Track {code}, please."]),
    ("find_train", "Finds the next train.", {"origin": TEXT, "destination": TEXT},
     ["When does the next train go from {origin} to {destination}?", "Find a train from {origin} to {destination}."]),
    ("book_flight", "Books a flight.", {"origin": TEXT, "destination": TEXT, "passengers": WHOLE},
     ["Book a flight from {origin} to {destination} for {passengers} passengers.",
      "I need a flight from {origin} to {destination}, {passengers} passengers"]),
    ("dim_light", "Dims a lamp to a percentage.", {"lamp": TEXT, "percent": WHOLE},
     ["Dim the {lamp} lamp to {percent} percent.", "Put the {lamp} light at {percent} percent"]),
    ("stock_quote", "Gets the share price of a company.", {"company": TEXT},
     ["What is the stock price of {company}?", "Give me the share price of {company}.", "Stock quote for {company}"]),
    ("log_run", "Stores a run.", {"kilometres": WHOLE, "minutes": WHOLE},
     ["I ran {kilometres} kilometres in {minutes} minutes, log it.",
      "Log a run of {kilometres} kilometres and {minutes} minutes"]),
    ("hire_car", "Hires a car.", {"place": TEXT, "days": WHOLE}, ["Hire a car in {place} for {days} days.",
                                                                  "I need a car for {days} days in {place}."]),
]
VALUES = {"from": ["dollars", "pounds", "francs", "crowns"],
          "to": ["euros", "yen", "rupees", "pesos"],
          "title": ["Yesterday", "Thunder", "Moonlight", "Hurricane", "Imagine"],
          "room": ["kitchen", "bedroom", "bathroom", "hall", "cellar"],
          "what": ["the dentist", "the meeting", "laundry", "shopping", "the concert"],
          "weekday": ["Monday", "Tuesday", "Friday", "Sunday"],
          "country": ["Norway", "Portugal", "Kenya", "Peru", "Japan", "Canada"],
          "topping": ["mushrooms", "onions", "olives", "ham", "tuna"],
          "contact": GUESTS,
          "door": ["front", "back", "garage", "cellar"],
          "code": ["ZX81", "AB1234", "K77", "P2040", "QR55"],
          "origin": TOWNS,
          "destination": TOWNS,
          "lamp": ["desk", "hall", "bedside", "floor"],
          "place": TOWNS,
          "company": ["Siemens", "Toyota", "Nestle", "Boeing", "Nokia"]}


class Asker:
    """Draws requests: each is (kind, text, tools, check of the answer's message)."""

    def __init__(self, seed, facts, as_said=str):
        """`as_said`: how the model says an answer."""
        self.random, self.facts, self.as_said = random.Random(seed), facts, as_said

    def sum(self, ways, of, swap=False):
        a, b = self.random.randint(2, 99), self.random.randint(2, 99)
        if swap:
            a = self.random.randint(2, 9)
            a, b = self.random.choice([(a, b), (b, a)])
        text, wanted = self.random.choice(ways).format(a=a, b=b), of(a, b)
        return text, lambda message: numbers(message)[-1:] == [wanted], str(wanted)

    def addition(self):
        return self.sum(SUMS, lambda a, b: a + b)

    def product(self):
        return self.sum(PRODUCTS, lambda a, b: a * b, True)

    def difference(self):
        return self.sum(DIFFERENCES, lambda a, b: a - b)

    def sort(self):
        r = self.random
        if r.random() < 0.25:
            values = r.sample(range(100), r.randint(3, 5))
            done = ", ".join(map(str, sorted(values)))
            text = r.choice(NUMBER_SORTS).format(r.choice([", ", " "]).join(map(str, values)))
            return text, lambda message: message.get("content") == done, done
        values = r.sample(r.choice([ANIMALS, TOWNS, FRUITS, GUESTS]), r.randint(3, 5))
        case = r.random()
        if case < 0.3:
            values = [word.capitalize() if r.random() < 0.5 else word for word in values]
        elif case > 0.8:
            values = [word.lower() for word in values]
        done = ", ".join(sorted(values, key=str.lower))
        text = r.choice(SORTS).format(r.choice([", ", ", ", " "]).join(values))
        return text, lambda message: message.get("content") == done, done

    def explanation(self):
        name = self.random.choice(list(self.facts))
        wanted = self.as_said(self.facts[name])
        return self.random.choice(QUESTIONS).format(name), lambda message: message.get("content") == wanted, wanted

    def talk(self):
        labels, text = self.random.choice([(labels, text) for labels, texts in TALK.items() for text in texts])
        wanted = [self.as_said(answer) for label, answer, _ in phrases.TALK if label in labels.split("|")]
        return text, lambda message: message.get("content") in wanted, wanted[0]

    def functions(self, count):
        chosen = self.random.sample(FUNCTIONS, count)
        return chosen, [{"type": "function", "function": {"name": name, "description": what, "parameters": {
            "type": "object",
            "properties": parameters, "required": list(parameters)}}} for name, what, parameters, _ in chosen]

    def call(self):
        chosen, tools = self.functions(self.random.choice([1, 2, 3]))
        name, _, parameters, ways = self.random.choice(chosen)
        values = {key: self.random.randint(2, 90) if of is WHOLE else self.random.choice(VALUES[key])
                  for key, of in parameters.items()}
        text = self.random.choice(ways).format(**values)

        def right(message):
            calls = [call["function"] for call in message.get("tool_calls") or []]
            ended = message["finish"] == "tool_calls"
            return ended and [call["name"] for call in calls] == [name] and json.loads(calls[0]["arguments"]) == values
        return text, right, f"{name} {compact(values)}", tools

    def beside(self):
        """Small talk, sums and questions while functions are there: right is an answer without a call."""
        make = self.random.choice([self.talk, self.talk, self.addition, self.product, self.explanation])
        text, _, wanted = make()
        _, tools = self.functions(self.random.choice([1, 2, 3]))
        return text, lambda message: not message.get("tool_calls") and bool(message.get("content")), wanted, tools


KINDS = {"sums": Asker.addition, "products": Asker.product, "sorts": Asker.sort, "explanations": Asker.explanation,
         "calls": Asker.call, "no call": Asker.beside, "differences": Asker.difference, "small talk": Asker.talk}


def numbers(message):
    return [int(number) for number in re.findall(r"-?\d+", message.get("content") or "")]


def answered(url, model, text, tools):
    """The message that the server answers with."""
    body = {"model": model, "messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 400}
    if tools:
        body["tools"] = tools
    data, kind = json.dumps(body).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", data, kind)
    with urllib.request.urlopen(request) as answer:
        choice = json.load(answer)["choices"][0]
    return dict(choice["message"], finish=choice["finish_reason"])


def skeleton(text):
    """A text without what it is about: digits and case."""
    return re.sub(r"\d+", "0", re.sub(r"\s+", " ", text.lower())).strip(" .?!")


def check(asker, maker, count):
    """Whether the training says one of the requests, operands and words aside."""
    own = {}
    for kind, make in KINDS.items():
        for _ in range(400):
            own.setdefault(skeleton(make(asker)[0]), kind)
    made = {}
    for _ in range(count):
        for item in maker.dialogue()[1]["items"]:
            if "user" in item:
                made.setdefault(skeleton(item["user"]["text"]), 0)
    said = sorted(set(own) & set(made))
    lists = [*ANIMALS, *TOWNS, *FRUITS, *GUESTS]
    listed = {*phrases.SORTED, *phrases.NAMES, *phrases.CITIES, *phrases.COLOURS, *wordings.PEOPLE, *wordings.THINGS,
              *functions.NOUNS}
    print(f"words in both: {sorted(set(lists) & listed)}, functions: "
          f"{sorted({one[0] for one in FUNCTIONS} & {one[0] for one in phrases.FUNCTIONS})}")
    print(f"{len(made)} different requests of the training, {len(own)} of these, {len(said)} in both: {said[:40]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--model", help="name of the model (default: the server's first)")
    parser.add_argument("--data", help="directory of prepare.py's output (default: $KERNMILL_DATA)")
    parser.add_argument("--count", type=int, default=50, help="requests of each kind")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--wrong", action="store_true", help="print what was answered wrongly")
    parser.add_argument("--pirate", action="store_true")
    parser.add_argument("--check", type=int, help="compare with so many dialogues of the training")
    options = parser.parse_args()
    maker = Maker(options.seed, (data_dir(options.data) / "train.txt").read_text(encoding="utf-8"))
    if options.check:
        return check(Asker(options.seed, maker.facts), maker, options.check)
    model = options.model
    if model is None:
        with urllib.request.urlopen(f"{options.url}/v1/models") as answer:
            model = json.load(answer)["data"][0]["id"]
    for kind in options.kinds:
        asker = Asker(f"{options.seed} {kind}", maker.facts, wordings.pirate if options.pirate else str)
        asked = [KINDS[kind](asker) for _ in range(options.count)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            messages = list(pool.map(
                lambda one: answered(options.url, model, one[0], one[3] if len(one) > 3 else None), asked))
        right = [one[1](message) for one, message in zip(asked, messages)]
        print(json.dumps({"kind": kind, "right": sum(right), "of": len(right),
                          "ended": sum(m["finish"] != "length" for m in messages)}), flush=True)
        for one, message, is_right in zip(asked, messages, right):
            if options.wrong and not is_right:
                print(json.dumps({"asked": one[0], "wanted": one[2], "answer": message.get("content"),
                                  "reasoning": message.get("reasoning_content"),
                                  "calls": [call["function"] for call in message.get("tool_calls") or []]}))


if __name__ == "__main__":
    main()
