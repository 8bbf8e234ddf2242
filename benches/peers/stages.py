"""The stages of a record, each skipping what is there already. Needs nothing but Python; the engines are started as processes."""

import hashlib
import json
import os
import random
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import engines
import machine
import report as reporting
from plan import FLASH, LOADS, Config, Failure, Plan, Workload

PREFILL = 1024
CHECK_TOKENS = 64
CHECK_LIMIT = 0.1  # nats; rounding and the routing that it changes give 1e-3 or so, an error in the conversion whole nats


def setup(plan: Plan) -> None:
    """The environment, with llama.cpp compiled for the CPU at hand."""
    requirements = plan.here / "requirements.txt"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    marker = plan.work / "venv/installed"
    if marker.exists() and marker.read_text() == wanted:
        return
    plan.work.mkdir(parents=True, exist_ok=True)
    if not plan.python.exists():
        venv.create(plan.work / "venv", with_pip=True)
    environment = os.environ | {"CMAKE_ARGS": shlex.join(build_options()), "CMAKE_BUILD_PARALLEL_LEVEL": str(plan.threads)}
    log = plan.work / "setup.log"
    print(f"   compiling llama.cpp, ten minutes or so; {log} tells how it goes", flush=True)
    command = [plan.python, "-m", "pip", "install", "--verbose", "--no-cache-dir", "--no-binary", "llama-cpp-python", "-r", requirements]
    with open(log, "w") as file:
        if subprocess.run(command, env=environment, stdout=file, stderr=subprocess.STDOUT).returncode:
            raise Failure(f"the installation failed; {log} says why. It needs a C and a C++ compiler")
    marker.write_text(wanted)


def build_options() -> list[str]:
    """llama.cpp's, for the CPU at hand."""
    options = ["-DGGML_NATIVE=ON"]
    if machine.has_tiles():
        # GCC 12's _tile_loadconfig names only eight bytes of the 64 that it reads, so that the other stores to a local configuration are
        # dropped as dead, and llama.cpp's kernels with tiles crash.
        options.append("-DCMAKE_CXX_FLAGS=-fno-tree-dse -fno-dse")
    return options


def weights(plan: Plan) -> None:
    """A random checkpoint, and a GGUF file of the same weights; of a model that comes as a GGUF file, the spec."""
    if plan.checkpoint is None:
        plan.work.mkdir(parents=True, exist_ok=True)
        run([plan.kernmill, "import", plan.gguf, "--output", plan.spec])
        return
    if not (plan.checkpoint / "tokenizer.json").exists():
        machine.need_space(plan.checkpoint, machine.checkpoint_bytes(plan.spec))
        run([plan.kernmill, "synth", plan.spec, "-o", plan.checkpoint, "--quiet"])
    if not plan.gguf.exists():
        machine.need_space(plan.gguf, machine.checkpoint_bytes(plan.spec))
        write = plan.here.parents[1] / "tools/gguf/write.py"
        run([plan.python, write, plan.checkpoint, plan.gguf, "--type", "q8_0", "--spec", plan.spec])


def check(plan: Plan) -> None:
    """Both engines' logits from the GGUF file: the mean KL divergence of llama.cpp's distributions from kernmill's."""
    kept = plan.out / "check.json"
    if kept.exists():
        return
    plan.out.mkdir(parents=True, exist_ok=True)
    tokens, ours, theirs = (plan.work / f"check-{name}" for name in ("tokens.json", "ours.safetensors", "theirs.safetensors"))
    vocab = machine.dims(plan.spec)["vocab"]
    source = random.Random(0)
    tokens.write_text(json.dumps([source.randrange(vocab) for _ in range(CHECK_TOKENS)]))
    run([*plan.wrap, plan.kernmill, "logits", "--quiet", "--weights", plan.gguf, "--preset", plan.preset, "--threads", plan.threads,
         "--tokens", tokens, "--out", ours])
    run([*plan.wrap, plan.python, plan.here / "llama_logits.py", "--model", plan.gguf, "--threads", plan.threads, "--tokens", tokens,
         "--out", theirs])
    figures = json.loads(run([plan.python, plan.here / "kl.py", ours, theirs]))
    kept.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"   mean KL {figures['mean_kl']:.1e} nats over {CHECK_TOKENS} positions", flush=True)
    if not figures["mean_kl"] < CHECK_LIMIT:
        raise Failure(f"the engines do not compute the same model: mean KL {figures['mean_kl']:.2e} nats (limit {CHECK_LIMIT})")


def sweep(plan: Plan) -> None:
    """llama.cpp's four ways with weights, each workload with flash attention; then without it in the way that was best.

    The best of each workload goes into best.json.
    """
    kept = plan.out / "best.json"
    if kept.exists():
        return
    shallow = [work for work in plan.workloads if not work.deep]
    best = sweep_of(plan, shallow)
    deep = [work for work in plan.workloads if work.deep]
    if deep:
        prefill(plan, deep, best)
        best |= sweep_of(plan, deep)
    kept.write_text(json.dumps({str(work): vars(config) for work, config in best.items()}, indent=1) + "\n")
    for work, config in best.items():
        print(f"   {work}: {config}", flush=True)


def sweep_of(plan: Plan, works: list[Workload]) -> dict[Workload, Config]:
    figures = []
    for load, repack in LOADS:
        figures += llama_processes(plan, "sweep", "on", load, repack, {work: "on" for work in works})
    best = best_of(figures)
    for load, repack in LOADS:
        without = {work: "off" for work, config in best.items() if (config.load, config.repack) == (load, repack)}
        figures += llama_processes(plan, "sweep", "off", load, repack, without)
    return best_of(figures)


def llama_processes(plan: Plan, directory: str, name: str, load: str, repack: str, works: dict[Workload, str], seed: int = 0) -> list:
    """Figures of workloads with their flash attention, so many to a process as the plan says."""
    figures, rest = [], list(works)
    while rest:
        some, rest = rest[: plan.per_process], rest[plan.per_process :]
        out = plan.out / directory / f"{name}-llama-{load}-{repack}-{'-'.join(f'{work.kind}{work.number}' for work in some)}.json"
        figures += engines.llama_figures(engines.llama(plan, out, load, repack, [f"{work}@{works[work]}" for work in some], seed))
    return figures


def prefill(plan: Plan, deep: list[Workload], best: dict[Workload, Config]) -> None:
    """Makes the sequences that deep workloads start from, in the way that is best for long prompts, PREFILL tokens to a process."""
    prompts = [work for work in best if work.kind == "prompt"]
    load, repack = (best[max(prompts)].load, best[max(prompts)].repack) if prompts else LOADS[0]
    for depth in sorted({depth for work in deep for depth in [*range(PREFILL, work.number, PREFILL), work.number]}):
        for flash in FLASH:
            llama_processes(plan, "sweep", f"prefill-{flash}", load, repack, {Workload("decode", depth): flash})


def best_of(figures: list) -> dict[Workload, Config]:
    best = {}
    for (work, config), figure in figures:
        if work not in best or figure.tokens_per_second > best[work][1].tokens_per_second:
            best[work] = (config, figure)
    return {work: config for work, (config, _) in best.items()}


def pairs(plan: Plan) -> None:
    """Rounds of both engines; every other one starts with the other engine."""
    best = load_best(plan)
    (plan.out / "machine.json").write_text(json.dumps(machine.describe(plan), indent=1) + "\n")
    done = 0
    for number in range(1, plan.pairs + 1):
        order = [kernmill_round, llama_round] if number % 2 else [llama_round, kernmill_round]
        before = files(plan)
        for engine in order:
            engine(plan, number, best)
        done += files(plan) != before
        if plan.rounds is not None and done >= plan.rounds:
            break


def kernmill_round(plan: Plan, number: int, _best) -> None:
    prompts = [work.number for work in plan.workloads if work.kind == "prompt"]
    batches = [work.number for work in plan.workloads if work.kind == "batch"]
    if any(not work.deep for work in plan.workloads):
        engines.kernmill(plan, plan.out / f"pairs/{number:02}-kernmill.json", prompts, 0, [1, *batches])
    for work in plan.workloads:
        if work.deep:
            engines.kernmill(plan, plan.out / f"pairs/{number:02}-kernmill-decode{work.number}.json", [], work.number, [1])


def llama_round(plan: Plan, number: int, best: dict[Workload, Config]) -> None:
    for load, repack in LOADS:
        works = {work: best[work].flash for work in plan.workloads if (best[work].load, best[work].repack) == (load, repack)}
        llama_processes(plan, "pairs", f"{number:02}", load, repack, works, seed=number)


def paired(plan: Plan) -> None:
    """Both engines' decoding between reads of as many bytes, in rounds as those of `pairs`."""
    best = load_best(plan)
    config = best.get(Workload("decode", 0))
    if config is None:
        raise Failure("the stage `paired` decodes from empty: expected the workload decode:0 among those of the sweep")
    size, left = None, plan.rounds
    for number in range(1, plan.pairs + 1):
        ours, theirs = (plan.out / f"paired/{number:02}-{engine}.json" for engine in ("kernmill", "llama"))
        done = ours.exists() and theirs.exists()
        if number % 2 or size is None:
            _, size = engines.kernmill_paired(plan, ours)
        engines.llama_paired(plan, theirs, config, size, seed=number)
        engines.kernmill_paired(plan, ours)  # of an even round; an odd one has it
        if left is not None and not done:
            left -= 1
            if left <= 0:
                break


def load_best(plan: Plan) -> dict[Workload, Config]:
    path = plan.out / "best.json"
    if not path.exists():
        raise Failure(f"{path} is not there: run the stage `sweep` first")
    best = {Workload.parse(work): Config(**config) for work, config in json.loads(path.read_text()).items()}
    if missing := [str(work) for work in plan.workloads if work not in best]:
        raise Failure(f"{path} knows nothing of {', '.join(missing)}: the sweep was of other workloads")
    return best


def report(plan: Plan) -> None:
    print(reporting.write(plan, load_best(plan)))


def files(plan: Plan) -> set[Path]:
    return set((plan.out / "pairs").glob("*.json"))


def run(command: list) -> str:
    process = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.returncode:
        raise Failure(f"{' '.join(str(word) for word in command)}\nreturned {process.returncode}:\n{process.stderr[-2000:]}")
    return process.stdout
