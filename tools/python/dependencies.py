#!/usr/bin/env python3
"""What the Python package depends on: versions as in the workspace's Cargo.lock, licences as in deny.toml."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def locked(path: Path) -> dict[str, set[str]]:
    """Versions of every locked package."""
    found: dict[str, set[str]] = {}
    for package in tomllib.loads(path.read_text())["package"]:
        found.setdefault(package["name"], set()).add(package["version"])
    return found


def is_allowed(expression: str, allowed: list[str]) -> bool:
    """Whether one of the alternatives of a licence expression is allowed."""
    flat = re.sub("[()]", "", expression.replace("/", " OR "))
    return any(all(one.strip() in allowed for one in part.split(" AND ")) for part in flat.split(" OR "))


def main() -> int:
    """What is wrong is printed."""
    ours, theirs = locked(ROOT / "python/Cargo.lock"), locked(ROOT / "Cargo.lock")
    wrong = [
        f"{name} {version} is locked, the workspace has {', '.join(sorted(theirs[name]))}"
        for name, versions in ours.items()
        for version in sorted(versions - theirs.get(name, versions))
    ]
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    command += ["--manifest-path", str(ROOT / "python/Cargo.toml")]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    deny = tomllib.loads((ROOT / "deny.toml").read_text())
    for package in metadata["packages"]:
        name = package["name"]
        if not is_allowed(package["license"] or "", deny["licenses"]["allow"]):
            wrong.append(f"{name}: licence {package['license']} is not in deny.toml")
        if name in deny["bans"]["deny"]:
            wrong.append(f"{name} is banned by deny.toml")
        sources = [f"registry+{url}" for url in deny["sources"]["allow-registry"]]
        if package["source"] is not None and package["source"] not in sources:
            wrong.append(f"{name} is from {package['source']}")
    count = len(metadata["packages"])
    print("\n".join(wrong) or f"{count} packages: versions, licences and sources are as they must be")
    return 1 if wrong else 0


sys.exit(main())
