"""The Python wheel. maturin builds it, and zig links it against an old glibc."""

import pathlib
import shutil
import subprocess
import sys

import compiler
import sbom
from compiler import ROOT, TARGET, Wrong

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "kernmill-python"
# glibc 2.28: RHEL 8, Debian 10, Ubuntu 18.10, and what is newer.
PLATFORM = "manylinux_2_28"


def place():
    return compiler.target_folder() / "wheel"


def tools():
    """A virtual environment with maturin and zig."""
    wanted, venv = HERE / "wheel-tools.txt", place() / "tools"
    # It is copied last: its presence says that everything is there.
    have = venv / wanted.name
    if not have.exists() or have.read_bytes() != wanted.read_bytes():
        shutil.rmtree(venv, ignore_errors=True)
        pip = [venv / "bin/pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:", "-r", wanted]
        try:
            subprocess.run([sys.executable, "-m", "venv", venv], check=True)
            subprocess.run(pip, check=True)
        except subprocess.CalledProcessError as failed:
            missing = f"pip cannot fetch what {wanted.relative_to(ROOT)} names"
            raise Wrong(f"{missing}; with --no-wheel everything else is made") from failed
        shutil.copyfile(wanted, have)
    return venv


def replaced(text, old, new):
    if old not in text:
        raise Wrong(f"python/Cargo.toml has no {old!r}, which a release replaces")
    return text.replace(old, new)


def sources(licences):
    """What the wheel is built from: a copy of python/, with the whole tree below it.

    The way to a package from its workspace is part of the names of its symbols. Where the package is not below the
    workspace, that is its place on the machine: the same sources would give other bytes in another folder.
    """
    tree = place() / "sources"
    shutil.rmtree(tree, ignore_errors=True)
    listed = compiler.said("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT / "python")
    for name in listed.splitlines():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        # With its time, so that cargo compiles again what has changed, and no more.
        shutil.copy2(ROOT / "python" / name, tree / name)
    (tree / "source").symlink_to(ROOT)
    manifest = (tree / "Cargo.toml").read_text()
    manifest = replaced(manifest, 'path = "../', 'path = "source/')
    manifest = replaced(manifest, "[workspace]\n", '[workspace]\nexclude = ["source"]\n')
    (tree / "Cargo.toml").write_text(manifest)
    # maturin's own bill of materials has places of the machine.
    with open(tree / "pyproject.toml", "a") as project:
        project.write("\n[tool.maturin.sbom]\nrust = false\n")
    # maturin takes the licences by their names.
    for name in ["LICENSE-APACHE", "LICENSE-MIT"]:
        shutil.copyfile(ROOT / name, tree / name)
    (tree / "LICENSE-THIRD-PARTY").write_text(licences)
    return tree


def wheel(venv, commit, time, env, offline):
    """Builds the wheel with the tools in `venv`; its name and bytes."""
    folder = place()
    found = sbom.metadata(ROOT / "python")
    tree = sources(sbom.licences(found, PACKAGE))
    bill = folder / f"{PACKAGE}.cdx.json"
    bill.write_text(sbom.bill(found, PACKAGE, ROOT / "python", commit, time))
    # The program's folder: what builds other things, such as macros, is compiled once for both.
    target = compiler.target_folder()
    env = env | compiler.settings(target, [], [(tree, "/kernmill/python"), (tree / "source", "/kernmill")])
    env |= {"PATH": f"{venv / 'bin'}:{env['PATH']}", "VIRTUAL_ENV": str(venv)}
    env |= {name: str(folder / "zig") for name in ["CARGO_ZIGBUILD_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR",
                                                   "ZIG_LOCAL_CACHE_DIR"]}
    out = folder / "made"
    shutil.rmtree(out, ignore_errors=True)
    command = [venv / "bin/maturin", "build", "--locked", "--profile", "dist", "--target", TARGET, "--zig"]
    command += ["--compatibility", PLATFORM, "--sbom-include", bill, "--out", out]
    command += ["--manifest-path", tree / "Cargo.toml"]
    subprocess.run(command + ["--offline"] * offline, cwd=tree, env=env, check=True)
    (made,) = out.iterdir()
    return made.name, made.read_bytes()
