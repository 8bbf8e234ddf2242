"""Requests to two servers through a gateway, while servers die, drain and come back."""

import bisect
import collections
import dataclasses
import http.client
import itertools
import json
import random
import statistics
import threading
import time

from fleet import CLIENT, MODEL, Wrong, ask, wait_for

PROMPTS = [
    "Once upon a time",
    "A slice is a view of",
    "The compiler reads the spec and",
    "Numbers that are stored in four bits",
    "The same question has the same answer, since",
]
# Share of requests that are streamed: one of so many.
STREAMED = 8
# Tokens of a text that is still being made when its server dies or drains.
LONG = 700
# Times that a client asks for a stream that broke.
TRIES = 5
# Seconds that events may take.
PATIENCE = 90


@dataclasses.dataclass(frozen=True)
class Case:
    """A request whose text is known."""

    adapter: str | None
    prompt: str
    seed: int
    tokens: int

    def body(self, stream=False):
        return {
            "model": self.adapter or MODEL,
            "prompt": self.prompt,
            "seed": self.seed,
            "temperature": 0.8,
            "max_tokens": self.tokens,
            # Lengths do not depend on chance.
            "ignore_eos": True,
            "stream": stream,
        }


@dataclasses.dataclass
class Outcome:
    """What came of a request."""

    case: Case
    stream: bool
    sent: float
    done: float = 0.0
    status: int = 0
    text: str = ""
    # A stream that ended as it should.
    whole: bool = False
    server: str = ""
    error: str = ""
    first: float = 0.0
    tries: int = 1
    retries: int = 0


def cases(adapters, seed):
    """Every adapter with every prompt, by adapter."""
    draw = random.Random(seed)
    return {
        adapter: [Case(adapter, prompt, draw.randrange(1000), draw.randrange(8, 64)) for prompt in PROMPTS]
        for adapter in adapters
    }


def expected(server, some):
    """Texts that a server gives without a gateway."""
    texts = {}
    for case in some:
        code, _, text = ask(server.port, "POST", "/v1/completions", case.body())
        if code != 200:
            raise Wrong(f"server {server.name} alone: {code} {text}")
        texts[case] = json.loads(text)["choices"][0]["text"]
    return texts


def send(gateway, case, stream=False, on_piece=None):
    """Sends a request through a gateway, once."""
    outcome = Outcome(case, stream, time.monotonic())
    body, headers = gateway.request(case, stream)
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=120)
    try:
        headers = {"Content-Type": "application/json", **CLIENT, **headers}
        connection.request("POST", "/v1/completions", json.dumps(body), headers)
        answer = connection.getresponse()
        outcome.status = answer.status
        outcome.server = gateway.server_of(answer.headers)
        outcome.retries = int(answer.headers.get("x-retries", 0))
        if stream and answer.status == 200:
            read_stream(answer, outcome, on_piece)
        else:
            text = answer.read().decode()
            outcome.error = text[:300] if answer.status != 200 else ""
            outcome.text = json.loads(text)["choices"][0]["text"] if answer.status == 200 else ""
    except (OSError, http.client.HTTPException, ValueError, LookupError) as error:
        outcome.error = f"{type(error).__name__}: {error}"
    finally:
        connection.close()
    outcome.done = time.monotonic()
    return outcome


def read_stream(answer, outcome, on_piece):
    """Takes the pieces of a stream. One that broke has no `[DONE]`."""
    for line in answer:
        if not line.startswith(b"data: "):
            continue
        data = line[6:].strip()
        if data == b"[DONE]":
            outcome.whole = True
            continue
        event = json.loads(data)
        if event.get("error"):
            outcome.error = json.dumps(event["error"])
            return
        piece = "".join(choice.get("text") or "" for choice in event.get("choices") or [])
        if piece:
            outcome.first = outcome.first or time.monotonic()
            outcome.text += piece
            if on_piece:
                on_piece(outcome)


def send_stream(gateway, case, on_piece=None):
    """Sends a request for a stream, and again when it breaks: with the same seed it begins with what is there
    already."""
    outcome = send(gateway, case, True, on_piece)
    for tries in range(2, TRIES + 1):
        if outcome.whole:
            break
        time.sleep(0.1)
        again = send(gateway, case, True)
        again.tries, again.sent = tries, outcome.sent
        if again.whole and not again.text.startswith(outcome.text):
            again.error = "the second stream does not begin with what the first one had"
            again.whole = False
            return again
        if not again.whole and len(again.text) < len(outcome.text):
            again.text = outcome.text
        outcome = again
    return outcome


def zipf(names, draw):
    """A source of names, the first one most often."""
    sums = list(itertools.accumulate(1 / rank for rank in range(1, len(names) + 1)))
    return lambda: names[bisect.bisect_left(sums, draw.random() * sums[-1])]


class Load:
    """Clients that send at a steady pace until they are told to stop."""

    def __init__(self, gateway, by_adapter, rate, clients, seed):
        self.gateway, self.rate = gateway, rate
        self.draw = random.Random(seed)
        self.adapter = zipf(list(by_adapter), self.draw)
        self.by_adapter = by_adapter
        self.lock = threading.Lock()
        self.count = 0
        self.outcomes = []
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(clients)]
        self.start = time.monotonic()

    def begin(self):
        for thread in self.threads:
            thread.start()

    def work(self):
        while not self.stopped.is_set():
            with self.lock:
                number, self.count = self.count, self.count + 1
                case = self.draw.choice(self.by_adapter[self.adapter()])
            wait = self.start + number / self.rate - time.monotonic()
            if wait > 0 and self.stopped.wait(wait):
                return
            if number % STREAMED == STREAMED - 1:
                outcome = send_stream(self.gateway, case)
            else:
                outcome = send(self.gateway, case)
            with self.lock:
                self.outcomes.append(outcome)

    def more(self, count):
        """Waits for this many further answers."""
        goal = len(self.outcomes) + count
        wait_for(f"{count} more answers", lambda: len(self.outcomes) >= goal, PATIENCE)

    def taken_up(self, server, since):
        """Seconds from when a server is there again until the gateway gives it something."""

        def found():
            with self.lock:
                times = [o.sent for o in self.outcomes if o.server == server.name and o.sent > since]
            return min(times, default=None)

        return wait_for(f"the gateway gives server {server.name} requests again", found, PATIENCE) - since

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def long_case(gateway, by_adapter, servers, wanted=None):
    """A long text of an adapter that is usually at server `wanted`, if one is named."""
    for number, adapter in enumerate(by_adapter):
        outcome = send(gateway, Case(adapter, PROMPTS[0], 0, 1))
        server = next((one for one in servers if one.name == outcome.server), None)
        if server and wanted in (None, server):
            return Case(adapter, PROMPTS[0], 77 + number, LONG)
    raise Wrong(f"no adapter is at server {wanted.name if wanted else '?'}: {outcome.status} {outcome.error}")


class Interruption:
    """Does something to the server of a stream, once, when the stream has begun."""

    def __init__(self, servers, act):
        self.servers, self.act, self.server = servers, act, None

    def __call__(self, outcome):
        if self.server is None and len(outcome.text) > 20:
            self.server = next(one for one in self.servers if one.name == outcome.server)
            self.at = time.monotonic()
            self.act(self.server)


def run(gateway, servers, by_adapter, texts, options):
    """The whole load with its events; outcomes, windows in which both servers were there, and figures."""
    load = Load(gateway, by_adapter, options.rate, options.clients, options.seed)
    part = options.requests // 5
    windows, extra, figures = [], [], {}
    begin = time.monotonic()
    load.begin()
    try:
        load.more(part)
        # A server dies while it streams.
        case = long_case(gateway, by_adapter, servers)
        killed = Interruption(servers, lambda one: one.kill())
        extra.append(send_stream(gateway, case, killed))
        if killed.server is None:
            raise Wrong(f"the stream that was to be broken did not come: {extra[-1]}")
        if extra[-1].tries == 1:
            raise Wrong("the stream of a server that died ended as if nothing was")
        windows.append((begin, killed.at))
        load.more(part // 2)
        killed.server.start()
        ready = time.monotonic()
        figures["taken_up_after_kill_s"] = load.taken_up(killed.server, ready)
        begin = ready + figures["taken_up_after_kill_s"]
        load.more(part)
        # The other one drains while it streams.
        other = next(one for one in servers if one is not killed.server)
        case = long_case(gateway, by_adapter, servers, other)
        drained = Interruption(servers, lambda one: one.drain())
        extra.append(send_stream(gateway, case, drained))
        if drained.server is None:
            raise Wrong(f"the stream that was to run in a drain did not come: {extra[-1]}")
        if extra[-1].tries != 1:
            raise Wrong(f"a stream of a server that drains broke: {extra[-1].error}")
        windows.append((begin, drained.at))
        drained.server.drained()
        load.more(part // 2)
        drained.server.start()
        ready = time.monotonic()
        figures["taken_up_after_drain_s"] = load.taken_up(drained.server, ready)
        begin = ready + figures["taken_up_after_drain_s"]
        load.more(part)
        load.more(max(0, options.requests * STREAMED // (STREAMED - 1) + 1 - len(load.outcomes)))
        windows.append((begin, time.monotonic()))
    finally:
        load.stop()
    # Long texts were made by nobody before.
    texts.update(expected(servers[0], [one.case for one in extra]))
    return load.outcomes, extra, windows, figures


def run_update(gateway, servers, by_adapter, options):
    """Answers while the gateway itself replaces its servers."""
    load = Load(gateway, by_adapter, options.rate, options.clients, options.seed + 1)
    load.begin()
    try:
        load.more(20)
        gateway.update(servers)
        load.more(20)
    finally:
        load.stop()
    return load.outcomes


def affinity(outcomes, windows, names):
    """Share of requests that went to the usual server of their adapter; what chance would give; the least
    share that a server had."""
    counts = collections.defaultdict(collections.Counter)
    for one in outcomes:
        if one.server and any(begin <= one.sent and one.done <= end for begin, end in windows):
            counts[one.case.adapter][one.server] += 1
    total = sum(sum(count.values()) for count in counts.values())
    if total == 0:
        raise Wrong("no answer says which server made it")
    usual = sum(max(count.values()) for count in counts.values())
    draw = random.Random(0)
    by_chance = []
    for _ in range(200):
        thrown = (collections.Counter(draw.choices(names, k=sum(count.values()))) for count in counts.values())
        by_chance.append(sum(max(count.values()) for count in thrown) / total)
    shares = [sum(count[name] for count in counts.values()) / total for name in names]
    return usual / total, statistics.mean(by_chance), min(shares)


def first_tokens(gateway, direct, count):
    """Milliseconds until the first text of a stream, in turns through the gateway and without it."""
    times = {"gateway": [], "direct": []}
    for number in range(count):
        case = Case(None, f"{PROMPTS[number % len(PROMPTS)]} {number}", number, 4)
        for name, way in (("gateway", gateway), ("direct", direct)):
            outcome = send(way, case, True)
            if not outcome.whole:
                raise Wrong(f"a stream ({name}) came to {outcome.status} {outcome.error}")
            times[name].append((outcome.first - outcome.sent) * 1e3)
    return {name: quartiles(some) for name, some in times.items()}


def quartiles(some):
    cuts = statistics.quantiles(some, n=20)
    return {"median_ms": round(statistics.median(some), 2), "p95_ms": round(cuts[18], 2)}
