"""The check of what a server hands over when it drains: sessions to another one, its cache to its successor."""

import json
import threading

import fleet
import load
from fleet import KEYS, Server, Wrong, ask
from gateways import Direct

# Adapters whose prompts are saved. Each has a stream and another request, and all run at once.
SAVED = 4
# Times that a drain without grace may find nothing that runs.
CUTS = 20


def prompt_of(adapter):
    return f"The shepherd called {adapter} counts the sheep by night. " + "One jumps, and the next one waits. " * 12


def request_of(adapter, tokens):
    return load.Case(adapter, prompt_of(adapter), 5, tokens).body()


def answer(server, request):
    """Text, cached tokens, tokens and reason of the end."""
    code, _, text = ask(server.port, "POST", "/v1/completions", request)
    if code != 200:
        raise Wrong(f"server {server.name}: {code} {text}")
    whole = json.loads(text)
    choice, usage = whole["choices"][0], whole["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return choice["text"], cached, usage["completion_tokens"], choice["finish_reason"]


def session(server, path, body=None, key="client"):
    headers = {"Authorization": f"Bearer {KEYS[key]}"}
    code, _, text = ask(server.port, "POST", f"/v1/sessions{path}", body, headers)
    return code, json.loads(text)


def drain_while_running(server, adapters):
    """Ends a server while it makes long texts. What came of them, and how many streams still ran then."""
    outcomes, begun, ended = [], set(), []
    lock, all_run = threading.Lock(), threading.Event()

    def piece(outcome):
        with lock:
            begun.add(outcome.case.adapter)
            if len(begun) == len(adapters):
                all_run.set()

    def work(adapter, stream):
        case = load.Case(adapter, prompt_of(adapter), 5, load.LONG)
        outcome = load.send(Direct(server), case, stream, piece if stream else None)
        with lock:
            outcomes.append(outcome)
            ended.extend([adapter] if stream else [])

    # Others than streams come first: when all streams have text, they run, too.
    threads = [threading.Thread(target=work, args=(one, stream)) for stream in (False, True) for one in adapters]
    for thread in threads:
        thread.start()
    if not all_run.wait(load.PATIENCE):
        raise Wrong(f"streams of {sorted(set(adapters) - begun)} did not begin")
    with lock:
        running = len(adapters) - len(ended)
    server.drain()
    for thread in threads:
        thread.join()
    server.drained()
    return outcomes, running


def check_drain(first, second, adapters):
    """Sessions of a server that drains while it answers come back at another one, and texts go on there."""
    *saved, control = adapters
    for adapter in adapters:
        body = {"name": adapter, "model": adapter, "prompt": prompt_of(adapter)}
        code, said = session(first, "", body)
        if code != 200:
            raise Wrong(f"saving a session at {first.name}: {code} {said}")
    short = {adapter: answer(first, request_of(adapter, 24))[0] for adapter in adapters}
    outcomes, running = drain_while_running(first, saved)
    if running == 0:
        raise Wrong("all streams had ended before the drain: it proves nothing")
    long = {}
    for one in outcomes:
        if one.status != 200 or one.error or (one.stream and not one.whole):
            raise Wrong(f"a text that ran in the drain was lost: {one.case.adapter}: {one.status} {one.error}")
        if long.setdefault(one.case.adapter, one.text) != one.text:
            raise Wrong(f"{one.case.adapter}: the stream and the other answer differ")
    cached_tokens = 0
    for adapter in saved:
        if session(second, f"/{adapter}/restore", key="gateway")[0] != 404:
            raise Wrong("a session came back for another key")
        code, said = session(second, f"/{adapter}/restore")
        if code != 200:
            raise Wrong(f"restoring a session at {second.name}: {code} {said}")
        text, cached, *_ = answer(second, request_of(adapter, 24))
        if cached == 0 or cached != said["restored_tokens"]:
            raise Wrong(f"{said['restored_tokens']} tokens of {adapter} came back, and {cached} were used")
        if text != short[adapter] or answer(second, request_of(adapter, load.LONG))[0] != long[adapter]:
            raise Wrong(f"{adapter}: the text after a session that was handed over is another one")
        cached_tokens += cached
    # Nothing else brings prompts there.
    if answer(second, request_of(control, 24))[1] != 0:
        raise Wrong("a prompt whose session did not come back was cached all the same")
    return {
        "sessions": len(saved),
        "session_tokens": cached_tokens,
        "streams_running_at_drain": running,
        "texts_asked_before_drain": len(outcomes),
    }


def check_cut(make, second, adapter):
    """A text that a drain cuts short is what another server's text begins with."""
    request = request_of(adapter, load.LONG)
    refused = None
    for _ in range(CUTS):
        server = make(["--grace", "0"])
        server.start()
        try:
            found, begun = [], threading.Event()

            def answered():
                nonlocal refused
                try:
                    found.append(answer(server, request))
                except Wrong as wrong:
                    # A request that has not begun gets 503.
                    refused = wrong

            thread = threading.Thread(target=answered)
            stream = load.Case(adapter, prompt_of(adapter), 6, load.LONG)
            other = threading.Thread(target=lambda: load.send(Direct(server), stream, True, lambda _: begun.set()))
            thread.start()
            other.start()
            begun.wait(load.PATIENCE)
            server.drain()
            thread.join()
            other.join()
            server.drained()
        finally:
            server.stop()
        # A text that was quick had ended.
        if found and found[0][2] < load.LONG:
            break
    else:
        raise Wrong(f"no text was cut in {CUTS} drains without grace; the last refusal: {refused}")
    text, _, tokens, reason = found[0]
    if reason != "length":
        raise Wrong(f"a text that the drain cut has finish_reason {reason}, expected length")
    whole, cached, *_ = answer(second, request)
    if not whole.startswith(text) or cached == 0:
        raise Wrong("a text that was cut does not go on at the other server")
    return {"cut_at_token": tokens}


def check_successor(successor, adapter, text):
    """What a server computed is there for the next one with its directory, without a session."""
    successor.start()
    found, cached, *_ = answer(successor, request_of(adapter, 24))
    if cached == 0 or found != text:
        raise Wrong(f"a successor with the same --kv-disk used {cached} tokens, and its text is {found!r}")
    return {"disk_tokens": cached}


def check(kernmill, folder, adapters):
    """Figures of a drain that hands over."""
    names = list(adapters)[: SAVED + 1]
    command = fleet.serve_command(kernmill, {name: adapters[name] for name in names}, folder)

    def make(name, more):
        return Server(name, [*command, *more], folder)

    first = make("a", ["--grace", "60", "--kv-disk", str(folder / "kv-a")])
    second = make("b", ["--kv-disk", str(folder / "kv-b")])
    successor = make("c", ["--kv-disk", str(folder / "kv-a")])
    try:
        first.start()
        second.start()
        figures = check_drain(first, second, names)
        figures |= check_cut(lambda more: make("d", more), second, names[0])
        # Its session came back nowhere.
        figures |= check_successor(successor, names[-1], answer(second, request_of(names[-1], 24))[0])
        return figures
    finally:
        for server in (first, second, successor):
            server.stop()
