"""Gateways: how they are fetched, started and asked."""

import os
import pathlib
import shutil
import subprocess
import sys
import urllib.parse

from fleet import MODEL, Server, Wrong, ask, end, free_port, serve_command, status, wait_for

HERE = pathlib.Path(__file__).resolve().parent
# Seconds in which a gateway is there.
START = 120
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

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.process = None
        self.started = []

    def prepare(self):
        """Fetches what is needed, before anything is started."""

    def launch(self, command, **environ):
        log = open(self.folder / f"{self.name}.out", "ab")
        environ = {**os.environ, **environ}
        command = [str(part) for part in command]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environ, cwd=self.folder)
        log.close()

    def wait(self, test):
        def is_there():
            if self.process.poll() is not None:
                text = (self.folder / f"{self.name}.out").read_text()
                raise Wrong(f"{self.name} ended with {self.process.returncode}: {text[-1500:]}")
            return test()

        wait_for(f"{self.name} is ready", is_there, START)

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


GATEWAYS = {"smg": Smg, "haproxy": HaProxy}
