"""Who leaves takes what was asked for along: cancelling, Ctrl-C, forks, and objects that come and go."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from conftest import ROOT
from kernmill import LLM, AsyncLLM, SamplingParams

LONG = SamplingParams(temperature=0, max_tokens=1500, ignore_eos=True)
CYCLES = int(os.environ.get("KERNMILL_CYCLES", "400"))
MODELS = int(os.environ.get("KERNMILL_MODEL_CYCLES", "4"))


def is_idle(metrics: dict[str, float]) -> bool:
    return metrics["running"] == metrics["waiting"] == metrics["kv_used_blocks"] == 0


def wait_until_idle(llm: LLM) -> None:
    for _ in range(600):
        if is_idle(llm.metrics()):
            return
        time.sleep(0.05)
    raise AssertionError(f"something is left: {llm.metrics()}")


def test_leaving_a_stream_frees_its_memory(nano: LLM) -> None:
    with nano.stream("A slice is", LONG) as stream:
        next(stream)
        assert nano.metrics()["running"] == 1 and nano.metrics()["kv_used_blocks"] > 0
    wait_until_idle(nano)
    for delta in nano.stream("A slice is", LONG):
        assert delta.finish_reason is None
        break
    gc.collect()
    wait_until_idle(nano)


async def test_a_cancelled_task_frees_its_memory() -> None:
    async with await AsyncLLM.create() as llm:

        async def idle() -> None:
            for _ in range(600):
                if is_idle(await llm.metrics()):
                    return
                await asyncio.sleep(0.05)
            raise AssertionError(f"something is left: {await llm.metrics()}")

        task = asyncio.create_task(llm.generate(["A slice is"] * 6, LONG))
        while not (await llm.metrics())["running"]:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await idle()
        async for _ in llm.stream("A slice is", LONG):
            break
        gc.collect()
        await idle()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                async for _ in llm.stream("A slice is", LONG):
                    pass
        await idle()


def resident() -> int:
    """Bytes of memory that the process has."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_streams_that_come_and_go_leave_memory_flat(nano: LLM) -> None:
    def cycle(count: int) -> None:
        for number in range(count):
            stream = nano.stream([1, 2, number % 1000], SamplingParams(max_tokens=50, logprobs=2))
            if number % 2:
                next(stream)
            del stream
        wait_until_idle(nano)

    cycle(200)
    gc.collect()
    before = resident()
    cycle(CYCLES)
    gc.collect()
    grown = resident() - before
    print(f"{CYCLES} streams: {grown} bytes more")
    assert grown < 8 << 20


def test_models_that_come_and_go_leave_memory_flat() -> None:
    def cycle(count: int) -> None:
        for _ in range(count):
            LLM(context=256).generate("A", SamplingParams(max_tokens=2))

    cycle(2)
    gc.collect()
    before = resident()
    cycle(MODELS)
    gc.collect()
    grown = resident() - before
    print(f"{MODELS} models: {grown} bytes more")
    # A model takes about as much itself.
    assert grown < 16 << 20


def test_a_forked_child_is_told(nano: LLM) -> None:
    stream = nano.stream("A slice is", SamplingParams(max_tokens=4))
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        said = []
        for work in (lambda: nano("A"), lambda: next(stream), nano.metrics, lambda: nano.tokenize("A")):
            try:
                work()
                said.append("nothing")
            except NotImplementedError as error:
                said.append(str(error))
        # Dropping what belongs to the parent's engine must neither wait nor touch it.
        stream = None
        os.write(write, "\n".join(said).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said_by_child:
        said = said_by_child.read().splitlines()
    assert os.waitpid(child, 0)[1] == 0
    assert len(said) == 4 and all("loaded before a fork" in line for line in said), said
    # The parent goes on.
    assert list(stream) and nano("A", SamplingParams(max_tokens=2))


INTERRUPTED = """
import os, signal, threading, time
from kernmill import LLM, SamplingParams

# A shell that starts the tests in the background has them ignore Ctrl-C, which this program inherits.
signal.signal(signal.SIGINT, signal.default_int_handler)

llm = LLM(max_sequences=2)
params = SamplingParams(temperature=0, max_tokens=1900, ignore_eos=True)
sent = []

def interrupt():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

def interrupted(work):
    threading.Timer(0.3, interrupt).start()
    try:
        work()
    except KeyboardInterrupt:
        return time.monotonic() - sent[-1]
    raise SystemExit("it was not interrupted")

took = [interrupted(lambda: llm.generate(["A slice is"] * 400, params))]
took.append(interrupted(lambda: [list(llm.stream("A slice is", params)) for _ in range(400)]))
while llm.metrics()["running"]:
    time.sleep(0.01)
assert llm("A slice is", SamplingParams(max_tokens=2))
print(max(took))
"""


def test_ctrl_c_ends_a_call_and_the_model_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", INTERRUPTED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seconds = float(done.stdout)
    print(f"Ctrl-C was heard after {seconds * 1000:.0f} ms")
    # Fifty milliseconds are meant; a busy machine takes longer.
    assert seconds < 5


def test_nothing_warns() -> None:
    script = """
import asyncio
from kernmill import LLM, AsyncLLM, SamplingParams

params = SamplingParams(max_tokens=3)
llm = LLM(context=256)
llm.generate("A", params)
next(llm.stream("A", params))
asyncio.run(AsyncLLM(context=256).generate("A", params))
"""
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_a_script_of_vllm_runs_after_a_change_of_its_import(tmp_path: Path) -> None:
    script = (ROOT / "python/tests/vllm_offline.py").read_text()
    assert len(script.splitlines()) >= 30 and "from vllm import" in script
    changed = tmp_path / "offline.py"
    changed.write_text(script.replace("from vllm import", "from kernmill import"))
    given = tmp_path / "nano.plan"
    import kernmill

    kernmill.compile(None, given)
    command = [sys.executable, "-W", "error", str(changed), str(given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Generated:") == 4 and "length" in done.stdout


def test_the_example_runs() -> None:
    command = [sys.executable, "-W", "error", str(ROOT / "python/examples/texts.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "A slice is" in done.stdout


def test_the_notebook_runs() -> None:
    import json

    notebook = json.loads((ROOT / "python/examples/tour.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 4
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n\n".join(cells)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
