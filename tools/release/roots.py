"""Root file systems to try things in: what runs there sees nothing else of this machine but /proc and /dev."""

import json
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request


class Wrong(Exception):
    """What does not hold, as a sentence."""


class NotRun(Exception):
    """Why a part cannot be tried here."""


def needs_root():
    if os.geteuid() != 0:
        raise NotRun("it needs the rights of root, to change the root of the file system")


def inside(root, command, user=None, env=None):
    """The command line that runs a command in a root. Mounts are gone with it, and so are its processes."""
    for name in ["proc", "dev"]:
        (root / name).mkdir(exist_ok=True)
    variables = [f"{name}={value}" for name, value in ({"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"} | (env or {})).items()]
    change = [shutil.which("chroot") or "/usr/sbin/chroot"] + ([f"--userspec={user}"] if user else []) + [str(root)]
    place = shlex.quote(str(root))
    mounts = f"mount -t proc proc {place}/proc && mount --rbind /dev {place}/dev && exec \"$@\""
    # `env` is that of this machine, so that the root needs none.
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGTERM", "sh", "-c", mounts, "sh",
            "env", "-i", *variables, *change, *command]


def run(root, command, **more):
    done = subprocess.run(inside(root, command, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Wrong(f"`{' '.join(command)}` ended with status {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def serve(root, command, user, env, key=None):
    """Starts a server in a root, asks it for a text, and ends it as systemd and container engines do."""
    port = free_port()
    with tempfile.TemporaryFile() as log:
        # The server is the first process of its namespace: the signal goes to it, not to `unshare`.
        line = inside(root, command, user, env | {"KERNMILL_PORT": str(port)})
        server = subprocess.Popen(line, stderr=log, stdout=log)
        try:
            wait_until_ready(server, port)
            body = {"model": "nano", "prompt": "A slice is", "max_tokens": 4, "temperature": 0}
            headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
            address = f"http://127.0.0.1:{port}/v1/completions"
            with urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), headers)) as answer:
                if not json.load(answer)["choices"][0]["text"]:
                    raise Wrong("the server's text is empty")
            for child in children(server.pid):
                os.kill(child, signal.SIGTERM)
            status = server.wait(60)
            if status != 0:
                raise Wrong(f"the server ended with status {status} at SIGTERM")
        except (OSError, KeyError, urllib.error.URLError, subprocess.TimeoutExpired, Wrong) as wrong:
            log.seek(0)
            raise Wrong(f"{wrong}; the server said: {log.read().decode(errors='replace')[-2000:]}") from wrong
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()


def wait_until_ready(server, port):
    for _ in range(600):
        if server.poll() is not None:
            raise Wrong(f"the server ended at once, with status {server.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise Wrong("the server is not ready after two minutes")


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
