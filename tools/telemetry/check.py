#!/usr/bin/env python3
"""The dashboard and the rules, against the figures of `kernmill serve` with nano.

    python3 tools/telemetry/check.py [KERNMILL] [--promtool PROMTOOL]

KERNMILL is the program, target/debug/kernmill where none is given. The packages of requirements.txt are needed.

Exit status: 0 all holds, 1 something does not, 3 a part was not checked, since a package or promtool is not there.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NOT_RUN = 3
# What Prometheus adds: labels of whom it asked, and whether there was an answer.
ADDED_LABELS = {"instance", "job"}
ADDED_METRICS = {"up"}
# What Grafana puts in place of these names.
GRAFANA = {"$__rate_interval": "5m", "$__interval": "1m", "$__range": "1h"}

try:
    import promql_parser
    import yaml
except ImportError as error:
    print(f"NOT RUN: tools/telemetry/check.py: {error} (pip install -r tools/telemetry/requirements.txt)")
    sys.exit(NOT_RUN)


class Server:
    """`kernmill serve`, until it is told to end."""

    def __init__(self, program):
        command = [program, "serve", "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        said = []
        for line in self.process.stderr:
            said.append(line)
            found = re.search(r"is served at (http://[\w.:\[\]]+)", line)
            if found:
                self.url = found[1]
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
        raise SystemExit(f"error: {' '.join(command)} has ended: {''.join(said)}")

    def ask(self, path, body=None):
        """Status and text of a response."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def end(self):
        self.process.kill()
        self.process.wait()


def asked(server):
    """Makes requests of all kinds, and drains the server; its figures."""
    until = time.monotonic() + 30
    hello = [{"role": "user", "content": "Hello"}]
    for status, path, body in [
        (200, "/v1/completions", {"model": "nano", "prompt": "A slice is", "max_tokens": 8}),
        (200, "/v1/completions", {"model": "nano", "prompt": "A slice is", "max_tokens": 8}),
        (200, "/v1/chat/completions", {"model": "nano", "messages": hello, "max_tokens": 8}),
        (404, "/v1/completions", {"model": "nobody", "prompt": "A"}),
        (200, "/health", None),
        (200, "/ready", None),
        (200, "/drain", {}),
        (503, "/ready", None),
        (503, "/v1/completions", {"model": "nano", "prompt": "A", "max_tokens": 1}),
    ]:
        found, text = server.ask(path, body)
        # A drain begins a little after its response.
        while path == "/ready" and found != status and time.monotonic() < until:
            time.sleep(0.02)
            found, text = server.ask(path, body)
        if found != status:
            raise SystemExit(f"error: {path} {body} has status {found}, expected {status}: {text}")
    return server.ask("/metrics")[1]


def scraped(text):
    """Labels with their values, by the name of the series; the names of all families."""
    series, families = {}, set()
    for line in text.splitlines():
        if family := re.match(r"# TYPE (\S+) ", line):
            families.add(family[1])
        elif found := re.match(r"([\w:]+)(?:\{(.*)\})? \S+$", line):
            labels = series.setdefault(found[1], {})
            for name, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2] or ""):
                labels.setdefault(name, set()).add(value)
        elif not line.startswith("#"):
            raise SystemExit(f"error: /metrics: {line!r} is neither a comment nor a sample")
    return series, families


def selectors(expression):
    """Selectors of an expression, and labels that it sorts, matches or keeps series by."""
    found, labels = [], set()

    def visit(node):
        if isinstance(node, promql_parser.VectorSelector):
            found.append(node)
        elif isinstance(node, promql_parser.MatrixSelector):
            found.append(node.vector_selector)
        elif isinstance(node, promql_parser.AggregateExpr) and node.modifier:
            labels.update(node.modifier.labels)
        elif isinstance(node, promql_parser.BinaryExpr) and node.modifier and node.modifier.matching:
            labels.update(node.modifier.matching.labels)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found, labels


class Check:
    def __init__(self, series, recorded):
        self.series, self.recorded = series, recorded
        self.errors, self.count = [], 0

    def fail(self, where, what, expression=None):
        self.errors.append(f"{where}: {what}" + (f"\n    in {expression}" if expression else ""))

    def expression(self, where, text):
        """Demands that the metrics and labels of an expression are in the figures."""
        self.count += 1
        filled = text
        for name, value in GRAFANA.items():
            filled = filled.replace(name, value)
        try:
            found, labels = selectors(filled)
        except ValueError as error:
            return self.fail(where, f"no PromQL: {error}", text)
        if not found:
            self.fail(where, "no metric", text)
        had = set(ADDED_LABELS)
        for selector in found:
            known = self.series.get(selector.name)
            if selector.name in ADDED_METRICS or selector.name in self.recorded:
                known = {}
            elif known is None:
                self.fail(where, f"the metric {selector.name} is not in the figures", text)
                continue
            had.update(known)
            for matcher in selector.matchers.matchers:
                if matcher.name in ADDED_LABELS:
                    continue
                if matcher.name not in known:
                    self.fail(where, f"{selector.name} has no label {matcher.name}", text)
                elif not matcher.value.startswith("$") and "Not" not in str(matcher.op):
                    if not any(re.fullmatch(matcher.value, value) for value in known[matcher.name]):
                        self.fail(where, f"no {selector.name} has {matcher.name} {matcher.value!r}", text)
        for label in labels - had:
            self.fail(where, f"the label {label} is at none of its metrics", text)

    def board(self, path):
        board = json.loads(path.read_text())
        variables = {variable["name"] for variable in board["templating"]["list"]}
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                query = variable["query"]["query"]
                selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", query).groups()
                self.expression(f"{path.name}: variable {variable['name']}", f"sum by ({label}) ({selector})")
        ids = set()
        for panel in board["panels"]:
            where = f"{path.name}: {panel['title']}"
            if panel["id"] in ids:
                self.fail(where, f"a second panel has the id {panel['id']}")
            ids.add(panel["id"])
            if panel["type"] == "row":
                continue
            if not panel.get("description") or not panel["fieldConfig"]["defaults"].get("unit"):
                self.fail(where, "a description or a unit is missing")
            for target in panel["targets"]:
                self.expression(where, target["expr"])
                for name in set(re.findall(r"\$\{?(\w+)", target["expr"])) - variables:
                    if f"${name}" not in GRAFANA:
                        self.fail(where, f"there is no variable {name}", target["expr"])
                for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                    if label not in ADDED_LABELS and not any(label in had for had in self.series.values()):
                        self.fail(where, f"the label {label} of the legend is not in the figures")

    def rules(self, path, groups):
        for group in groups:
            for rule in group["rules"]:
                self.expression(f"{path.name}: {rule.get('record') or rule['alert']}", rule["expr"])


def vllm(families, series):
    """Says which metrics of vLLM's dashboards there are; whether all of them are."""
    names = [line for line in (HERE / "vllm.txt").read_text().splitlines() if line and not line.startswith("#")]
    there = [name for name in names if name in series or name in families]
    lacking = [name for name in names if name not in there]
    print(f"vLLM's dashboards: {len(there)} of {len(names)} metrics are there: {', '.join(there)}")
    if lacking:
        print(f"error: vLLM's dashboards: {len(lacking)} are not: {', '.join(lacking)}")
    has_model = any("model_name" in labels for labels in series.values())
    if not has_model:
        print("error: vLLM's dashboards: no series has the label model_name, by which they choose")
    return has_model and not lacking


def promtool(program, figures):
    """Runs promtool's checks; whether all hold."""
    holds = True
    for arguments, given in [
        (["check", "rules", "rules.yml"], None),
        (["test", "rules", "rules_test.yml"], None),
        (["check", "metrics"], figures),
    ]:
        done = subprocess.run([program, *arguments], cwd=HERE, input=given, capture_output=True, text=True)
        said = (done.stdout + done.stderr).strip()
        # 3 says that names are unusual, as vLLM's are: they have colons.
        if done.returncode == 0 or (given and done.returncode == 3):
            print(f"promtool {' '.join(arguments)}: ok")
        else:
            holds = False
            print(f"promtool {' '.join(arguments)}: status {done.returncode}\n{said}")
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernmill", nargs="?", default=str(ROOT / "target/debug/kernmill"))
    parser.add_argument("--promtool", default="promtool")
    options = parser.parse_args()
    server = Server(options.kernmill)
    try:
        figures = asked(server)
    finally:
        server.end()
    series, families = scraped(figures)
    groups = yaml.safe_load((HERE / "rules.yml").read_text())["groups"]
    recorded = {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}
    check = Check(series, recorded)
    check.board(HERE / "kernmill.json")
    check.rules(HERE / "rules.yml", groups)
    for error in check.errors:
        print(f"error: {error}")
    print(f"{check.count} expressions, {len(series)} series, {len(check.errors)} errors")
    has_all = vllm(families, series)
    found = shutil.which(options.promtool)
    holds = promtool(found, figures) if found else True
    if check.errors or not (has_all and holds):
        sys.exit(1)
    if not found:
        print(f"NOT RUN: promtool: {options.promtool} is not there (Debian's package prometheus has it)")
        sys.exit(NOT_RUN)


if __name__ == "__main__":
    main()
