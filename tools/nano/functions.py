"""Functions that nobody has, with requests for them: names, descriptions and parameters drawn at random.

What a request says of an argument follows from the parameter's name and the value's kind, so that a model has
to read the schema instead of knowing the function.
"""

import phrases

VERBS = """add archive arrange attach block build buy cancel change check clean close collect connect
copy count create delete deliver draw export fetch file fill fix hide hire import invite join launch
lend lift lock log mark measure mix move name offer order pack paint park pause pay pick place plan post
print publish pull push rate record remove rename rent repair replace report request reset resize return
ring save scan schedule sell share ship show sign start stop store submit swap tag take test track
update upload use visit wash weigh wrap write""".split()
GETTERS = ["get", "find", "check", "look_up", "fetch", "show", "read", "query", "list", "tell", "search", "compute"]
NOUNS = """account address alarm album answer archive article balance bike bill board bottle branch
budget bus camera card cargo chart client code comment contract course curtain customer deal device
distance door draft drink engine exam fan fare flight folder form fuel garage gate gift grade grant
group guide height heater hotel image index invoice job journey key label lecture length letter library
lift link list loan lock machine map mark match meal meeting member memo menu mission model motor movie
note number offer office order oven package page paper parcel part pass payment phone photo picture pipe
plan player plot pool post printer prize profile project pump query question radio rate recipe record
rent report request review ride room route rule salary sample score screen seat sensor series service
shelf ship shop shirt signal site size speed stage station stock store story street student subject
switch tank target task team temperature tent test ticket title tool tower track trail train trip truck
tunnel valve video visit volume wage watch window worker""".split()
# Parameter names by the kind of their values.
PLACES = "city place town location area region destination where station site address country spot".split()
PERSONS = """name person to recipient guest author owner user who contact friend customer member student
player sender""".split()
TOPICS = """title item product word topic label subject tag object thing category brand model animal
material dish genre team""".split()
TEXTS = "text message note body content query question comment description summary".split()
COUNTS = """amount number minutes hours count size level degrees weight quantity percent pages seconds
volume speed age width height price limit people days score budget year rooms copies kilos litres""".split()
KINDS = {"city": PLACES,
         "name": PERSONS,
         "word": TOPICS,
         "invented": TOPICS,
         "pair": TOPICS + TEXTS,
         "words": TEXTS,
         "thing": [*TOPICS, "task", "what"],
         "number": COUNTS,
         "large": COUNTS,
         "day": ["day", "date", "when"],
         "time": ["time", "start", "at", "when", "hour"],
         "colour": ["colour", "paint", "shade"],
         "language": ["language", "tongue"],
         "file": ["file", "path", "document"],
         "date": ["date", "day", "deadline", "due"],
         "code": ["code", "id", "reference", "serial", "flight", "room", "number", "key"]}
KIND_SHARES = {"city": 6, "name": 8, "word": 7, "invented": 4, "pair": 5, "words": 4, "thing": 7, "number": 9, "large": 3, "day": 2,
               "time": 2, "colour": 1, "language": 1, "file": 1, "date": 1, "code": 2}
NUMERIC = ("number", "large", "small")
# How a value of a kind is told without its parameter's name.
BARE = {"city": ["in {v}", "in {v}", "at {v}", "for {v}", "near {v}", "from {v}", "to {v}", "of {v}"],
        "name": ["for {v}", "for {v}", "to {v}", "with {v}", "of {v}", "by {v}", "from {v}"],
        "word": ["of {v}", "for {v}", "{v}", "with {v}", "about {v}", "called {v}"],
        "invented": ["of {v}", "for {v}", "called {v}", "named {v}", "{v}"],
        "pair": ['"{v}"', "'{v}'", "called {v}", ": {v}", "titled {v}", "about {v}"],
        "thing": ["of {v}", "of {v}", "for {v}", "about {v}", "to {v}", "with {v}", "{v}"],
        "words": [": {v}", '"{v}"', "that says {v}", "saying {v}"],
        "day": ["on {v}", "for {v}", "this {v}", "next {v}"],
        "time": ["at {v}", "at {v}", "for {v}", "by {v}"],
        "colour": ["in {v}", "{v}"],
        "language": ["in {v}", "into {v}", "to {v}"],
        "file": ["{v}", "in {v}", "from {v}"],
        "date": ["on {v}", "for {v}", "by {v}"],
        "code": ["{v}", "of {v}", "for {v}", "number {v}", "with {v}", "{v}"]}
NAMED = ["{p} {v}", "{p} {v}", "{p}: {v}", "with {p} {v}", "with the {p} {v}", "{p} = {v}", "{p} is {v}",
         "the {p} is {v}", "as {p} {v}", "use {v} as {p}", "{v} as the {p}", "{p} should be {v}", "set {p} to {v}",
         "whose {p} is {v}", "the {p} {v}", "a {p} of {v}", "{p} {v}", "the {v} {p}", "the {v} {p}"]
NAMED_NUMBER = ["{v} {p}", "{v}", "to {v}", "to {v} {p}", "{v} {p}", "for {v} {p}", "of {v} {p}", "with {v} {p}",
                "at {v} {p}"]
OPEN = ["", "", "", "", "", "please ", "can you ", "could you ", "would you ", "I want to ", "I need to ",
        "I'd like you to ", "now ", "hey, ", "let us ", "we must ", "you should ", "help me ", "go and ", "okay, ",
        "next, ", "quickly "]
# Words for any deed, in place of the function's own.
DEEDS = ["do it", "make it", "put it", "put", "make", "give me", "go", "start", "I want", "I'd like", "have it",
         "use it", "run it", "bring it"]
ENDS = ("from", "to", "origin", "destination", "start", "end", "source", "target")
SIMPLE = 0.9              # of the drawn functions: few parameters, short requests
# Requests with one argument: {t} is the request without it.
DIRECT = ["{t}: {v}", "{d} {v}", "{d} the {n} {v}", "{o}{d} {n} {v}", "{t} {v}", "give {v} a {d}",
          "{d} the {v} {n}", "{d} the {n} of the {v}", "{d} the {v} {p}", "{d} {v}, please", "{d} {v}, thanks",
          "{d} {v} now"]
DIRECT_COUNT = ["{t}: {v}", "{t} {v}", "{t} with {v}", "{d} {v} {n}", "{t} of {v}", "{t} to {v}"]
ASKING = ["what is the {n}", "what is the {n}", "tell me the {n}", "give me the {n}", "show me the {n}",
          "I need the {n}", "how is the {n}", "find the {n}", "do you know the {n}", "what's the {n}", "the {n}",
          "{n}", "check the {n}", "look up the {n}", "get the {n}", "find out the {n}", "which {n} is there",
          "what about the {n}", "is there a {n}", "can I have the {n}"]


def plain(name):
    return name.replace("_", " ")


class Functions:
    """Draws functions and requests; `maker` has the values."""

    def __init__(self, maker):
        self.maker = maker

    def value(self, kind):
        m = self.maker
        if kind == "pair":
            if m.chance(0.6):
                return f"{m.pick(m.words)} {m.pick(m.words)}"
            return " ".join(m.pick(m.words) if m.chance(0.7) else m.invented() for _ in range(2)).title()
        if kind == "code":
            letters = "".join(m.pick("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(m.random.randint(1, 3)))
            return f"{letters}{m.random.randint(1, 9999)}"
        if kind == "large":
            r = m.random
            return r.choice([r.randint(100, 999), r.randint(1, 20) * 10, r.randint(1000, 2999)])
        if kind == "date":
            return f"20{m.random.randint(20, 29)}-{m.random.randint(1, 12):02}-{m.random.randint(1, 28):02}"
        return m.value(kind)

    def parameter(self, used, simple):
        """(name, kind, description or None, choices or None) of a parameter."""
        m = self.maker
        while True:
            kind = m.random.choices(list(KIND_SHARES), KIND_SHARES.values())[0]
            usual = simple or m.chance(0.6)
            name = m.pick(KINDS[kind]) if usual else m.pick(m.words if m.chance(0.7) else NOUNS)
            if m.chance(0.08) and not simple:
                name = f"{m.pick(NOUNS)}_{name}"
            if name not in used and name.isascii():
                break
        choices = None
        if kind in ("word", "colour", "day", "invented") and m.chance(0.25):
            choices = sorted({self.value(kind) for _ in range(m.random.randint(2, 4))})
        about = m.pick([f"The {plain(name)}.", f"The {plain(name)}.", f"{plain(name).capitalize()}.", None,
                        {"city": "Name of a city.", "name": "Name of a person.", "number": f"Number of {plain(name)}.",
                         "time": "Time of day.", "words": "A text.",
                         "day": "Day of the week."}.get(kind, f"Which {plain(name)}.")])
        return name, kind, about, choices

    def function(self):
        """A function as phrases.FUNCTIONS has them, with its kind of request in place of the requests."""
        m = self.maker
        asks, simple = m.chance(0.4), m.chance(SIMPLE)
        verb = m.pick(GETTERS if asks else VERBS)
        noun = m.pick(NOUNS) if m.chance(0.8) else m.pick(m.words)
        if m.chance(0.15) and not simple:
            noun = f"{m.pick(NOUNS)}_{noun}"
        parts = [verb, noun]
        name = "_".join(parts)
        if m.chance(0.2):
            words = name.split("_")
            name = words[0] + "".join(word.capitalize() for word in words[1:])
        elif asks and m.chance(0.15):
            name = noun
        elif m.chance(0.08):
            name = m.pick(VERBS) if asks else verb
        third = plain(verb).split()[0]
        third += "es" if third.endswith(("s", "sh", "x", "ch")) else "s"
        act = " ".join([third, *plain(verb).split()[1:]])
        about = m.pick(["{a} the {n}.", "{a} a {n}.", "{v} a {n}.", "{v} {n}.", "Use this to {w} a {n}."]).format(
            a=act.capitalize(), v=plain(verb).capitalize(), w=plain(verb), n=plain(noun))
        said = noun
        if m.chance(0.1 if simple else 0.25):          # requests take up the description instead of the name
            said = " ".join(m.pick(m.prose) for _ in range(m.random.choice([1, 1, 2])))
            about = m.pick(["{a} the {s} of a {n}.", "{a} the {s}.", "{a} {s} for a {n}.", "{a} how {s} a {n} is.",
                            "{s}, for a {n}.",
                            "For {s} of a {n}.", "{a} a {n} by {s}."]).format(a=act, s=said, n=plain(noun))
            about = about[0].upper() + about[1:]
        used, parameters = set(), []
        for _ in range(m.random.choices([0, 1, 2, 3, 4], [0, 10, 7, 2, 0] if simple else [1, 9, 9, 6, 1])[0]):
            made = self.parameter(used, simple)
            used.add(made[0])
            parameters.append(made)
        if parameters and m.chance(0.15):    # the thing itself is an argument: lock_door with the door
            kind = m.pick(["word", "word", "invented", "pair", "name"])
            parameters[0] = (noun, kind, m.pick([None, f"Which {plain(noun)}.", f"The {plain(noun)}."]), None)
            parameters[1:] = [one for one in parameters[1:] if one[0] != noun]
        if len(parameters) > 1 and m.chance(0.12):
            ends = m.pick([("from", "to"), ("origin", "destination"), ("start", "end"), ("source", "target")])
            kind = m.pick(["city", "city", "name", "word", "time", "invented"])
            parameters[:2] = [(ends[0], kind, None, None), (ends[1], kind, None, None)]
        return {"name": name, "about": about, "verb": plain(verb), "noun": plain(said),
                "asks": asks, "parameters": parameters,
                "simple": simple}

    def tool(self, function):
        properties, required = {}, []
        for name, kind, about, choices in function["parameters"]:
            schema = {"type": "integer" if kind in NUMERIC else "string"}
            if about:
                schema["description"] = about
            if choices:
                schema["enum"] = choices
            properties[name] = schema
            required.append(name)
        parameters = {"type": "object", "properties": properties, "required": required}
        return {"name": function["name"], "description": function["about"], "parameters": parameters}

    def mention(self, parameter, value, bare):
        """What a request says of an argument."""
        m, (name, kind, _, _) = self.maker, parameter
        name = plain(name)
        if bare and name in ("from", "origin", "start", "source"):
            return f"from {value}" if m.chance(0.75) else str(value)
        if bare and name in ("to", "destination", "end", "target"):
            return m.pick(["to {}", "to {}", "to {}", "in {}", "into {}"]).format(value)
        if kind in NUMERIC:
            ways = NAMED_NUMBER if bare or m.chance(0.5) else NAMED
            return m.pick([way for way in ways if bare or "{p}" in way]).format(p=name, v=value)
        if bare:
            return m.pick(BARE[kind]).format(v=value)
        if kind in ("pair", "words") and m.chance(0.4):
            value = f'"{value}"'
        return m.pick(NAMED).format(p=name, v=value)

    def request(self, function):
        """(values, request)."""
        m = self.maker
        values = {name: m.pick(choices) if choices else self.value(kind)
                  for name, kind, _, choices in function["parameters"]}
        verb, noun, parameters = function["verb"], function["noun"], list(function["parameters"])
        kinds = ["text" if kind in ("word", "invented", "pair", "words", "thing",
                                    "file") else "count" if kind in NUMERIC else kind
                 for _, kind, _, _ in parameters]
        asks = function["asks"] and m.chance(0.8)
        if function["simple"]:
            return values, self.plainly(function, values, kinds, asks)
        if asks:
            text = m.pick(ASKING).format(n=noun)
        else:
            article = m.pick(["the ", "the ", "a ", "", "my ", "this ", "that ", "an " if noun[0] in "aeiou" else "a "])
            text = m.pick(OPEN) + f"{verb} {article}{noun}"
            counts = [name for (name, *_), kind in zip(parameters, kinds) if kind == "count"]
            if len(counts) == 1 and len(parameters) > 1 and m.chance(0.2):
                text = m.pick(OPEN) + f"{verb} {values[counts[0]]} {noun}" + m.pick(["s", "s", ""])
                parameters = [one for one in parameters if one[0] != counts[0]]
                kinds.remove("count")
            elif parameters and m.chance(0.25):
                text = m.pick(OPEN) + verb
            elif parameters and m.chance(0.12):
                text = f"{m.pick(DEEDS)} {article}{noun}" if m.chance(0.5) else m.pick(DEEDS)
        said = []
        if len(function["parameters"]) == 1 and m.chance(0.3):
            ways = DIRECT_COUNT if kinds[0] == "count" else DIRECT
            text = m.pick(ways).format(t=text, o=m.pick(OPEN), d=verb, n=noun, p=plain(parameters[0][0]),
                                       v=values[parameters[0][0]])
        else:
            for parameter, kind in zip(parameters, kinds):
                ends = plain(parameter[0]) in ENDS
                bare = kinds.count(kind) == 1 or ends
                said.append(self.mention(parameter, values[parameter[0]], bare and m.chance(0.85 if ends else 0.6)))
        if m.chance(0.5):
            m.random.shuffle(said)
        joint = m.pick([" ", " ", " ", ", ", " and ", ", "])
        if said and m.chance(0.12):          # the arguments first
            text = f"{joint.join(said)}{m.pick([', ', ': ', ' - '])}{text}".lstrip(": ")
        else:
            for at, part in enumerate(said):
                first = " " if part.startswith("with") else m.pick([" ", " ", " ", ", ", ": ", " with "])
                before = joint if at else first
                text += part if part.startswith(":") else before + part
        text += m.pick(["", "", "", "", " please", ", please", ", thanks",
                        " now"]) if not parameters or kinds[-1] != "text" else ""
        text = (text[0].upper() + text[1:]) if m.chance(0.8) else text
        return values, text + m.pick(["?", "?", "", "."] if asks else ["", ".", ".", "!"])

    def plainly(self, function, values, kinds, asks):
        """A short request, as people make most of them."""
        m = self.maker
        verb, noun, parameters = function["verb"], function["noun"], function["parameters"]
        start = m.pick(ASKING).format(n=noun) if asks else f"{verb} {m.pick(['the ', 'the ', 'a ', 'my ', ''])}{noun}"
        if len(parameters) == 1:
            ways = DIRECT_COUNT if kinds[0] == "count" else DIRECT
            (name, kind, _, _), = parameters
            text = m.pick(ways).format(t=start, o="", d=verb, n=noun, p=plain(name), v=values[name])
            if m.chance(0.5):
                text = f"{start} {self.mention(parameters[0], values[name], True)}"
        else:
            text = start if m.chance(0.75) else verb
            for (name, *rest), kind in zip(parameters, kinds):
                bare = kinds.count(kind) == 1 or plain(name) in ENDS
                said = self.mention((name, *rest), values[name], bare)
                text += said if said.startswith(":") else m.pick([" ", " ", " ", ", ", " and "]) + said
        text = m.pick(["", "", "", "please ", "can you ", "could you ", "I want to "] if not asks else [""]) + text
        text += m.pick(["", "", "", " please", ", please"]) if kinds[-1] != "text" else ""
        text = (text[0].upper() + text[1:]) if m.chance(0.8) else text
        return text + m.pick(["?", "?", ""] if asks else ["", ".", "."])

    def result(self, function, values):
        """(output, answer): the answer says what the output has."""
        m = self.maker
        key = m.pick(["result", "status", "value", "answer", function["noun"].replace(" ", "_"),
                      "total", m.pick(NOUNS)])
        kind = m.pick(["number", "number", "word", "invented", "status", "city", "name", "time"])
        value = m.value(kind)
        got = {key: value}
        if m.chance(0.3):
            other = m.pick([word for word in NOUNS if word != key])
            got[other] = m.value("number")
            return got, f"The {plain(key)} is {value}, the {other} is {got[other]}."
        return got, f"The {plain(key)} is {value}."
