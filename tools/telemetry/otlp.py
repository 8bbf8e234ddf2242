#!/usr/bin/env python3
"""The spans of `kernmill serve --otlp` with nano, read by OpenTelemetry's own definitions of the messages.

    python3 tools/telemetry/otlp.py [KERNMILL]

KERNMILL is the program, built with the feature `otlp` (target/release/kernmill where none is given). The package
opentelemetry-proto of requirements.txt is needed. This script is the collector.

Exit status: 0 all holds, 1 something does not, 3 the package is not there, so that nothing was checked.
"""

import argparse
import http.server
import json
import re
import secrets
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = 3
SECRET = "Xylophagous"

try:
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
    from opentelemetry.proto.trace.v1 import trace_pb2
except ImportError as error:
    print(f"NOT RUN: tools/telemetry/otlp.py: {error} (pip install -r tools/telemetry/requirements.txt)")
    sys.exit(NOT_RUN)


def equal(found, expected, what):
    if found != expected:
        raise SystemExit(f"error: {what}: {found!r}, expected {expected!r}")


class Collector(http.server.BaseHTTPRequestHandler):
    bodies = []

    def do_POST(self):
        equal(self.path, "/v1/traces", "path")
        equal(self.headers["content-type"], "application/x-protobuf", "type")
        self.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def value(any_value):
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(one) for one in any_value.array_value.values]
    return getattr(any_value, kind)


def attributes(pairs):
    found = {pair.key: value(pair.value) for pair in pairs}
    equal(len(found), len(pairs), "keys that are there twice")
    return found


def ask(url, path, body, headers):
    """Status, `x-request-id` and usage of a response."""
    headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        text = response.read().decode()
        id_ = response.headers["x-request-id"]
    if response.status != 200:
        equal(json.loads(text)["request_id"], id_, "request_id of an error")
        return response.status, id_, None
    if body.get("stream"):
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        return 200, id_, events[-1]["usage"]
    return 200, id_, json.loads(text)["usage"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernmill", nargs="?", default=str(ROOT / "target/release/kernmill"))
    program = parser.parse_args().kernmill
    collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{collector.server_port}"
    command = [program, "serve", "--port", "0", "--otlp", address, "--log-format", "json"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    said = []
    for line in server.stderr:
        said.append(line)
        if found := re.search(r"is served at (http://[\w.:\[\]]+)", line):
            break
    else:
        raise SystemExit(f"error: {' '.join(command)} has ended: {''.join(said)}")
    messages = [{"role": "user", "content": f"{SECRET}: what is a slice?"}]
    chat = {"model": "nano", "messages": messages, "max_tokens": 12}
    streamed = {**chat, "stream": True, "stream_options": {"include_usage": True}}
    text = {"model": "nano", "prompt": f"{SECRET} is", "max_tokens": 8, "n": 2, "temperature": 0.5, "seed": 1}
    asked = []
    for path, body, name in [
        ("/v1/chat/completions", chat, "chat nano"),
        ("/v1/chat/completions", streamed, "chat nano"),
        ("/v1/completions", text, "text_completion nano"),
        ("/v1/completions", {**text, "model": SECRET}, "text_completion"),
    ]:
        trace, parent = secrets.token_bytes(16), secrets.token_bytes(8)
        headers = {"traceparent": f"00-{trace.hex()}-{parent.hex()}-01", "X-Request-Id": f"gateway-{len(asked)}"}
        asked.append((trace, parent, path, body, name, ask(found[1], path, body, headers)))
    server.send_signal(signal.SIGTERM)
    said += server.stderr.readlines()
    equal(server.wait(), 0, "exit status")
    collector.shutdown()

    for body in Collector.bodies:
        equal(SECRET.encode() in body, False, "a prompt's text in a span")
    requests = [trace_service_pb2.ExportTraceServiceRequest.FromString(body) for body in Collector.bodies]
    resources = [resource for request in requests for resource in request.resource_spans]
    for resource in resources:
        equal(attributes(resource.resource.attributes)["service.name"], "kernmill", "service.name")
    spans = {span.trace_id: span for resource in resources for scope in resource.scope_spans for span in scope.spans}
    equal(len(spans), len(asked), "spans")
    logged = [json.loads(line) for line in said if line.startswith("{")]
    lines = {}
    for line in logged:
        line = {**line, **line.get("fields", {})}
        if line.get("message") == "request":
            lines[line["id"]] = line
    for at, (trace, parent, path, body, name, (status, id_, usage)) in enumerate(asked):
        span = spans[trace]
        where = f"request {at}"
        equal(span.parent_span_id, parent, f"{where}: parent")
        equal((span.name, span.kind), (name, trace_pb2.Span.SPAN_KIND_SERVER), where)
        has = attributes(span.attributes)
        for key, expected in {
            "gen_ai.operation.name": name.split()[0],
            "http.route": path,
            "http.response.status_code": status,
            "kernmill.request_id": id_,
            "kernmill.client_request_id": f"gateway-{at}",
        }.items():
            equal(has.get(key), expected, f"{where}: {key}")
        line = lines[id_]
        equal((line["trace"], line["client"]), (trace.hex(), f"gateway-{at}"), f"{where}: the log")
        if status != 200:
            equal((has["error.type"], status), ("404", 404), where)
            continue
        answers = body.get("n", 1)
        for key, expected in {
            "gen_ai.request.model": "nano",
            "gen_ai.request.max_tokens": body["max_tokens"],
            "gen_ai.request.choice.count": answers,
            "gen_ai.usage.input_tokens": usage["prompt_tokens"],
            "gen_ai.usage.output_tokens": line["tokens_out"],
            "kernmill.cached_tokens": usage["prompt_tokens_details"]["cached_tokens"],
        }.items():
            equal(has.get(key), expected, f"{where}: {key}")
        equal(len(has["gen_ai.response.finish_reasons"]), answers, f"{where}: reasons")
        times = [has[f"kernmill.{part}_seconds"] for part in ("queue", "prefill", "decode")]
        total = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
        equal(all(time >= 0 for time in times) and sum(times) <= total, True, f"{where}: {times} of {total} s")
        events = [(event.time_unix_nano, event.name) for event in span.events]
        equal([name for _, name in events], ["kernmill.queued", "kernmill.first_token", "kernmill.done"], where)
        moments = [span.start_time_unix_nano, *(at for at, _ in events), span.end_time_unix_nano]
        equal(moments, sorted(moments), f"{where}: order of times")
    print(f"{len(spans)} spans in {len(requests)} batches: parents, names, attributes and times hold")


if __name__ == "__main__":
    main()
