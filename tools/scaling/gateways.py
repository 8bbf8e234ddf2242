"""Gateways: how they are fetched, started and asked."""

import contextlib
import json
import os
import pathlib
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.parse

from fleet import MODEL, Server, Wrong, ask, end, free_port, serve_command, status, wait_for

HERE = pathlib.Path(__file__).resolve().parent
# Seconds in which a gateway is there.
START = 120
# Seconds in which Ray is there, and a server that Ray starts again; and how often it may fail to start.
RAY_START, RAY_TRIES = 240, 3
# What HAProxy of Debian 12 needs besides what each machine has.
HAPROXY = ["haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"]


def run(command, **more):
    """Runs a command that must work."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        text = (done.stderr or done.stdout).strip()
        raise Wrong(f"{' '.join(map(str, command))}: {text[-1500:]}")
    return done.stdout


def environment(folder, name):
    """A virtual environment with the packages of a gateway; it may be there from an earlier run."""
    # Scripts in it have its path, which a link would not outlive.
    place = (folder / "env" / name).resolve()
    mark = place / "complete"
    if not mark.exists():
        run([sys.executable, "-m", "venv", place])
        run([place / "bin/pip", "install", "-q", "-r", HERE / f"requirements-{name}.txt"])
        mark.touch()
    return place / "bin"


class Direct:
    """A server without a gateway."""

    def __init__(self, server):
        self.server, self.port = server, server.port

    def request(self, case, stream):
        return case.body(stream), {}

    def server_of(self, headers):
        return self.server.name


class Gateway:
    """What all gateways have."""

    # Whether it starts the servers, and can replace them.
    updates = False
    # Whether it passes on the routes of sessions.
    sessions = True

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.process = None
        self.node = None
        self.started = []

    def prepare(self):
        """Fetches what is needed, before anything is started."""

    def launch(self, command, **environ):
        log = open(self.folder / f"{self.name}.out", "ab")
        environ = {**os.environ, **environ}
        command = [str(part) for part in command]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environ, cwd=self.folder)
        log.close()

    def wait(self, test, seconds=START):
        def is_there():
            if self.process.poll() is not None:
                text = (self.folder / f"{self.name}.out").read_text()
                raise Wrong(f"{self.name} ended with {self.process.returncode}: {text[-1500:]}")
            return test()

        wait_for(f"{self.name} is ready", is_there, seconds)

    def stop(self):
        """Ends everything."""
        end(self.process)
        for server in self.started:
            server.stop()

    def servers(self, kernmill, adapters):
        """The two servers, which this program starts, kills and drains."""
        command = serve_command(kernmill, adapters, self.folder)
        self.started = [Server(name, command, self.folder) for name in ("a", "b")]
        for server in self.started:
            server.start()
        return self.started

    def request(self, case, stream):
        return case.body(stream), {}

    def server_of(self, headers):
        return headers.get("x-served-by", "")

    def retried(self):
        """Requests that the gateway sent again; None if it does not say."""
        return None


class HaProxy(Gateway):
    name = "haproxy"

    def prepare(self):
        self.libraries = ""
        self.program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
        if self.program:
            return
        place = self.folder / "env/haproxy"
        self.program = place / "usr/sbin/haproxy"
        self.libraries = str(place / "usr/lib/x86_64-linux-gnu")
        if self.program.exists():
            return
        if not shutil.which("apt-get"):
            raise Wrong("there is no haproxy in the PATH, and no apt-get to fetch Debian's")
        place.mkdir(parents=True, exist_ok=True)
        run(["apt-get", "download", *HAPROXY], cwd=place)
        for package in place.glob("*.deb"):
            run(["dpkg-deb", "-x", package, place])

    def start(self, servers):
        self.status_port = free_port()
        addresses = {f"SERVER_{one.name.upper()}": f"127.0.0.1:{one.port}" for one in servers}
        addresses |= {"BIND": f"127.0.0.1:{self.port}", "STATUS": f"127.0.0.1:{self.status_port}"}
        libraries = {"LD_LIBRARY_PATH": self.libraries} if self.libraries else {}
        config = HERE / "haproxy.cfg"
        run([self.program, "-c", "-f", config], env={**os.environ, **addresses, **libraries})
        self.launch([self.program, "-db", "-f", config], **addresses, **libraries)
        self.wait(lambda: status(self.port, "/ready") == 200)

    def retried(self):
        lines = ask(self.status_port, "GET", "/;csv")[2].lstrip("# ").splitlines()
        names = lines[0].split(",")
        rows = (dict(zip(names, line.split(","))) for line in lines[1:])
        return next(int(row["wretr"]) for row in rows if row["svname"] == "BACKEND" and row["pxname"] == "kernmill")


class Smg(Gateway):
    name = "smg"
    sessions = False

    def prepare(self):
        self.bin = environment(self.folder, self.name)

    def start(self, servers):
        self.names = {urllib.parse.urlsplit(one.url).netloc: one.name for one in servers}
        self.status_port = free_port()
        ports = {"PORT": str(self.port), "STATUS_PORT": str(self.status_port)}
        ports["KEYS"] = str(self.folder / "keys.txt")
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        self.launch(["sh", HERE / "smg.sh", *(one.url for one in servers)], PATH=path, **ports)
        self.wait(lambda: status(self.port, "/readiness") == 200)

    def request(self, case, stream):
        body = case.body(stream)
        if case.adapter:
            body |= {"model": MODEL, "lora_path": case.adapter}
        return body, {"X-Routing-Key": case.adapter or MODEL}

    def server_of(self, headers):
        return self.names.get(urllib.parse.urlsplit(headers.get("x-smg-routed-worker-id", "")).netloc, "")

    def retried(self):
        text = ask(self.status_port, "GET", "/metrics")[2]
        lines = (line for line in text.splitlines() if line.startswith("smg_worker_retries_total"))
        return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines)


class RayServer:
    """A server that Ray Serve starts, and starts again."""

    def __init__(self, rank, port):
        self.name, self.port, self.last = f"server-{rank}", port, None

    def pid(self):
        """The process with this server's port; None while it is away."""
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_text().split("\0")
            except OSError:
                continue
            # The one that is about to become a server has the same words after others.
            if words[1:2] == ["serve"] and "--port" in words and words[words.index("--port") + 1] == str(self.port):
                return int(path.parent.name)
        return None

    def running(self):
        self.last = wait_for(f"{self.name} has a process", self.pid, RAY_START)
        return self.last

    def kill(self):
        """Ends it, and Ray's process for it, as a machine that loses its power does."""
        server = self.running()
        replica = int(re.search(r"PPid:\s+(\d+)", pathlib.Path(f"/proc/{server}/status").read_text())[1])
        os.kill(replica, signal.SIGKILL)
        os.kill(server, signal.SIGKILL)

    def drain(self):
        os.kill(self.running(), signal.SIGTERM)

    def drained(self):
        wait_for(f"{self.name} has ended", lambda: self.pid() != self.last, RAY_START)

    def start(self):
        """Waits until it was started again."""
        wait_for(f"{self.name} is started again", lambda: self.pid() not in (None, self.last), RAY_START)
        wait_for(f"{self.name} is ready", lambda: status(self.port, "/ready") == 200, RAY_START)


class Ray(Gateway):
    name = "ray"
    updates = True

    def prepare(self):
        self.bin = environment(self.folder, self.name)

    def servers(self, kernmill, adapters):
        ports = neighbours()
        config = (HERE / "ray_serve.yaml").read_text()
        values = {
            "http_port": self.port,
            "command": json.dumps(shlex.join(serve_command(kernmill, adapters, self.folder))),
            "server_port": ports[0],
            # Two servers of one thread, wherever they run.
            "num_cpus": 0.5,
        }
        # Each by the first line that has it.
        for name, value in values.items():
            line = {"http_port": "  port", "server_port": "      port"}.get(name, rf" *{name}")
            config, count = re.subn(rf"(?m)^({line}:) .*$", lambda found: f"{found[1]} {value}", config, count=1)
            if count != 1:
                raise Wrong(f"ray_serve.yaml has no line of {name}")
        (self.folder / "ray.yaml").write_text(config)
        two = [RayServer(rank, port) for rank, port in enumerate(ports)]
        # Ray gives its node 30 s, and its proxy 60 s, which no setting changes. A machine that does much else may
        # need a second try.
        for tries in range(1, RAY_TRIES + 1):
            try:
                self.start_node()
                command = [self.bin / "serve", "run", "--working-dir", HERE, "--address", self.address, "ray.yaml"]
                self.launch(command, **self.environ)
                self.wait(lambda: all(status(one.port, "/ready") == 200 for one in two), RAY_START)
                self.wait(lambda: status(self.port, "/ready") == 200, RAY_START)
                return two
            except Wrong:
                if tries == RAY_TRIES:
                    raise
                self.stop()

    def start_node(self):
        """Starts a cluster of one machine, with as few processes as Ray can do with."""
        # Paths of Ray's sockets must be short.
        self.place = tempfile.mkdtemp(prefix="kr-", dir="/tmp")
        # Ray listens on all addresses of a machine, and runs what it is sent: others have no token.
        self.environ = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        # Memory of others is not its affair. Workers and proxies may take their time, and need not stand back:
        # Ray's niceness is 15, and servers would inherit it.
        self.environ |= {
            "RAY_worker_niceness": "0",
            "RAY_memory_monitor_refresh_ms": "0",
            "RAY_worker_register_timeout_seconds": "300",
            "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
            "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "60",
        }
        (self.folder / "ray.out").unlink(missing_ok=True)
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        command = [self.bin / "ray", "start", "--head", "--block", f"--port={port}", "--num-cpus=1", "--num-gpus=0"]
        command += ["--object-store-memory=100000000", "--disable-usage-stats", f"--temp-dir={self.place}"]
        command += ["--include-dashboard=false", "--include-log-monitor=false", "--no-monitor"]
        self.launch(command, **self.environ)
        self.node = self.process
        self.wait(lambda: "Ray runtime started" in (self.folder / "ray.out").read_text(), RAY_START)

    def update(self, servers):
        """Has Ray replace the front and all servers, one after the other, and waits for that."""
        before = [one.running() for one in servers]
        config = self.folder / "ray.yaml"
        config.write_text(config.read_text().replace("grace: 60", "grace: 61"))
        command = [self.bin / "serve", "run", "--non-blocking", "--working-dir", HERE, "--address", self.address]
        run([*command, config], env={**os.environ, **self.environ})

        def is_new():
            pids = [one.pid() for one in servers]
            return None not in pids and not set(pids) & set(before)

        wait_for("both servers are replaced", is_new, RAY_START)
        self.wait(lambda: all(status(one.port, "/ready") == 200 for one in servers), RAY_START)

    def start(self, servers):
        """It is there since its servers are."""

    def stop(self):
        if self.node is None:
            return
        if self.process is not self.node:
            # It takes the application away, and says so at an interrupt only.
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        # Some of its processes outlive a node that has to be killed.
        below = descendants(self.node.pid)
        end(self.node, 30)
        for pid, begun in below:
            if begun == begun_at(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.node = None
        shutil.rmtree(self.place, ignore_errors=True)

    def retried(self):
        # Answers say it themselves.
        return None


def stat_of(pid):
    """The parent of a process, and when it began; None if there is none."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), fields[19]


def begun_at(pid):
    return (stat_of(pid) or (0, None))[1]


def descendants(pid):
    """Processes below one, each with the time at which it began."""
    parents = {int(path.name): stat_of(path.name) for path in pathlib.Path("/proc").glob("[0-9]*")}
    found, open_ = [], [pid]
    while open_:
        parent = open_.pop()
        below = [one for one, stat in parents.items() if stat and stat[0] == parent]
        found += [(one, parents[one][1]) for one in below]
        open_ += below
    return found


def neighbours():
    """Two free ports, one after the other."""
    while True:
        first = free_port()
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", first + 1))
            except OSError:
                continue
        return [first, first + 1]


GATEWAYS = {"smg": Smg, "haproxy": HaProxy, "ray": Ray}
