"""A server with the page of `server/page/` and answers from a script, to look at the page and to test it.

    mock.py [--port N] [--key KEY]

What the last message of the user holds decides the answer: `markdown`, `slice`, `hostile`, `reason`, `slow`, `pause`,
`long`, `formulas`, `colours`, `broken`, `error 400`, `error 503`, `error inside`; anything else is repeated. Tools are called if there are any,
JSON is given if it is asked for, and an answer that is gone on in gets an end. With `--key`, all of the API answers 401 without that key.
"""

import argparse
import json
import pathlib
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = pathlib.Path(__file__).resolve().parents[2] / "server" / "page"
KINDS = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".woff2": "font/woff2"}
POLICY = re.search(r'const POLICY: &str = "([^"]+)"', (PAGE.parent / "src/page.rs").read_text())[1]
MODELS = [("nano", None), ("pirate", "nano")]

MARKDOWN = """# A heading

A paragraph with **bold**, *italic*, `code`, ~~gone~~ and a [link](https://example.org/a_(b)).
Its second line, with an address: https://example.org/x, and \\*escaped\\* stars.

1. One
   - inner *a*
   - inner b
2. Two

> A quote with `code`
> - and a list

```rust
fn main() {
\tprintln!("1 < 2 && **no bold**");
}
```

| name | size |
|:-----|-----:|
| a \\| b | 12 |
| c<br>d | 3.5 |

---

The end.
"""
HOSTILE = (
    "<script>document.title = 'owned'</script> <img src=x onerror=\"document.title = 'owned'\">\n\n"
    "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d]( javascript:alert(1)) [e](//evil.example) "
    "![f](https://evil.example/pixel.png) <a href='javascript:1'>g</a> [h](java\tscript:1) [i](vbscript:x)\n\n"
    + "".join(mark * (100_000 // len(mark)) + "\n\n" for mark in ["[", "*", "*a ", "_a", "`` ` ", "](", "![", "> ", "- ", "~~a", "|", "(", "\\", "<"])
    + "\x00\u202e\ufffd end of it"
)
SLICE = """A **slice** is a view of a run of elements in a collection: a pointer and a length. It owns nothing.

```rust
let numbers = [1, 2, 3, 4];
let middle: &[i32] = &numbers[1..3];
assert_eq!(middle, [2, 3]);
```

| type | holds | grows |
|:-----|:------|:------|
| `[i32; 4]` | the elements | no |
| `&[i32]` | where they are, and how many | no |
| `Vec<i32>` | where they are, how many, and room for more | yes |

- A slice borrows, so what it views cannot change meanwhile.
- `&str` is a slice of text, which is always valid UTF-8.
"""
FORMULAS = r"""### What holds

The area is \(\pi r^2\,\), and $a_1 * b_2 * c_3$ is no emphasis. It costs $5, not $10, and `$x$` is code.

#### The integral

\[
\int_0^1 x^2\,dx
- \frac{1}{3}
= 0
\]

$$\begin{pmatrix} a & b \\ c & d \end{pmatrix}$$.

- In a list: $\sqrt{2}$
- \[ E = mc^2 \]

| law | formula |
|---|---|
| norm | \(|x| \ge 0\) |

Half of one: \(\frac{1}{"""
COLOURS = """```rust
// One function.
fn main() {
    let name = "mill";
}
```

```nothing-known
let x = 1;
```
"""
REASONING = "The user wants to know.\n\n- First, I look.\n- Then I **think**."


class Mock(ThreadingHTTPServer):
    """What came in is kept, so that a test can look at it."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port=0, key=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.key, self.seen, self.begun, self.running = key, [], time.monotonic(), 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def handle_error(self, request, address):
        """A browser that goes away is no error here."""

    def loads(self):
        up = time.monotonic() - self.begun
        none = {"interactive": 0, "batch": 0, "background": 0}
        steps = int(up * 12)
        wave = 0.06 + 0.03 * ((steps // 12) % 5)
        return {
            "waiting": {**none, "batch": 3},
            "running": {**none, "interactive": self.running},
            "kv": {"total_bytes": 4 << 30, "used_bytes": (1 << 30) + steps * 4096, "cached_bytes": 3 << 28},
            "steps": steps, "prompt_tokens": 100 + steps * 3, "cached_tokens": 50 + steps, "generated_tokens": steps * 2,
            "busy_seconds": sum(0.06 + 0.03 * (n % 5) for n in range(steps // 12)) * 12 + (steps % 12) * wave,
            "last_step_seconds": wave, "last_step_tokens": 5,
            "uptime_seconds": up, "draining": False, "version": "0.0.0-mock",
        }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Mock

    def log_message(self, *_):
        pass

    def reply(self, status, kind, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(body), "Content-Security-Policy": POLICY, **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def json(self, status, value, **headers):
        self.reply(status, "application/json", json.dumps(value).encode(), **headers)

    def error(self, status, message, kind="invalid_request_error", param=None, **headers):
        self.json(status, {"error": {"message": message, "type": kind, "code": None, "param": param}}, **headers)

    def is_locked(self):
        if self.server.key is None or self.headers["Authorization"] == f"Bearer {self.server.key}":
            return False
        self.error(401, "A key is needed, as Authorization: Bearer KEY.", "authentication_error")
        return True

    def do_GET(self):
        path = self.path.split("?")[0]
        if path.startswith("/v1/"):
            if self.is_locked():
                return
            if path == "/v1/models":
                data = [{"id": name, "object": "model", "parent": parent, "max_model_len": 2048} for name, parent in MODELS]
                return self.json(200, {"object": "list", "data": data})
            if path == "/v1/loads":
                return self.json(200, self.server.loads())
        file = PAGE / (path[1:] or "index.html")
        if file.resolve().is_relative_to(PAGE) and file.is_file() and file.suffix in KINDS:
            return self.reply(200, KINDS[file.suffix], file.read_bytes())
        self.error(404, f"There is nothing at {path}.")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.is_locked():
            return
        self.server.seen.append(body)
        last = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")
        if "error 400" in last:
            return self.error(400, "temperature: 9 is above the greatest, 2.", param="temperature")
        if body.get("continue_final_message") and "refused" in last:
            return self.error(400, "the model begins its answers with thoughts", param="messages")
        if "error 503" in last:
            return self.error(503, "The queue is full.", "overloaded_error", Retry_After=7)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        self.server.running += 1
        try:
            self.stream(body, last)
        finally:
            self.server.running -= 1

    def send(self, value):
        text = value if isinstance(value, str) else json.dumps(value)
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def delta(self, finish=None, **delta):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self.send({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "nano", "choices": [choice]})

    def text(self, text, size=7, pause=0.004, field="content"):
        """Pieces of a text. Reasoning comes under both of its names, as from the true server."""
        for at in range(0, len(text), size):
            piece = text[at : at + size]
            both = {"reasoning": piece, "reasoning_content": piece}
            self.delta(**(both if field == "reasoning" else {field: piece}))
            time.sleep(pause)

    def stream(self, body, last):
        begun = time.monotonic()
        # A character in two halves, so that a reader that decodes piece by piece is found out.
        self.wfile.write(": pïng\r\n\r\n".encode()[:4])
        self.wfile.flush()
        time.sleep(0.01)
        self.wfile.write(": pïng\r\n\r\n".encode()[4:])
        self.delta(role="assistant", content="")
        messages, finish, reasoning = body["messages"], "stop", 0
        if "reason" in last and not body.get("continue_final_message"):
            self.text(REASONING, field="reasoning", pause=0.03)
            reasoning = 12
        if body.get("continue_final_message"):
            self.text(" And this is the rest.")
        elif body.get("tools") and messages[-1]["role"] != "tool":
            finish = "tool_calls"
            self.call(body["tools"])
        elif messages[-1]["role"] == "tool":
            self.text(f"The tool says: {messages[-1]['content']}")
        elif body.get("response_format"):
            self.text(json.dumps({"form": body["response_format"]["type"], "said": last}))
            finish = "length" if "long" in last else finish
        elif "slow" in last:
            for n in range(400):
                self.delta(content=f"word{n} ")
                time.sleep(0.05)
        elif "pause" in last:
            # Drawing the first piece takes a while, and what follows comes meanwhile.
            self.delta(content="*a* " * 8000)
            self.text("before the pause.", size=1, pause=0.008)
            time.sleep(4)
            self.text(" After it.", pause=0)
        elif "broken" in last:
            return self.text("This breaks o")
        elif "error inside" in last:
            self.text("Half of ")
            return self.send({"error": {"message": "The engine stopped.", "type": "server_error", "code": None, "param": None}})
        elif "hostile" in last:
            self.text(HOSTILE, size=50_000)
        elif "formulas" in last:
            self.text(FORMULAS, size=3)
        elif "colours" in last:
            self.text(COLOURS)
        elif "markdown" in last:
            self.text(MARKDOWN)
        elif "slice" in last:
            self.text(SLICE)
        elif "long" in last:
            self.text("".join(f"Paragraph {n} of some length.\n\n" for n in range(200)), size=40, pause=0.001)
            finish = "length"
        else:
            words, most = f"{body['model']} heard: {last}".split(" "), body.get("max_completion_tokens")
            finish = "length" if most and most < len(words) else finish
            self.text(" ".join(words[:most]))
        self.delta(finish)
        seconds = time.monotonic() - begun
        self.send({
            "id": "c", "object": "chat.completion.chunk", "choices": [],
            "usage": {
                "prompt_tokens": 310, "completion_tokens": 42, "prompt_tokens_details": {"cached_tokens": 280},
                "completion_tokens_details": {"reasoning_tokens": reasoning},
            },
            "kernmill": {"first_token_seconds": 0.81, "seconds": seconds, "tokens_per_second": 12.34, "seed": body.get("seed", 5)},
        })
        self.send("[DONE]")

    def call(self, tools):
        """One call of each tool, its arguments in two pieces."""
        for index, tool in enumerate(tools):
            function = {"name": tool["function"]["name"], "arguments": ""}
            self.delta(tool_calls=[{"index": index, "id": f"call_{index}", "type": "function", "function": function}])
            for piece in ['{"city": ', '"Paris"}']:
                self.delta(tool_calls=[{"index": index, "function": {"arguments": piece}}])


def start(port=0, key=None):
    """A mock that runs beside the caller."""
    mock = Mock(port, key)
    threading.Thread(target=mock.serve_forever, daemon=True).start()
    return mock


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--key")
    args = parser.parse_args()
    server = Mock(args.port, args.key)
    print(f"The page is at {server.url}", flush=True)
    server.serve_forever()
