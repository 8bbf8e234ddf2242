"""What cargo is told for a release, so that the places of the machine do not get into what it makes."""

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGET = "x86_64-unknown-linux-gnu"
# What the released program has that is off by default. `vtune` would load a library of the machine at run time,
# for which glibc wants a program that is not static.
FEATURES = ["grpc", "otlp", "tls"]
# What the environment may say about a build. A release says it itself; only the number of jobs is anybody's.
FOREIGN = re.compile(
    r"CARGO_(BUILD_(?!JOBS$)|PROFILE|TARGET|INCREMENTAL|ENCODED|ZIGBUILD)"
    r"|RUST(C|FLAGS)|C(XX)?FLAGS|LDFLAGS|KERNMILL_|MATURIN_|PYO3_|PYTHON|ZIG_"
)


class Wrong(Exception):
    """A sentence for who makes the release."""


def said(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout.strip()


def environment(time):
    kept = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
    return kept | {"SOURCE_DATE_EPOCH": str(time), "TZ": "UTC", "LC_ALL": "C.UTF-8", "CARGO_INCREMENTAL": "0"}


def target_folder():
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").absolute()


def settings(target, flags, places=()):
    """Variables for cargo: the flags, and fixed names for all places. `places` has more of them, with names."""
    cargo = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo").absolute()
    sysroot = pathlib.Path(said("rustc", "--print", "sysroot", cwd=ROOT))
    compiler = dict(line.split(": ", 1) for line in said("rustc", "-vV", cwd=ROOT).splitlines() if ": " in line)
    # rustc takes the last of several that fit.
    remapped = [
        (ROOT, "/kernmill"),
        (target, "/kernmill/target"),
        (cargo, "/cargo"),
        (sysroot, "/rust"),
        (sysroot / "lib/rustlib/src/rust", f"/rustc/{compiler['commit-hash']}"),
        *places,
    ]
    flags = flags + [f"--remap-path-prefix={place}={name}" for place, name in remapped]
    return {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "CARGO_TARGET_DIR": str(target),
        # The number that speeds are measured with; it must not follow a default that changes.
        "CARGO_PROFILE_DIST_CODEGEN_UNITS": "16",
        "CFLAGS": " ".join(f"-ffile-prefix-map={place}={name}" for place, name in remapped),
    }


def program(env, offline):
    """Builds the program; its path."""
    target = target_folder()
    env = env | settings(target, ["-Ctarget-feature=+crt-static"])
    command = ["cargo", "build", "--locked", "--profile", "dist", "--target", TARGET, "--bin", "kernmill"]
    command += ["--features", ",".join(FEATURES)]
    subprocess.run(command + ["--offline"] * offline, cwd=ROOT, env=env, check=True)
    return target / TARGET / "dist/kernmill"
