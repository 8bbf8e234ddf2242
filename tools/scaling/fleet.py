"""Two servers that a gateway stands before: their adapters, their starts and their ends."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

# The model that is in the program.
MODEL = "nano"
NANO = pathlib.Path(__file__).resolve().parents[2] / "model-specs/nano/nano.toml"
# Keys of the servers: a client's, and one of the gateway itself.
KEYS = {"client": "key-of-the-client-0123456789", "gateway": "key-of-the-gateway-0123456789"}
CLIENT = {"Authorization": f"Bearer {KEYS['client']}"}
# Seconds in which a server of nano is there, on a machine that does much else.
START = 60


class Wrong(Exception):
    """What the check found."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, test, seconds):
    """The first true value of `test`."""
    end = time.monotonic() + seconds
    while True:
        found = test()
        if found:
            return found
        if time.monotonic() > end:
            raise Wrong(f"{what}: not within {seconds} s")
        time.sleep(0.05)


def ask(port, method, path, body=None, headers=None, timeout=60):
    """Status, headers and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        data = None if body is None else json.dumps(body)
        kind = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, data, {**kind, **CLIENT, **(headers or {})})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def status(port, path):
    """Status of a GET; 0 if nobody answers."""
    try:
        return ask(port, "GET", path, timeout=5)[0]
    except (OSError, http.client.HTTPException):
        return 0


def end(process, seconds=20):
    """Ends a process that this program started."""
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def make_adapters(kernmill, folder, count):
    """Random adapters of nano, by name."""
    adapters = {}
    for number in range(count):
        name = f"adapter-{number:02}"
        path = folder / "adapters" / name
        made = subprocess.run(
            [kernmill, "synth", NANO, "-o", path, "--lora", "4", "--seed", str(number), "-q"],
            capture_output=True,
            text=True,
        )
        if made.returncode != 0:
            raise Wrong(f"kernmill synth: {made.stderr.strip()}")
        adapters[name] = path
    return adapters


def serve_command(kernmill, adapters, folder):
    """The command of a server, without its port and its log."""
    keys = folder / "keys.txt"
    keys.write_text("".join(f"{name} {key}\n" for name, key in KEYS.items()))
    command = [str(kernmill), "serve", "--threads", "1", "--parallel", "8", "--context", "1024", "-q"]
    for name, path in adapters.items():
        command += ["--lora", f"{name}={path}"]
    return command + ["--session-dir", str(folder / "sessions"), "--api-keys", str(keys)]


class Server:
    """One `kernmill serve` of nano with all adapters."""

    def __init__(self, name, command, folder):
        self.name, self.command, self.folder = name, command, folder
        self.port = free_port()
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        errors = open(self.folder / f"{self.name}.err", "ab")
        command = [*self.command, "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=errors, stderr=errors, cwd=self.folder)
        errors.close()

        def is_ready():
            if self.process.poll() is not None:
                text = (self.folder / f"{self.name}.err").read_text()
                raise Wrong(f"server {self.name} ended with {self.process.returncode}: {text[-1000:]}")
            return status(self.port, "/ready") == 200

        wait_for(f"server {self.name} is ready", is_ready, START)

    def kill(self):
        """Ends it as a machine that loses its power does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def drain(self):
        """Tells it to end when its texts have ended."""
        self.process.send_signal(signal.SIGTERM)

    def drained(self):
        code = self.process.wait(60)
        if code != 0:
            raise Wrong(f"server {self.name}: the drain ended with {code}, expected 0")

    def stop(self):
        end(self.process)


def check_sessions(servers, adapter):
    """A session that one server saved comes back at the other, with its rows. Cached tokens there."""
    first, second = servers
    prompt = "Shepherds count their sheep by night and " * 12
    body = {"name": "moved", "model": adapter, "prompt": prompt}
    code, _, text = ask(first.port, "POST", "/v1/sessions", body)
    if code != 200:
        raise Wrong(f"saving a session at {first.name}: {code} {text}")
    request = {"model": adapter, "prompt": prompt, "max_tokens": 24, "seed": 5, "temperature": 0.8}
    expected = json.loads(ask(first.port, "POST", "/v1/completions", request)[2])["choices"][0]["text"]
    first.drain()
    first.drained()
    code, _, text = ask(second.port, "POST", "/v1/sessions/moved/restore")
    if code != 200:
        raise Wrong(f"restoring a session at {second.name}: {code} {text}")
    answer = json.loads(ask(second.port, "POST", "/v1/completions", request)[2])
    cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
    if cached == 0:
        raise Wrong("the session came back, but nothing of its prompt was cached")
    if answer["choices"][0]["text"] != expected:
        raise Wrong("the text after a session that was handed over is another one")
    ask(second.port, "DELETE", "/v1/sessions/moved")
    first.start()
    return cached


def check_sessions_through(gateway, servers, adapter):
    """A session is saved through a gateway, and comes back through it when its server has drained. Cached tokens,
    and whether another server had them."""
    prompt = "A gateway finds the server of a session by the key of its adapter. " * 8
    # By this header all go to one server, also what has no model.
    route = {"X-Routing-Key": adapter}
    request = {"model": adapter, "prompt": prompt, "max_tokens": 24, "seed": 6, "temperature": 0.8}

    def through(path, body=None):
        code, headers, text = ask(gateway.port, "POST", path, body, route)
        if code != 200:
            raise Wrong(f"{path} through {gateway.name}: {code} {text}")
        return json.loads(text), gateway.server_of({name.lower(): value for name, value in headers.items()})

    _, name = through("/v1/sessions", {"name": "routed", "model": adapter, "prompt": prompt})
    before, _ = through("/v1/completions", request)
    first = next(one for one in servers if one.name == name)
    first.drain()
    first.drained()
    _, restored_at = through("/v1/sessions/routed/restore")
    after, answered_at = through("/v1/completions", request)
    first.start()
    cached = after["usage"]["prompt_tokens_details"]["cached_tokens"]
    if after["choices"][0]["text"] != before["choices"][0]["text"]:
        raise Wrong("the text after a session that came back through the gateway is another one")
    if restored_at == answered_at and cached == 0:
        raise Wrong("the session came back through the gateway, but nothing of its prompt was cached")
    return cached, answered_at != name


def remove_environment():
    """Settings of the caller's must not reach the servers."""
    for name in [name for name in os.environ if name.startswith("KERNMILL_")]:
        del os.environ[name]
