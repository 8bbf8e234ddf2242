#!/usr/bin/env python3
"""Decoding beside a niced neighbour on one CPU: `benches/neighbour.py KERNMILL [PLAN] [--rounds N]`.

Runs `kernmill bench` (of the model that is built in, without a plan) in turns: with all threads undisturbed,
with one thread, and with all threads beside a loop that is niced and pinned to one of this process's CPUs.
Several programs may be given, separated by commas: they take turns, so that a change can be compared with what
was before. Prints a line of JSON for each program: medians in tokens per second, and the ratios of the rounds
in the median; on standard error, a line for each round.

Terminals are scheduling groups of their own where the system has autogroups: started from one of its own, the
neighbour would have half of the CPU whatever its niceness. Here it is a child of this script, in the same
group. With `--group` it gets a session, and so a group, of its own.

With `--turns SECONDS` the neighbour comes and goes during one text of `kernmill run`, every so many seconds:
the memory of a shared machine changes too much between two runs. Every turn beside the neighbour is set
against the turns before and after it. It is for models of some hundred tokens a second at most, since this
script looks at every token.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time

LOOP = "while True: pass"


def neighbour(cpu, niceness, own_group):
    def settle():
        os.sched_setaffinity(0, {cpu})
        os.nice(niceness)

    return subprocess.Popen([sys.executable, "-c", LOOP], preexec_fn=settle, start_new_session=own_group)


def decode(program, plan, threads, tokens):
    command = [program, "bench", *plan, "--pp", "0", "--tg", str(tokens), "--repeat", "1", "--json", "-q"]
    # What memory can do is not asked for here: a little of it is read.
    command += ["--read", "64M", "--threads", str(threads)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    results = json.loads(answer.stdout)["results"]
    return statistics.median(next(case["runs"] for case in results if case["kind"] == "decode"))


def turns(program, plan, args, cpu):
    """Ratios of tokens per second in each turn beside the neighbour to those in the turns around it."""
    command = [program, "run", *plan, "--prompt", "A slice is", "-n", str(args.tokens), "--ignore-end", "--temp", "0"]
    command += ["--no-drafts", "-q", "--threads", str(args.threads)]
    loop = neighbour(cpu, args.nice, args.group)
    loop.send_signal(signal.SIGSTOP)
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as text:
            # The prompt, and what is done once.
            for _ in range(4):
                text.stdout.read(1)
            rates, there = [], False
            start = last = time.monotonic()
            count = 0
            while text.stdout.read(4096):
                now = time.monotonic()
                if now - start > args.turns and count > 1:
                    rates.append(count / (last - start))
                    # Both count from here: this token was begun in the turn before.
                    there = not there
                    loop.send_signal(signal.SIGCONT if there else signal.SIGSTOP)
                    start, count = now, 0
                else:
                    count += 1
                last = now
    finally:
        loop.kill()
        loop.wait()
    around = [(rates[n - 1] + rates[n + 1]) / 2 for n in range(1, len(rates) - 1, 2)]
    return rates[0::2], rates[1::2][: len(around)], [beside / other for beside, other in zip(rates[1::2], around)]


def by_turns(program, plan, args, cpu):
    alone, beside, ratios = [], [], []
    for _ in range(args.rounds):
        for all_of, new in zip((alone, beside, ratios), turns(program, plan, args, cpu)):
            all_of.extend(new)
    if not ratios:
        sys.exit(f"{program}: the text ended within three turns: take more --tokens or shorter --turns")
    medians = sorted(statistics.median(random.choices(ratios, k=len(ratios))) for _ in range(2000))
    return {
        "program": program,
        "undisturbed": round(statistics.median(alone), 2),
        "disturbed": round(statistics.median(beside), 2),
        "turns": len(ratios),
        "to_undisturbed": round(statistics.median(ratios), 3),
        "of_95_percent": [round(medians[50], 3), round(medians[1949], 3)],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs")
    parser.add_argument("plan", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--nice", type=int, default=19)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--group", action="store_true")
    parser.add_argument("--turns", type=float, metavar="SECONDS")
    args = parser.parse_args()
    programs = args.programs.split(",")
    cpu = max(os.sched_getaffinity(0))
    if args.turns:
        for program in programs:
            print(json.dumps(by_turns(program, args.plan, args, cpu)))
        return
    rates = {program: {"undisturbed": [], "one_thread": [], "disturbed": []} for program in programs}
    for _ in range(args.rounds):
        for program in programs:
            own = rates[program]
            own["undisturbed"].append(decode(program, args.plan, args.threads, args.tokens))
            own["one_thread"].append(decode(program, args.plan, 1, args.tokens))
            loop = neighbour(cpu, args.nice, args.group)
            try:
                own["disturbed"].append(decode(program, args.plan, args.threads, args.tokens))
            finally:
                loop.kill()
                loop.wait()
            last = {case: round(of[-1], 2) for case, of in own.items()}
            print(json.dumps({"program": program, "round": len(own["disturbed"]), **last}), file=sys.stderr)
    for program, own in rates.items():
        median = {case: round(statistics.median(of), 2) for case, of in own.items()}

        def ratio(case):
            return round(statistics.median(a / b for a, b in zip(own["disturbed"], own[case])), 3)

        beside = {"to_undisturbed": ratio("undisturbed"), "to_one_thread": ratio("one_thread")}
        print(json.dumps({"program": program, **median, **beside}))


if __name__ == "__main__":
    main()
