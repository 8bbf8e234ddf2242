"""The machine and the versions that a record is of. Needs nothing but Python."""

import hashlib
import os
import platform
import shutil
import subprocess
import tomllib
from pathlib import Path

from plan import Failure, Plan


def describe(plan: Plan) -> dict:
    cpu = cpu_info()
    return {
        "cpu": field(cpu, "model name"),
        "cpu_family_model_stepping": [field(cpu, name) for name in ("cpu family", "model", "stepping")],
        "cpu_flags": [flag for flag in field(cpu, "flags").split() if flag.startswith(("avx", "amx", "fma", "f16c", "bmi"))],
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "huge_pages": setting("/sys/kernel/mm/transparent_hugepage/enabled"),
        "system": f"{platform.system()} {platform.release()}",
        "kernmill": output([plan.kernmill, "--version"]),
        "kernmill_sha256": hashlib.sha256(plan.kernmill.read_bytes()).hexdigest(),
        "kernmill_commit": output(["git", "-C", plan.here, "rev-parse", "--short", "HEAD"]),
        "kernmill_cpu": output([plan.kernmill, "cpu"]).splitlines(),
        "packages": output([plan.python, "-m", "pip", "freeze"]).split(),
    }


def cpu_info() -> str:
    return Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""


def has_tiles() -> bool:
    """Whether this CPU has AMX."""
    return "amx_tile" in field(cpu_info(), "flags").split()


def field(cpu: str, name: str) -> str:
    """The first processor's value in /proc/cpuinfo."""
    return next((line.split(":", 1)[1].strip() for line in cpu.splitlines() if line.split(":")[0].strip() == name), "")


def setting(path: str) -> str:
    return Path(path).read_text().strip() if Path(path).exists() else ""


def output(command: list) -> str:
    try:
        return subprocess.run([str(word) for word in command], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def dims(spec: Path) -> dict:
    return tomllib.loads(spec.read_text())["dims"]


def checkpoint_bytes(spec: Path) -> int:
    """About what a GPT-OSS-like checkpoint of a spec's shapes takes: bf16, and experts in MXFP4."""
    d = dims(spec)
    heads = 2 * d["heads"] * d["head_dim"] + 2 * d["kv_heads"] * d["head_dim"]
    experts = d["experts"] * 3 * d["expert_hidden"] * d["hidden"] * 17 // 32
    return 2 * 2 * d["vocab"] * d["hidden"] + d["layers"] * (2 * heads * d["hidden"] + experts)


def need_space(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if free < size * 1.05:
        raise Failure(f"{path.parent} has {free / 1e9:.1f} GB free, {path.name} takes {size / 1e9:.1f} GB")
