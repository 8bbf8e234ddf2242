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
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs")
    parser.add_argument("plan", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--nice", type=int, default=19)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--group", action="store_true")
    args = parser.parse_args()
    programs = args.programs.split(",")
    cpu = max(os.sched_getaffinity(0))
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
