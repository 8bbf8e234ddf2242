"""What the tests share: models, and the program whose answers are the truth."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernmill import LLM

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., dict[str, Any]]


def program() -> Path:
    """The built program `kernmill`."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = Path(os.environ.get("KERNMILL_CLI", target / "debug/kernmill"))
    assert path.exists(), f"{path} is missing: `cargo build --workspace` makes it, or KERNMILL_CLI names it"
    return path


def call(*arguments: object, stdin: str = "") -> str:
    """What the program prints."""
    command = [str(program()), *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNMILL_")}
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def run(*arguments: object) -> dict[str, Any]:
    """The report of `kernmill run`."""
    report: dict[str, Any] = json.loads(call("run", *arguments, "--json", "--quiet"))
    return report


def smollm2() -> str:
    """The real model's file; without it a test is not run, which the report says."""
    path = os.environ.get("KERNMILL_SMOLLM2")
    if not path:
        pytest.skip("NOT RUN: KERNMILL_SMOLLM2 names no file (`tools/models/fetch.py smollm2` fetches it)")
    return path


@pytest.fixture(scope="session")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small checkpoints and adapters: `oracle/NAME`, `adapters/NAME`."""
    place = tmp_path_factory.mktemp("fixtures")
    for name in ("oracle", "adapters"):
        with tarfile.open(ROOT / f"tests/fixtures/{name}.tar") as tar:
            tar.extractall(place / name, filter="data")
    return place


@pytest.fixture(scope="session")
def nano() -> Iterator[LLM]:
    """The embedded model."""
    with LLM(max_sequences=4) as llm:
        yield llm


@pytest.fixture(scope="session")
def real() -> Iterator[LLM]:
    """A real model of 135 million parameters."""
    with LLM(smollm2(), max_sequences=4, context=2048) as llm:
        yield llm


@pytest.fixture(params=["nano", "real"])
def model(request: pytest.FixtureRequest) -> tuple[LLM, list[str]]:
    """A model, and the arguments by which the program loads it too."""
    llm: LLM = request.getfixturevalue(request.param)
    return llm, [] if request.param == "nano" else [smollm2()]
