"""What is to be measured, with what, and where its files are. Needs nothing but Python."""

import dataclasses
import shlex
from argparse import ArgumentTypeError
from dataclasses import dataclass
from pathlib import Path


class Failure(Exception):
    """Something that the user must see to; the text says what."""


@dataclass(frozen=True, order=True)
class Workload:
    """`prompt` of so many tokens, `decode` at so many tokens of context, or `batch` of so many sequences decoded together from empty."""

    kind: str
    number: int

    @staticmethod
    def parse(text: str) -> "Workload":
        kind, _, number = text.partition(":")
        if kind not in ("prompt", "decode", "batch") or not number.isdigit() or (kind != "decode" and number == "0"):
            raise ArgumentTypeError(f"`{text}`: expected prompt:TOKENS, decode:DEPTH or batch:SEQUENCES")
        return Workload(kind, int(number))

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"

    @property
    def deep(self) -> bool:
        """Whether a prompt comes before what is measured."""
        return self.kind == "decode" and self.number > 0


@dataclass(frozen=True)
class Config:
    """A way to run llama.cpp: weights mapped or read, repacked or not, flash attention or not."""

    load: str
    repack: str
    flash: str

    def __str__(self) -> str:
        return f"{self.load}, repack {self.repack}, flash attention {self.flash}"


LOADS = [(load, repack) for load in ("read", "mmap") for repack in ("on", "off")]
FLASH = ["on", "off"]
WORKLOADS = [Workload("prompt", 128), Workload("prompt", 512), Workload("decode", 0), Workload("decode", 4096), Workload("batch", 8)]
SMOKE_WORKLOADS = [Workload("prompt", 32), Workload("decode", 0), Workload("decode", 64), Workload("batch", 2)]


@dataclass
class Plan:
    here: Path
    work: Path
    out: Path
    kernmill: Path
    spec: Path
    checkpoint: Path | None  # none for a model that comes as a GGUF file
    gguf: Path
    kernmill_weights: str
    preset: str
    workloads: list[Workload]
    pairs: int
    rounds: int | None
    tg: int
    units: int
    threads: int
    foreign: float
    per_process: int
    pause: float
    wrap: list[str]

    @staticmethod
    def of(args, here: Path, work: Path) -> "Plan":
        if args.model and (args.smoke or args.checkpoint or args.gguf):
            raise Failure("--model brings the weights: expected without --smoke, --checkpoint and --gguf")
        spec = here.parents[1] / "model-specs/nano/nano.toml" if args.smoke else args.spec
        if args.model:
            spec = work / f"{args.model.stem}.toml"
        name = spec.stem
        plan = Plan(
            here=here,
            work=work,
            out=(args.out or work / ("smoke" if args.smoke else f"record-{name}")).resolve(),
            kernmill=args.kernmill.resolve(),
            spec=spec.resolve(),
            checkpoint=None if args.model else (args.checkpoint or work / name).resolve(),
            gguf=(args.model or args.gguf or work / f"{name}-q8_0.gguf").resolve(),
            kernmill_weights="gguf" if args.model else args.kernmill_weights,
            preset=args.preset,
            workloads=args.workloads or (SMOKE_WORKLOADS if args.smoke else WORKLOADS),
            pairs=args.pairs,
            rounds=args.rounds,
            tg=args.tg,
            units=args.units,
            threads=args.threads,
            foreign=args.foreign,
            per_process=args.per_process,
            pause=args.pause,
            wrap=shlex.split(args.wrap),
        )
        return dataclasses.replace(plan, pairs=min(args.pairs, 2), tg=8, units=24, foreign=float("inf")) if args.smoke else plan

    @property
    def python(self) -> Path:
        """Of the environment with llama-cpp-python."""
        return self.work / "venv/bin/python"

    @property
    def states(self) -> Path:
        return self.work / "states"
