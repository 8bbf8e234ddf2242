"""Loads a server with many clients and compares every answer with the one that the request got alone.

    load.py http://127.0.0.1:8080 --clients 256 --seconds 300 --pid $(pgrep -x kernmill)

Forty requests are made by seed: conversations, completions and Messages, of 8 to 200 tokens, greedy and drawn
by a seed, whole and streamed, some with two answers or a schema, with prompts of up to 500 tokens. Each is
asked alone first. Then the clients ask for them at random. Of their requests 8 in 100 are dropped while they
are answered, 3 are read slowly, and 1.5 are bad: no JSON, a wrong field, a body that is announced too long,
one that stays half, three requests at once on one connection.

Counted as wrong: an answer or a stream whose text is not the one of the request alone, an error in a stream
that began with 200, a refusal that is not 503 or 429 with Retry-After, another status than 400 or 413 for a
bad request, and requests that run or wait once all clients have gone. The status of the program is 1 if there
is one.
"""

import argparse
import asyncio
import collections
import json
import pathlib
import random
import statistics
import sys
import time
from urllib.parse import urlsplit

WORDS = """river stone lamp green seven carry under letter morning bridge quiet paper follow window
number""".split()
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "count": {"type": "integer", "maximum": 99}},
    "required": ["name", "count"],
    "additionalProperties": False,
}
# Members that hold text, in a stream or a whole answer.
TEXTS = [b'"text', b'"content"', b'"reasoning_content"']
KINDS = ["chat", "chat", "completion", "completion", "messages", "two", "schema"]


class Wrong(Exception):
    """The server did what it may not do."""


class Refused(Exception):
    """The server has no place, and says when to come again."""


def made(rng):
    """A request: (path, body)."""
    kind = rng.choice(KINDS)
    text = " ".join(rng.choice(WORDS) for _ in range(rng.choice([3, 10, 40, 120, 300])))
    common = {
        "model": "nano",
        "max_tokens": rng.randint(8, 200),
        "temperature": rng.choice([0, 0.8]),
        "stream": kind not in ("two", "schema") and rng.random() < 0.7,
    }
    if kind != "messages":
        common["seed"] = rng.randint(0, 1 << 30)
    else:
        common["temperature"] = 0
    if kind == "completion":
        return "/v1/completions", {**common, "prompt": text}
    body = {**common, "messages": [{"role": "user", "content": text}]}
    if kind == "messages":
        return "/v1/messages", body
    if kind == "two":
        body["n"] = 2
    if kind == "schema":
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "item", "schema": SCHEMA}}
    return "/v1/chat/completions", body


def head(path, host, length, more=""):
    return (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n{more}\r\n"
    ).encode()


async def status_and_headers(reader):
    line = await reader.readline()
    if not line:
        raise ConnectionError("the connection ended before an answer")
    headers = {}
    while (field := (await reader.readline()).strip()):
        name, _, value = field.decode().partition(":")
        headers[name.lower()] = value.strip()
    return int(line.split()[1]), headers


async def chunks(reader, headers, slow):
    """The pieces of a body as they come."""
    if "content-length" in headers:
        yield await reader.readexactly(int(headers["content-length"]))
        return
    while True:
        size = int((await reader.readline()).strip() or b"0", 16)
        piece = await reader.readexactly(size)
        await reader.readline()
        if size == 0:
            return
        yield piece
        if slow:
            await asyncio.sleep(0.05)


def text_of(path, whole):
    """What of a whole answer has to be the same."""
    if path == "/v1/messages":
        return json.dumps([[part.get("thinking"), part.get("text")] for part in whole["content"]])
    said = []
    for choice in whole["choices"]:
        message = choice.get("message", {})
        said.append([message.get("reasoning_content"), message.get("content"), choice.get("text")])
    return json.dumps(said)


def text_of_stream(path, events):
    """The same of a stream's events."""
    if path == "/v1/messages":
        parts = {}
        for event in events:
            if event["type"] == "content_block_start":
                parts[event["index"]] = [None, None]
                if event["content_block"]["type"] == "text":
                    parts[event["index"]][1] = ""
                else:
                    parts[event["index"]][0] = ""
            if event["type"] == "content_block_delta":
                delta, part = event["delta"], parts[event["index"]]
                if delta["type"] == "thinking_delta":
                    part[0] += delta["thinking"]
                if delta["type"] == "text_delta":
                    part[1] += delta["text"]
        return json.dumps([parts[index] for index in sorted(parts)])
    said = collections.defaultdict(lambda: [None, None, None])
    for event in events:
        for choice in event.get("choices", []):
            delta, part = choice.get("delta", {}), said[choice["index"]]
            fields = (delta.get("reasoning_content"), delta.get("content"), choice.get("text"))
            for place, value in enumerate(fields):
                if value is not None:
                    part[place] = (part[place] or "") + value
    return json.dumps([said[index] for index in sorted(said)])


class Load:
    def __init__(self, url, seed):
        self.host, self.port = urlsplit(url).hostname, urlsplit(url).port
        self.rng = random.Random(seed)
        self.cases = [made(self.rng) for _ in range(40)]
        self.alone = []
        self.count = collections.Counter()
        self.first, self.whole, self.wrong = [], [], []
        self.tokens = 0

    async def connected(self):
        return await asyncio.open_connection(self.host, self.port, limit=1 << 24)

    async def ask(self, case, slow=False, drop=None, timed=False):
        """The text of one request."""
        path, body = case
        data = json.dumps(body).encode()
        reader, writer = await self.connected()
        try:
            began = time.monotonic()
            writer.write(head(path, self.host, len(data)) + data)
            await writer.drain()
            status, headers = await status_and_headers(reader)
            if status in (429, 503):
                async for _ in chunks(reader, headers, False):
                    pass
                if "retry-after" not in headers:
                    raise Wrong(f"{path}: {status} without Retry-After")
                raise Refused
            pieces, first = b"", None
            async for piece in chunks(reader, headers, slow):
                pieces += piece
                if first is None and any(name in pieces for name in TEXTS):
                    first = time.monotonic() - began
                if drop is not None and len(pieces) > drop:
                    return None
            if status != 200:
                raise Wrong(f"{path}: {status}: {pieces[:200]!r}")
            if timed:
                self.whole.append(time.monotonic() - began)
                self.first.append(first if first is not None else self.whole[-1])
            if not body["stream"]:
                whole = json.loads(pieces)
                usage = whole["usage"]
                self.tokens += usage.get("completion_tokens", usage.get("output_tokens", 0))
                return text_of(path, whole)
            events = []
            for line in pieces.split(b"\n"):
                if line.startswith(b"data: ") and line != b"data: [DONE]":
                    events.append(json.loads(line[6:]))
            if any("error" in event for event in events):
                raise Wrong(f"{path}: an error in a stream: {pieces[-300:]!r}")
            self.tokens += len(events)
            return text_of_stream(path, events)
        finally:
            writer.close()

    async def bad(self, rng):
        """A request that is to be refused, or never to be answered."""
        kind = rng.randrange(5)
        reader, writer = await self.connected()
        try:
            if kind == 3:
                writer.write(head("/v1/completions", self.host, 4000) + b'{"prompt": "half')
                await writer.drain()
                await asyncio.sleep(rng.random() * 3)
                return
            if kind == 4:
                body = {"model": "nano", "prompt": "One two", "max_tokens": 4, "temperature": 0}
                data = json.dumps(body).encode()
                writer.write((head("/v1/completions", self.host, len(data)) + data) * 3)
                await writer.drain()
                said = set()
                for _ in range(3):
                    status, headers = await status_and_headers(reader)
                    body = b"".join([piece async for piece in chunks(reader, headers, False)])
                    if status == 200:
                        said.add(json.loads(body)["choices"][0]["text"])
                    elif status not in (429, 503) or "retry-after" not in headers:
                        raise Wrong(f"three at once: {status}")
                if len(said) > 1:
                    raise Wrong(f"three at once, three texts: {said}")
                return
            announced, data = [
                (None, b"{no json"),
                (None, json.dumps({"model": "nano", "prompt": "x", "max_tokens": -4}).encode()),
                (1 << 40, b"{}"),
            ][kind]
            writer.write(head("/v1/completions", self.host, announced or len(data)) + data)
            await writer.drain()
            status, headers = await status_and_headers(reader)
            if status not in (400, 413) and not (status in (429, 503) and "retry-after" in headers):
                raise Wrong(f"a bad request got {status}")
        finally:
            writer.close()

    async def client(self, number, until):
        rng = random.Random(number)
        while time.monotonic() < until:
            draw, index = rng.random(), rng.randrange(len(self.cases))
            try:
                if draw < 0.015:
                    self.count["bad"] += 1
                    await self.bad(rng)
                elif draw < 0.095:
                    self.count["dropped"] += 1
                    await self.ask(self.cases[index], drop=rng.randrange(1, 3000))
                else:
                    text = await self.ask(self.cases[index], slow=draw < 0.125, timed=draw >= 0.125)
                    self.count["answers"] += 1
                    if text != self.alone[index]:
                        raise Wrong(f"another text: {self.cases[index]}: {text} is not {self.alone[index]}")
            except Refused:
                self.count["refused"] += 1
                await asyncio.sleep(0.2 + rng.random() * 0.8)
            except (Wrong, ValueError, KeyError, OSError, EOFError) as error:
                self.count["wrong"] += 1
                self.wrong.append(f"{type(error).__name__}: {error}")

    async def busy(self):
        """Requests that run or wait, by /metrics."""
        reader, writer = await self.connected()
        writer.write(f"GET /metrics HTTP/1.1\r\nHost: {self.host}\r\nConnection: close\r\n\r\n".encode())
        text = (await reader.read()).decode()
        writer.close()
        names = ("vllm:num_requests_running", "vllm:num_requests_waiting")
        found = [line for line in text.splitlines() if line.startswith(names)]
        if not found:
            raise Wrong("/metrics has neither vllm:num_requests_running nor vllm:num_requests_waiting")
        return sum(float(line.split()[-1]) for line in found)


def held(pid):
    """Peak memory in MiB and open descriptors of a process."""
    if pid is None:
        return None
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) // 1024, len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


async def run(options):
    load = Load(options.url, options.seed)
    for case in load.cases:
        load.alone.append(await load.ask(case))
    load.tokens = 0
    print(f"alone: {len(load.cases)} requests; memory and descriptors: {held(options.pid)}", flush=True)
    began = time.monotonic()
    ends = began + options.seconds
    clients = asyncio.gather(*(load.client(number, ends) for number in range(options.clients)))
    await asyncio.sleep(options.seconds / 2)
    print(f"half way: {dict(load.count)}; memory and descriptors: {held(options.pid)}", flush=True)
    await clients
    took = time.monotonic() - began
    for _ in range(100):
        if (busy := await load.busy()) == 0:
            break
        await asyncio.sleep(0.1)
    else:
        load.count["wrong"] += 1
        load.wrong.append(f"{busy} requests run or wait ten seconds after the last client went")

    def percentiles(values):
        cuts = statistics.quantiles(values, n=100)
        return [round(1000 * cuts[place]) for place in (49, 94, 98)]

    print(f"{options.clients} clients, {took:.0f} s: {dict(load.count)}")
    print(f"answers/s {load.count['answers'] / took:.1f}, tokens and events/s {load.tokens / took:.0f}")
    print(f"first text, ms, 50/95/99 of 100: {percentiles(load.first)}; whole: {percentiles(load.whole)}")
    print(f"memory and descriptors: {held(options.pid)}")
    for what, times in collections.Counter(text[:500] for text in load.wrong).most_common(20):
        print(f"WRONG, {times} times: {what}")
    return 1 if load.wrong else 0


def main():
    text, more = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(
        description=text, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url", help="address of the server, such as http://127.0.0.1:8080")
    parser.add_argument("--clients", type=int, default=256, help="clients (256)")
    parser.add_argument("--seconds", type=float, default=300, help="how long they ask (300)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the requests (1)")
    parser.add_argument("--pid", type=int, help="the server's process, whose memory is shown")
    sys.exit(asyncio.run(run(parser.parse_args())))


if __name__ == "__main__":
    main()
