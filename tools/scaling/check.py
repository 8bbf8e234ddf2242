"""Checks the recipes of docs/user/scaling.md: two servers behind a gateway, while one dies and one drains.

    check.py --kernmill target/release/kernmill --gateway smg
    check.py --kernmill target/release/kernmill --gateway all --json scaling.json --markdown scaling.md
    check.py --kernmill target/release/kernmill --gateway manifests
    check.py --kernmill target/release/kernmill --gateway sessions

Each gateway gets at least 500 requests that are not streamed, and some that are, over 20 adapters by Zipf's law.
Meanwhile one server is killed with SIGKILL and started again, and one drains and is started again. Checked is:
every request that is not streamed gets its text at the first try of the client; a stream that broke goes on with
the same text when it is asked for again; a stream of a server that drains ends whole; each text is that of a server
alone; an adapter's requests go to one server, except while one is away; a session that one server saved comes back
at the other. A gateway that starts the servers itself replaces them, too. Measured is the time to the first text,
through the gateway and without it.

The part `sessions` has no gateway: a server that keeps sessions drains while it answers, and another one goes on.

What is fetched and made lies in a folder of its own, which is removed at the end unless --folder names it.
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import tempfile
import time

import fleet
import handover
import load
import manifests
from fleet import Wrong
from gateways import GATEWAYS, Direct

# Least share of requests at the usual server of their adapter, while both are there.
AFFINITY = 0.9
# Least share of requests that a server gets: else all adapters at one server would be affinity.
SHARE = 0.1


def arguments():
    text, more = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(
        description=text, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernmill", type=pathlib.Path, required=True, help="the program")
    choices = [*GATEWAYS, "sessions", "manifests", "all"]
    parser.add_argument("--gateway", choices=choices, default="all", help="what to check; all unless given")
    parser.add_argument("--requests", type=int, default=500, help="requests that are not streamed (500)")
    parser.add_argument("--adapters", type=int, default=20, help="adapters (20)")
    parser.add_argument("--clients", type=int, default=8, help="threads that send (8)")
    parser.add_argument("--rate", type=float, default=40, help="most requests in a second (40)")
    parser.add_argument("--first-tokens", type=int, default=40, help="streams of each way for its first text (40)")
    parser.add_argument("--seed", type=int, default=1, help="seed of adapters and requests (1)")
    parser.add_argument("--folder", type=pathlib.Path, help="folder that is kept, with what was fetched for it")
    parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
    parser.add_argument("--markdown", type=pathlib.Path, help="file for the figures as a table")
    options = parser.parse_args()
    if not os.access(options.kernmill, os.X_OK):
        parser.error(f"--kernmill {options.kernmill}: there is no such program")
    for name, least in [("requests", 50), ("adapters", handover.SAVED + 1), ("clients", 1), ("first_tokens", 2)]:
        if getattr(options, name) < least:
            parser.error(f"--{name.replace('_', '-')} {getattr(options, name)}: expected at least {least}")
    if options.rate <= 0:
        parser.error(f"--rate {options.rate}: expected more than 0")
    return options


def judge(figures, outcomes, extra, texts):
    """Everything that is wrong with the answers."""
    wrong = []
    plain = [one for one in outcomes if not one.stream]
    lost = [one for one in plain if one.status != 200 or not one.text]
    for one in lost[:5]:
        wrong.append(f"lost: {one.case.adapter}: status {one.status} {one.error}")
    streams = [one for one in outcomes if one.stream] + extra
    broken = [one for one in streams if not one.whole]
    for one in broken[:5]:
        wrong.append(f"a stream never came whole: {one.case.adapter}: status {one.status} {one.error}")
    answered = [one for one in plain if one not in lost] + [one for one in streams if one.whole]
    other = [one for one in answered if one.text != texts[one.case]]
    for one in other[:5]:
        wrong.append(f"another text: {one.case}: {one.text!r}, alone {texts[one.case]!r}")
    figures |= {
        "requests": len(plain),
        "lost": len(lost),
        "streams": len(streams),
        "streams_asked_again": sum(one.tries > 1 for one in streams),
        "streams_lost": len(broken),
        "other_texts": len(other),
    }
    if figures["affinity"] < AFFINITY:
        wrong.append(f"affinity {figures['affinity']:.3f}, expected at least {AFFINITY}")
    if figures.get("broken_in_update"):
        wrong.append(f"{figures['broken_in_update']} streams broke while the servers were replaced, expected 0")
    if figures["least_share"] < SHARE:
        wrong.append(f"a server got {figures['least_share']:.3f} of the requests, expected at least {SHARE}")
    return wrong


def check(kind, options, folder, adapters):
    """Figures of a gateway, and what is wrong with it."""
    gateway = kind(folder)
    say(gateway.name, "fetching")
    gateway.prepare()
    say(gateway.name, "starting")
    try:
        servers = gateway.servers(options.kernmill.resolve(), adapters)
        by_adapter = load.cases(adapters, options.seed)
        all_cases = [case for some in by_adapter.values() for case in some]
        texts = load.expected(servers[0], all_cases)
        if load.expected(servers[1], all_cases) != texts:
            raise Wrong("the two servers give different texts")
        same = load.expected(servers[0], [load.Case(name, load.PROMPTS[0], 0, 32) for name in adapters])
        if len(set(same.values())) <= len(adapters) // 2:
            raise Wrong(f"{len(adapters)} adapters give {len(set(same.values()))} texts: they would prove nothing")
        figures = {"session_tokens_cached": fleet.check_sessions(servers, next(iter(adapters)))}
        gateway.start(servers)
        figures["first_text"] = load.first_tokens(gateway, Direct(servers[0]), options.first_tokens)
        say(gateway.name, "sending requests")
        begin = time.monotonic()
        outcomes, extra, windows, events = load.run(gateway, servers, by_adapter, texts, options)
        figures |= {name: round(value, 2) for name, value in events.items()}
        figures["seconds"] = round(time.monotonic() - begin, 1)
        names = [one.name for one in servers]
        values = load.affinity(outcomes, windows, names)
        figures |= dict(zip(["affinity", "affinity_by_chance", "least_share"], (round(v, 3) for v in values)))
        retried = gateway.retried()
        figures["retried_by_gateway"] = sum(one.retries for one in outcomes) if retried is None else retried
        if gateway.sessions:
            values = fleet.check_sessions_through(gateway, servers, next(iter(adapters)))
            figures |= dict(zip(["routed_tokens_cached", "routed_elsewhere"], values))
        if gateway.updates:
            say(gateway.name, "replacing servers")
            more = load.run_update(gateway, servers, by_adapter, options)
            figures["requests_in_update"] = len(more)
            figures["longest_in_update_s"] = round(max(one.done - one.sent for one in more), 1)
            figures["broken_in_update"] = sum(one.tries > 1 for one in more)
            outcomes = outcomes + more
        return figures, judge(figures, outcomes, extra, texts)
    finally:
        gateway.stop()


def say(name, what):
    print(f"{name}: {what}", file=sys.stderr, flush=True)


ROWS = [
    ("requests, not streamed", "requests"),
    ("lost", "lost"),
    ("sent again by the gateway", "retried_by_gateway"),
    ("streams", "streams"),
    ("asked for again, since they broke", "streams_asked_again"),
    ("streams that never came whole", "streams_lost"),
    ("texts that differ from a server's alone", "other_texts"),
    ("affinity", "affinity"),
    ("affinity, by chance", "affinity_by_chance"),
    ("least share of a server", "least_share"),
    ("seconds until a killed server is used again", "taken_up_after_kill_s"),
    ("seconds until a drained server is used again", "taken_up_after_drain_s"),
    ("requests and streams while it replaced its servers", "requests_in_update"),
    ("streams of those that broke", "broken_in_update"),
    ("the slowest of those, seconds", "longest_in_update_s"),
    ("tokens of a session that came back elsewhere", "session_tokens_cached"),
    ("tokens of one that came back through the gateway", "routed_tokens_cached"),
]


def markdown(report):
    """The figures as a table."""
    names = list(report)
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for title, key in ROWS:
        cells = ("" if report[name].get(key) is None else str(report[name][key]) for name in names)
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    for way in ("gateway", "direct"):
        for key, title in (("median_ms", "median"), ("p95_ms", "95 of 100")):
            cells = (str(report[name]["first_text"][way][key]) for name in names)
            title = f"first text {'through the gateway' if way == 'gateway' else 'without it'}, {title}, ms"
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    options = arguments()
    fleet.remove_environment()
    # What was started is ended in any case.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # A shell that starts this in the background has it ignore interrupts, which Ray would inherit: its
    # application ends at an interrupt only.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kept = options.folder.resolve() if options.folder else None
    report, wrong = {}, {}
    with tempfile.TemporaryDirectory(prefix="kernmill-scaling-") as made:
        folder = kept or pathlib.Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        if options.gateway in ("manifests", "all"):
            say("manifests", "checking")
            wrong["manifests"] = manifests.check(folder, options.kernmill.resolve())
        kinds = [kind for name, kind in GATEWAYS.items() if options.gateway in (name, "all")]
        # Adapters and logs of a run are its own.
        with tempfile.TemporaryDirectory(prefix="run-", dir=folder) as own:
            own = pathlib.Path(own)
            with_sessions = options.gateway in ("sessions", "all")
            adapters = {}
            if kinds or with_sessions:
                adapters = fleet.make_adapters(options.kernmill.resolve(), own, options.adapters)
            if with_sessions:
                say("sessions", "handing over")
                place = own / "sessions"
                place.mkdir()
                try:
                    handed, wrong["sessions"] = handover.check(options.kernmill.resolve(), place, adapters), []
                    say("sessions", ", ".join(f"{name} {value}" for name, value in handed.items()))
                except Wrong as error:
                    handed, wrong["sessions"] = None, [str(error)]
            for kind in kinds:
                place = own / kind.name
                place.mkdir()
                (folder / "env").mkdir(exist_ok=True)
                (place / "env").symlink_to(folder / "env")
                try:
                    report[kind.name], wrong[kind.name] = check(kind, options, place, adapters)
                except Wrong as error:
                    wrong[kind.name] = [str(error)]
    table = markdown(report) if report else ""
    print(table, end="")
    if options.json:
        figures = report | ({"sessions": handed} if with_sessions else {})
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if options.markdown:
        options.markdown.write_text(table)
    for name, found in wrong.items():
        for one in found:
            print(f"{name}: {one}", file=sys.stderr)
        say(name, "failed" if found else "passed")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
