"""Checks of the Python wheel."""

import base64
import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import zipfile

from roots import NotRun, Wrong

TOOLS = ["auditwheel==6.8.2", "abi3audit==0.0.26", "check-wheel-contents==0.6.3"]
# Of glibc, as the name of the wheel has it.
OLDEST = (2, 28)
BESIDE = ["licenses/LICENSE-APACHE", "licenses/LICENSE-MIT", "licenses/LICENSE-THIRD-PARTY",
          "sboms/kernmill-python.cdx.json"]
PROMPT, TOKENS = "A slice is", 16
PROGRAM = f"""
from kernmill import LLM, SamplingParams
with LLM() as llm:
    (output,) = llm.generate([{PROMPT!r}], SamplingParams(temperature=0, max_tokens={TOKENS}))
    print(output.outputs[0].text, end="")
"""


def files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check_whole(wheel):
    """RECORD has every file with its hash, and licences and the bill of materials are there."""
    found = files(wheel)
    (record,) = [name for name in found if name.endswith(".dist-info/RECORD")]
    rows = {name: digest for name, digest, _ in csv.reader(found[record].decode().splitlines())}
    if rows.keys() != found.keys():
        raise Wrong(f"RECORD lists {sorted(rows)}, and the wheel has {sorted(found)}")
    for name in rows.keys() - {record}:
        digest = base64.urlsafe_b64encode(hashlib.sha256(found[name]).digest()).decode().rstrip("=")
        if rows[name] != f"sha256={digest}":
            raise Wrong(f"{name} has not the hash that RECORD lists")
    missing = [name for name in BESIDE if f"{record.removesuffix('RECORD')}{name}" not in found]
    if missing:
        raise Wrong(f"the wheel has no {' and no '.join(missing)}")
    return f"its {len(found)} files have their hashes, and licences and a bill of materials are among them"


def environment(folder, packages, python="python3"):
    """A fresh virtual environment with packages of PyPI; its folder of programs."""
    made = subprocess.run([python, "-m", "venv", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode != 0:
        raise NotRun(f"{python} makes no virtual environment: {made.stdout.strip()[-300:]}")
    if subprocess.run([f"{folder}/bin/pip", "install", "--quiet", *packages]).returncode != 0:
        raise NotRun(f"pip cannot fetch {' '.join(packages)}")
    return pathlib.Path(folder, "bin")


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Wrong(f"{pathlib.Path(command[0]).name} refuses the wheel: {done.stdout.strip()[-2000:]}")
    return done.stdout


def check_tools(wheel):
    """The wheel, as tools of others judge it."""
    with tempfile.TemporaryDirectory() as folder:
        programs = environment(folder, TOOLS)
        judged = run(programs / "auditwheel", "show", wheel)
        tag = re.search(r'"manylinux_(\d+)_(\d+)_x86_64"', judged)
        if not tag or tuple(map(int, tag.groups())) > OLDEST:
            raise Wrong(f"auditwheel does not find manylinux_2_28 or an older one: {judged.strip()}")
        run(programs / "abi3audit", "--strict", wheel)
        run(programs / "check-wheel-contents", "--no-config", wheel)
    found = tag[0].strip('"')
    return f"auditwheel finds {found}, abi3audit no name outside of the stable interface, and files are in place"


def interpreters():
    """Python of every version for which the wheel is, as far as it is there."""
    found = []
    for version in range(11, 20):
        name = shutil.which(f"python3.{version}")
        # A name may lead to nothing, as it is with managers of versions.
        if name and subprocess.run([name, "-c", "import venv"], stderr=subprocess.DEVNULL).returncode == 0:
            found.append((f"3.{version}", name))
    return found


def check_installed(wheel, program):
    """Installed, the wheel writes the text of the program."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("KERNMILL_", "PYTHON"))}
    line = [program, "run", "--prompt", PROMPT, "--temp", "0", "--max-tokens", str(TOKENS), "--json", "--quiet"]
    expected = json.loads(subprocess.run(line, env=variables, stdout=subprocess.PIPE, check=True).stdout)["text"]
    found = interpreters()
    if not expected or not found:
        raise NotRun("no Python from 3.11 on is there") if expected else Wrong("the program's text is empty")
    for version, python in found:
        with tempfile.TemporaryDirectory() as folder:
            programs = environment(folder, ["numpy"], python)
            run(programs / "pip", "install", "--quiet", "--no-index", wheel)
            # Isolated and elsewhere: it imports what is installed, and nothing of the tree.
            text = subprocess.run([programs / "python", "-I", "-W", "error", "-c", PROGRAM], cwd=folder, env=variables,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if text.returncode != 0 or text.stdout != expected:
                raise Wrong(f"Python {version} writes {text.stdout!r}, and the program {expected!r}: {text.stderr}")
    return f"installed in Python {', '.join(version for version, _ in found)}, it writes the program's text"
