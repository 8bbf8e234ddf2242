#!/usr/bin/env python3
"""One cache for two: what `kernmill pull` fetched is found by huggingface_hub, and the other way round.

    python3 tools/hub/check.py [KERNMILL]

KERNMILL is the program (target/release/kernmill where none is given). Both ask a hub on the loopback that has one
of the small checkpoints of the tests. The packages of requirements.txt are needed.

Exit status: 0 all holds, 1 something does not, 3 the packages are not there, so that nothing was checked.
"""

import argparse
import hashlib
import http.server
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOT_RUN = 3
MODEL = "acme/tiny"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
with tarfile.open(ROOT / "tests/fixtures/oracle.tar") as fixtures:
    FILES = {
        Path(member.name).name: fixtures.extractfile(member).read()
        for member in fixtures
        if member.name.startswith("gptoss-sharded/") and not member.name.endswith("/oracle.safetensors")
    }
FILES["README.md"] = b"About it\n"


def is_large(name):
    return name.endswith(".safetensors")


def sum_of(name):
    data = FILES[name]
    if is_large(name):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def listing():
    files = []
    for name, data in FILES.items():
        file = {"rfilename": name, "size": len(data), "blobId": "f" * 40 if is_large(name) else sum_of(name)}
        if is_large(name):
            file["lfs"] = {"sha256": sum_of(name), "size": len(data), "pointerSize": 134}
        files.append(file)
    return {"id": MODEL, "modelId": MODEL, "sha": COMMIT, "private": False, "tags": [], "siblings": files}


def tree():
    """The same as another route has it."""
    return [
        {"type": "file", "oid": "f" * 40 if is_large(name) else sum_of(name), "size": len(data), "path": name}
        | ({"lfs": {"oid": sum_of(name), "size": len(data), "pointerSize": 134}} if is_large(name) else {})
        for name, data in FILES.items()
    ]


class Hub(http.server.BaseHTTPRequestHandler):
    """A hub; `sent` has the names of the files whose contents were sent."""

    protocol_version = "HTTP/1.1"
    sent = []

    def log_message(self, *_):
        pass

    def reply(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0]
        if path in (f"/api/models/{MODEL}", f"/api/models/{MODEL}/revision/main", f"/api/models/{MODEL}/revision/{COMMIT}"):
            return self.reply(200, json.dumps(listing()).encode(), {"Content-Type": "application/json"})
        if path.startswith(f"/api/models/{MODEL}/tree/"):
            return self.reply(200, json.dumps(tree()).encode(), {"Content-Type": "application/json"})
        name = path.rsplit("/", 1)[1]
        if path not in (f"/{MODEL}/resolve/{revision}/{name}" for revision in ("main", COMMIT)) or name not in FILES:
            return self.reply(404, b"", {"X-Error-Code": "EntryNotFound"})
        if self.command == "GET":
            self.sent.append(name)
        tag = f'"{sum_of(name)}"'
        headers = {"X-Repo-Commit": COMMIT, "ETag": tag, "Accept-Ranges": "bytes"}
        if is_large(name):
            headers |= {"X-Linked-Etag": tag, "X-Linked-Size": str(len(FILES[name]))}
        return self.reply(200, FILES[name], headers)

    do_HEAD = do_GET


def run(program, cache, *args):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNMILL_")}
    environment["HF_HUB_CACHE"] = str(cache)
    ended = subprocess.run([program, *args], env=environment, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise AssertionError(f"kernmill {' '.join(args)}: {ended.stderr}")
    return ended.stdout


def equal(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: {found!r}, expected {expected!r}")
    print(f"holds: {what}")


def check(program, directory):
    import huggingface_hub as library

    ids = directory / "ids.json"
    ids.write_text("[1, 2, 3]")
    text = ("--tokens", str(ids), "-n", "4", "--temp", "0", "-q")
    needed = [name for name in FILES if name != "README.md"]

    own = directory / "own"
    path = Path(run(program, own, "pull", "-q", MODEL).strip())
    equal(sorted(Hub.sent), sorted(needed), "kernmill fetches what is needed")
    Hub.sent.clear()
    for name in needed:
        found = library.hf_hub_download(MODEL, name, cache_dir=own, local_files_only=True)
        equal(Path(found), path / name, f"the library finds {name} without a network")
    for offline in (True, False):
        found = library.snapshot_download(MODEL, cache_dir=own, allow_patterns=needed, local_files_only=offline)
        equal(Path(found), path, f"the library finds all of it, offline {offline}")
    equal(Hub.sent, [], "the library fetches none of it again")
    cached = library.scan_cache_dir(own)
    equal([str(warning) for warning in cached.warnings], [], "the library has no complaint about the cache")
    [repository] = cached.repos
    equal((repository.repo_id, repository.nb_files), (MODEL, len(needed)), "the library lists the model")
    expected = run(program, own, "run", MODEL, "--hf-cache", *text)

    theirs = directory / "theirs"
    library.snapshot_download(MODEL, cache_dir=theirs)
    equal(sorted(Hub.sent), sorted(FILES), "the library fetches everything")
    Hub.sent.clear()
    equal(run(program, theirs, "run", MODEL, "--hf-cache", *text), expected, "--hf-cache finds what the library fetched")
    run(program, theirs, "pull", "-q", MODEL)
    equal(Hub.sent, [], "kernmill fetches none of it again")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", default=ROOT / "target/release/kernmill", metavar="KERNMILL")
    program = Path(parser.parse_args().program).resolve()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # The library reads these when it is imported.
    os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE"):
        os.environ.pop(name, None)
    os.environ["HF_HUB_DISABLE_XET"] = os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    with tempfile.TemporaryDirectory() as directory:
        os.environ["HF_HOME"] = directory
        try:
            import huggingface_hub  # noqa: F401
        except ImportError as error:
            print(f"NOT RUN: tools/hub/check.py: {error} (pip install -r tools/hub/requirements.txt)")
            return NOT_RUN
        try:
            check(program, Path(directory))
        except AssertionError as error:
            print(f"FAILS: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
