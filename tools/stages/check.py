#!/usr/bin/env python3
"""Checks a model in two stages: two processes in two network namespaces, with a delay between them.

    tools/stages/check.py KERNMILL [MODEL]...

MODEL is a plan, a GGUF file or a checkpoint; without one it is the embedded nano model. For each model:

- bits: texts and logarithms of probabilities are those of one process, to the last digit
- speed: two texts at once against one, in pairs that alternate; each process has one thread on a CPU of its own
- killed: a second stage that is killed gives 503 at once, and is joined again

The delay comes from netem where the kernel has it, or else from a relay in the first namespace. Needs root and
iproute2. The status is 1 if something is wrong, 3 if the machine cannot run it, else 0.
"""

import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

SPACES = ["kernmill-one", "kernmill-two"]
ADDRESSES = ["10.213.7.1", "10.213.7.2"]
STAGE_PORT, RELAY_PORT, STAGED_PORT, WHOLE_PORT = 7310, 7311, 7312, 7313
CLONE_NEWNET = 0x40000000
KEY = "the secret of this check alone"
NAMED = ["--name", "staged", "--context", "2048", "--max-wait", "3600"]
REQUESTS = 24
# Seconds until a server must be ready, or be so no more.
PATIENCE = 180
WORDS = "slice vector string loop trait the a of is memory borrow owner with value moves type".split()


class Wrong(Exception):
    """A sentence about what does not hold."""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("kernmill", type=pathlib.Path, help="the program")
    parser.add_argument("models", nargs="*", help="models besides nano, which comes first")
    parser.add_argument("--delay", type=float, default=1.0, help="milliseconds in each direction")
    parser.add_argument("--pairs", type=int, default=7, help="pairs of runs for the speed")
    parser.add_argument("--tokens", type=int, default=200, help="tokens of a text for the speed")
    parser.add_argument("--least", type=float, default=1.6, help="ratio that two texts at once must reach")
    return parser.parse_args()


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Wrong(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def inside(space, command):
    return ["ip", "netns", "exec", SPACES[space], *command]


@contextlib.contextmanager
def spaces(delay):
    """Two namespaces with a link between them; whether the kernel delays it."""
    clear()
    try:
        for space in SPACES:
            run("ip", "netns", "add", space)
        run("ip", "link", "add", "km1", "netns", SPACES[0], "type", "veth", "peer", "km2", "netns", SPACES[1])
        has_netem = True
        for number, (space, address) in enumerate(zip(SPACES, ADDRESSES), 1):
            run("ip", "-n", space, "addr", "add", f"{address}/24", "dev", f"km{number}")
            run("ip", "-n", space, "link", "set", f"km{number}", "up")
            run("ip", "-n", space, "link", "set", "lo", "up")
            netem = ["tc", "-n", space, "qdisc", "add", "dev", f"km{number}", "root", "netem", "delay", f"{delay}ms"]
            has_netem &= subprocess.run(netem, capture_output=True).returncode == 0
        yield has_netem
    finally:
        clear()


def clear():
    for space in SPACES:
        subprocess.run(["ip", "netns", "del", space], capture_output=True)


def relay(delay):
    """Passes bytes on between the first namespace and the second stage, each a while later."""
    listener = socket.create_server(("127.0.0.1", RELAY_PORT))
    while True:
        near, _ = listener.accept()
        try:
            far = socket.create_connection((ADDRESSES[1], STAGE_PORT), timeout=3)
        except OSError:
            near.close()
            continue
        far.settimeout(None)
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, sink in ((near, far), (far, near)):
            late = queue.SimpleQueue()
            threading.Thread(target=take, args=(source, late, delay), daemon=True).start()
            threading.Thread(target=give, args=(late, sink), daemon=True).start()


def take(source, late, delay):
    data = b"?"
    while data:
        try:
            data = source.recv(1 << 20)
        except OSError:
            data = b""
        late.put((time.monotonic() + delay / 1000, data))


def give(late, sink):
    while True:
        due, data = late.get()
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            if not data:
                sink.shutdown(socket.SHUT_RDWR)
                return
            sink.sendall(data)
        except OSError:
            return


class Fleet:
    """The processes of a model: two stages, and one process that has all of it."""

    def __init__(self, args, model, folder, has_netem):
        self.args, self.model, self.folder, self.has_netem = args, model, folder, has_netem
        self.cpus = sorted(os.sched_getaffinity(0))[:2]
        self.running = {}
        (folder / "key").write_text(KEY)

    def serve(self, name, space, cpu, *options):
        model = [self.model] if self.model else []
        command = [self.args.kernmill, "serve", *model, "--threads", "1", "--cpus", str(cpu)]
        log = open(self.folder / f"{name}.log", "a")
        self.running[name] = subprocess.Popen(inside(space, [*map(str, command), *options]), stderr=log)

    def second(self):
        options = ["--stage", "2/2", "--host", ADDRESSES[1], "--port", str(STAGE_PORT)]
        self.serve("second", 1, self.cpus[-1], *options, "--stage-key", str(self.folder / "key"))

    def first(self):
        peer = f"{ADDRESSES[1]}:{STAGE_PORT}" if self.has_netem else f"127.0.0.1:{RELAY_PORT}"
        options = ["--stage", "1/2", "--peer", peer, "--port", str(STAGED_PORT), *NAMED]
        self.serve("first", 0, self.cpus[0], *options, "--stage-key", str(self.folder / "key"))

    def end(self, name, how=signal.SIGTERM):
        child = self.running.pop(name)
        child.send_signal(how)
        child.wait(30)

    def close(self):
        for name in list(self.running):
            self.end(name, signal.SIGKILL)


def ask(port, path, body=None):
    """The status and the answer of a request; it runs in the first namespace, as this whole process does."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
    except OSError as error:
        return 0, str(error)


def wait(port, status=200):
    end = time.monotonic() + PATIENCE
    while ask(port, "/ready")[0] != status:
        if time.monotonic() > end:
            raise Wrong(f"/ready at port {port} is not {status} after {PATIENCE} s: {ask(port, '/ready')}")
        time.sleep(0.05)


def together(port, bodies):
    """What all requests get when they are sent at once."""
    answers = [None] * len(bodies)

    def one(at):
        answers[at] = ask(port, "/v1/completions", bodies[at])

    threads = [threading.Thread(target=one, args=(at,)) for at in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def bodies():
    for n in range(REQUESTS):
        prompt = " ".join(WORDS[(n * 7 + k * (n + 3)) % len(WORDS)] for k in range(2 + n * 5))
        heat = 0.8 if n % 2 else 0
        yield {"model": "staged", "prompt": prompt, "max_tokens": 4 + n, "temperature": heat, "seed": n, "logprobs": 3}


def choices(answers):
    bad = [answer for answer in answers if answer[0] != 200]
    if bad:
        raise Wrong(f"a request failed: {bad[0]}")
    return [answer[1]["choices"] for answer in answers]


def check_bits(fleet):
    fleet.serve("whole", 0, fleet.cpus[-1], "--port", str(WHOLE_PORT), *NAMED)
    wait(WHOLE_PORT)
    asked = list(bodies())
    expected, found = choices(together(WHOLE_PORT, asked)), choices(together(STAGED_PORT, asked))
    fleet.end("whole")
    differ = [n for n, (a, b) in enumerate(zip(expected, found)) if a != b]
    if differ:
        raise Wrong(f"requests {differ} of {len(asked)} have other answers: {expected[differ[0]]}, {found[differ[0]]}")
    return f"{len(asked)} answers at once are those of one process, with 3 logarithms at every token"


def rate(texts, tokens, turn):
    """Tokens per second of so many texts at once."""
    asked = [{"model": "staged", "prompt": f"{WORDS[(turn + n) % len(WORDS)]} {turn} {n} is", "max_tokens": tokens,
              "temperature": 0, "ignore_eos": True, "kernmill": {"drafts": False}} for n in range(texts)]
    begin = time.monotonic()
    answers = together(STAGED_PORT, asked)
    made = sum(answer[1]["usage"]["completion_tokens"] for answer in answers if answer[0] == 200)
    if made < texts * tokens * 0.9:
        raise Wrong(f"{texts} texts have {made} tokens, expected {texts * tokens}: {answers}")
    return made / (time.monotonic() - begin)


def check_speed(fleet):
    rate(2, 20, 0)
    pairs = []
    for turn in range(1, fleet.args.pairs + 1):
        one, two = rate(1, fleet.args.tokens, 2 * turn), rate(2, fleet.args.tokens, 2 * turn + 1)
        pairs.append((one, two))
    ratios = sorted(two / one for one, two in pairs)
    one, two = (statistics.median(pair[at] for pair in pairs) for at in (0, 1))
    line = (f"one text {one:.1f} tokens/s, two {two:.1f}; ratio {statistics.median(ratios):.2f} "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f}, {len(pairs)} pairs)")
    if statistics.median(ratios) < fleet.args.least:
        raise Wrong(f"{line}: expected {fleet.args.least}")
    return line


def check_killed(fleet):
    body = {"model": "staged", "prompt": "A slice is", "max_tokens": 12, "temperature": 0}
    status, before = ask(STAGED_PORT, "/v1/completions", body)
    long = [body | {"max_tokens": 1500, "ignore_eos": True, "prompt": f"{n} is"} for n in range(3)]
    answers = []
    thread = threading.Thread(target=lambda: answers.extend(together(STAGED_PORT, long)))
    thread.start()
    end = time.monotonic() + 60
    while ask(STAGED_PORT, "/v1/loads")[1]["running"]["interactive"] == 0 and time.monotonic() < end:
        time.sleep(0.01)
    begin = time.monotonic()
    fleet.end("second", signal.SIGKILL)
    thread.join()
    took = time.monotonic() - begin
    lost = [answer for answer in answers if answer[0] == 503 and answer[1]["error"]["code"] == "stage_lost"]
    if len(lost) != len(answers):
        raise Wrong(f"answers of a killed stage, expected 503 and stage_lost: {answers}")
    if ask(STAGED_PORT, "/health")[0] != 200:
        raise Wrong("/health is not 200 while the second stage is away")
    wait(STAGED_PORT, 503)
    fleet.second()
    begin = time.monotonic()
    wait(STAGED_PORT)
    joined = time.monotonic() - begin
    status, after = ask(STAGED_PORT, "/v1/completions", body)
    if status != 200 or after["choices"] != before["choices"]:
        raise Wrong(f"after the stage was joined again: {status}, {after}, expected {before}")
    message = lost[0][1]["error"]["message"]
    return f"{len(lost)} requests got 503 after {took:.2f} s ({message}); joined {joined:.1f} s after its start"


def check(args, model, has_netem):
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(args, model, pathlib.Path(folder), has_netem)
        name = pathlib.Path(model).name if model else "nano"
        try:
            fleet.second()
            fleet.first()
            wait(STAGED_PORT)
            print(f"{name}: {(fleet.folder / 'second.log').read_text().strip()}", flush=True)
            for part in (check_bits, check_speed, check_killed):
                try:
                    print(f"{name}: {part.__name__.removeprefix('check_')}: {part(fleet)}", flush=True)
                except Wrong as wrong:
                    failed = True
                    print(f"{name}: {part.__name__.removeprefix('check_')}: WRONG: {wrong}", flush=True)
        except Wrong as wrong:
            failed = True
            logs = "\n".join((fleet.folder / f"{one}.log").read_text() for one in ("first", "second"))
            print(f"{name}: WRONG: {wrong}\n{logs}", flush=True)
        finally:
            fleet.close()
    return failed


def enter(space):
    """Moves this process into a namespace, so that it reaches the servers there."""
    with open(f"/run/netns/{space}") as handle:
        if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), CLONE_NEWNET) != 0:
            raise Wrong(f"setns: {os.strerror(ctypes.get_errno())}")


def main():
    args = arguments()
    args.kernmill = args.kernmill.absolute()
    models = [None] + [str(pathlib.Path(model).absolute()) for model in args.models]
    if os.geteuid() != 0 or not shutil.which("ip") or len(os.sched_getaffinity(0)) < 2:
        print("NOT RUN: it takes root, iproute2 and two CPUs")
        sys.exit(3)
    with spaces(args.delay) as has_netem:
        print(f"{args.delay} ms each way, by {'netem' if has_netem else 'a relay'}", flush=True)
        # Commands of `ip` find the namespaces from within one, too.
        enter(SPACES[0])
        if not has_netem:
            threading.Thread(target=relay, args=(args.delay,), daemon=True).start()
        wrong = [check(args, model, has_netem) for model in models]
    sys.exit(any(wrong))


if __name__ == "__main__":
    main()
