"""What the package offers beside texts: scores, logits, sessions, plans, and errors."""

from __future__ import annotations

import asyncio
import copy as copies
import io
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kernmill
import numpy as np
import pytest
from conftest import ROOT, call
from kernmill import (
    LLM,
    AsyncLLM,
    InputError,
    Overloaded,
    SamplingParams,
    StructuredOutputsParams,
    Unsupported,
    _progress,
)

GREEDY = SamplingParams(temperature=0, max_tokens=12)


def test_logits_choose_the_greedy_text(nano: LLM) -> None:
    prompt = nano.tokenize("A slice is")
    made = nano.generate([prompt], GREEDY)[0].outputs[0].token_ids
    rows = nano.logits(prompt + made)
    assert rows.shape == (len(prompt) + len(made), nano.vocab_size) and rows.dtype == np.float32
    assert rows[len(prompt) - 1 : -1].argmax(axis=1).tolist() == made
    # The memory is the engine's own, handed over.
    assert not rows.flags.owndata and rows.flags.writeable and rows.flags.c_contiguous
    last = nano.logits(prompt + made, last=True)
    assert last.shape == (1, nano.vocab_size)
    assert last.tobytes() == rows[-1:].tobytes()
    assert nano.metrics()["kv_used_blocks"] == 0


def test_logits_are_those_of_the_program(nano: LLM, tmp_path: Path) -> None:
    ids = nano.tokenize("A reference is a pointer")
    (tmp_path / "ids.json").write_text(json.dumps(ids))
    call("logits", "--tokens", tmp_path / "ids.json", "--out", tmp_path / "logits.safetensors", "--quiet")
    data = (tmp_path / "logits.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    assert nano.logits(ids).tobytes() == data[start:]


def test_scores_are_logarithms_of_the_logits(nano: LLM) -> None:
    ids = nano.tokenize("A slice is a view into memory")
    scores = nano.score(ids, top=3)
    rows = nano.logits(ids).astype(np.float64)
    shifted = rows - rows.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    wanted = logs[np.arange(len(ids) - 1), ids[1:]]
    np.testing.assert_allclose(scores.logprobs, wanted, atol=1e-4)
    assert scores.top_ids.shape == scores.top_logprobs.shape == (len(ids) - 1, 3)
    assert scores.top_ids[:, 0].tolist() == rows[:-1].argmax(axis=1).tolist()
    assert scores.ranks.tolist() == [
        int((row > row[token]).sum()) + 1 for row, token in zip(rows[:-1], ids[1:], strict=True)
    ]
    assert scores.total == pytest.approx(wanted.sum(), abs=1e-3)
    assert scores.perplexity == pytest.approx(np.exp(-wanted.mean()), rel=1e-3)


def test_logprobs_stand_beside_tokens(nano: LLM) -> None:
    params = SamplingParams(temperature=0, max_tokens=6, logprobs=2, prompt_logprobs=1)
    output = nano.generate("A slice is", params)[0]
    (completion,) = output.outputs
    assert completion.logprobs is not None and len(completion.logprobs) == len(completion.token_ids) == 6
    for token, found in zip(completion.token_ids, completion.logprobs, strict=True):
        assert found[token].rank == 1 and len(found) == 2
        assert found[token].logprob == max(one.logprob for one in found.values())
    assert output.prompt_logprobs is not None and output.prompt_logprobs[0] is None
    score = nano.score("A slice is")
    found_scores = [
        one[token].logprob
        for token, one in zip(output.prompt_token_ids[1:], output.prompt_logprobs[1:], strict=True)
        if one is not None
    ]
    assert found_scores == score.logprobs.tolist()
    pairs = zip(completion.token_ids, completion.logprobs, strict=True)
    total = sum(found[token].logprob for token, found in pairs)
    assert completion.cumulative_logprob == pytest.approx(total)
    streamed = [delta for delta in nano.stream("A slice is", params)]
    assert [one for delta in streamed for one in delta.logprobs or []] == completion.logprobs


def test_several_texts_of_a_prompt_differ_by_their_seeds(nano: LLM) -> None:
    params = SamplingParams(n=3, temperature=1.0, seed=5, max_tokens=12)
    outputs = nano.generate("A slice is", params)[0].outputs
    alone = [
        nano("A slice is", SamplingParams(temperature=1.0, seed=seed, max_tokens=12)) for seed in (5, 6, 7)
    ]
    assert [output.text for output in outputs] == alone and len(set(alone)) > 1


def test_prompts_have_several_forms(nano: LLM) -> None:
    ids = nano.tokenize("A slice is")
    text = nano("A slice is", GREEDY)
    forms: list[Any] = ["A slice is", ids, {"prompt": "A slice is"}, {"prompt_token_ids": ids}]
    assert [output.outputs[0].text for output in nano.generate(forms, GREEDY)] == [text] * 4
    assert nano.generate(ids, GREEDY)[0].outputs[0].text == text
    assert nano.generate([], GREEDY) == []
    done: list[tuple[int, int]] = []
    each = [SamplingParams(temperature=0, max_tokens=n) for n in (1, 2)]
    found = nano.generate([ids, ids], each, on_progress=lambda *count: done.append(count))
    assert [len(output.outputs[0].token_ids) for output in found] == [1, 2] and done == [(1, 2), (2, 2)]
    assert nano.detokenize(nano.tokenize("Größe: 5 €")) == "Größe: 5 €"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_on_a_terminal_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TERM", raising=False)
    now = iter([0.0, 0.1, 2.0])
    monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: next(now)))
    screen = Screen()
    bar = _progress.Bar(True, screen)
    bar.show(1, 4)
    assert screen.getvalue() == "", "what is soon done needs none"
    bar.show(2, 4)
    assert screen.getvalue() == f"\r2 of 4 [{'#' * 15:30}] 2 s, 2 s to go \x1b[K"
    bar.end()
    assert screen.getvalue().endswith("\r\x1b[K")
    monkeypatch.undo()
    for is_wanted, stream in [(False, Screen()), (True, io.StringIO())]:
        bar = _progress.Bar(is_wanted, stream)
        bar._start -= 10
        bar.show(1, 2)
        bar.end()
        assert stream.getvalue() == ""


def test_texts_are_held_to_a_form(nano: LLM) -> None:
    def text(**form: Any) -> str:
        held = StructuredOutputsParams(**form)
        return nano("Is it?", SamplingParams(temperature=1, seed=2, max_tokens=60, structured_outputs=held))

    assert re.fullmatch("(yes|no), [a-z]{1,8}", text(regex="(yes|no), [a-z]{1,8}"))
    assert text(choice=["a.b", "c|d"]) in ("a.b", "c|d")
    schema = {
        "type": "object",
        "properties": {"sized": {"type": "boolean"}},
        "required": ["sized"],
        "additionalProperties": False,
    }
    assert isinstance(json.loads(text(json=schema))["sized"], bool)
    assert re.fullmatch("[ab]{2}", text(grammar="start: /[ab]/ /[ab]/"))
    with pytest.raises(InputError, match="2 forms"):
        text(regex="a", choice=["b"])
    with pytest.raises(InputError, match="JSON schema"):
        text(json="{")


def test_sessions_go_on(tmp_path: Path) -> None:
    path = tmp_path / "talk.session"
    with LLM(sessions=True, context=512) as llm:
        first = llm.generate("A slice is", GREEDY)[0]
        known = first.prompt_token_ids + first.outputs[0].token_ids
        whole = llm.generate([known], GREEDY)[0].outputs[0].token_ids
        assert llm.sessions.save(path, known, note="a note") > 0
    with LLM(sessions=True, context=512) as llm:
        saved = llm.sessions.load(path)
        assert (saved.token_ids, saved.note) == (known, "a note")
        again = llm.generate([saved.token_ids], GREEDY)[0]
        assert again.outputs[0].token_ids == whole
        assert saved.restored_tokens > 0 and (again.num_cached_tokens or 0) > 0
        with pytest.raises(InputError, match="nothing.session"):
            llm.sessions.load(tmp_path / "nothing.session")
    with LLM(context=256) as llm, pytest.raises(InputError, match="sessions"):
        llm.sessions.save(path, known)


def test_plans_are_compiled_inspected_and_explained(nano: LLM, tmp_path: Path) -> None:
    plan = tmp_path / "nano.plan"
    kernmill.compile(None, plan)
    with LLM(plan) as llm:
        assert llm("A slice is", GREEDY) == nano("A slice is", GREEDY)
    facts = ("schema", "version", "commit", "built_with")

    def report(*arguments: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(call(*arguments, "--json", "--quiet"))
        return {name: value for name, value in found.items() if name not in facts}

    def explained(found: dict[str, Any]) -> dict[str, Any]:
        # What is free on this machine changes from one moment to the next.
        assert found["memory"].pop("available") > 0
        return found

    assert kernmill.inspect(plan) == report("inspect", plan)
    assert kernmill.inspect() == report("inspect")
    assert explained(kernmill.explain(plan)) == explained(report("explain", plan))
    with pytest.raises(InputError, match="it is a plan"):
        kernmill.compile(plan, tmp_path / "again.plan")
    with pytest.raises(InputError, match="expected exact, faithful, bf16, fast"):
        kernmill.compile(None, tmp_path / "x.plan", preset="good")
    assert not (tmp_path / "again.plan").exists() and not (tmp_path / "x.plan").exists()


def test_specs_are_imported(fixtures: Path) -> None:
    spec = kernmill.import_spec(fixtures / "oracle/llama-plain")
    assert "[model]" in spec or "name" in spec


def test_wrong_input_is_refused_with_its_reason(nano: LLM, tmp_path: Path) -> None:
    for wrong, message in [
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"n": 0}, "n is 0"),
        ({"stop": ""}, "empty"),
        ({"logprobs": -1}, "logprobs is -1"),
    ]:
        with pytest.raises(InputError, match=message):
            SamplingParams(**wrong)
    with pytest.raises(Unsupported, match="min_tokens"):
        SamplingParams(min_tokens=3)
    with pytest.raises(ValueError, match="temperature"):
        nano("A", SamplingParams(temperature=-1))
    with pytest.raises(InputError, match="no tokens"):
        nano.generate([[]])
    with pytest.raises(InputError, match="99999"):
        nano.generate([[1, 99999]])
    with pytest.raises(InputError, match="the context holds"):
        nano.generate([[1] * (nano.context + 1)])
    with pytest.raises(InputError, match="missing.gguf"):
        LLM(tmp_path / "missing.gguf")
    with pytest.raises(InputError, match="context is 5000000"):
        LLM(context=5_000_000)
    with pytest.raises(TypeError, match="contxt"):
        LLM(contxt=5)
    with pytest.raises(InputError, match=r"messages\[0\].role"):
        nano.chat([{"role": "robot", "content": "x"}])
    with pytest.raises(Unsupported, match="image_url"):
        nano.chat([{"role": "user", "content": [{"type": "image_url"}]}])
    with pytest.raises(InputError, match="1 parameters for 2 prompts"):
        nano.generate(["a", "b"], [GREEDY])
    assert issubclass(InputError, ValueError) and issubclass(Unsupported, NotImplementedError)
    assert issubclass(kernmill.Defect, RuntimeError)
    # One that was refused leaves nothing behind.
    assert nano.metrics()["running"] == nano.metrics()["waiting"] == 0


def test_a_closed_model_says_so() -> None:
    llm = LLM(context=256)
    stream = llm.stream("A", SamplingParams(max_tokens=200, ignore_eos=True))
    next(stream)
    llm.close()
    llm.close()
    with pytest.raises(InputError, match="closed"):
        llm("A")
    # What ran was cancelled.
    assert list(stream) is not None and stream.output is not None
    assert stream.output.outputs[0].finish_reason in ("abort", "length")


def test_a_full_queue_is_overload() -> None:
    with LLM(context=2048, max_sequences=1, max_queue=1) as llm:
        params = SamplingParams(temperature=0, max_tokens=1000, ignore_eos=True)
        streams = [llm.stream("A", params) for _ in range(8)]
        with pytest.raises(Overloaded, match="queue"):
            for stream in streams:
                next(stream)
                stream.close()


def test_a_model_is_loaded_beside_a_loop() -> None:
    async def main() -> str:
        async with await AsyncLLM.create(context=256) as llm:
            score = await llm.score("A slice is")
            row = await llm.logits("A slice is", last=True)
            assert row.shape == (1, llm.vocab_size) and len(score.logprobs) == len(score.token_ids) - 1
            assert await llm.adapters.names() == []
            chat = await llm.chat([{"role": "user", "content": "Hello"}], GREEDY)
            assert (await llm.metrics())["running"] == 0
            return chat[0].outputs[0].text

    with LLM(context=256) as llm:
        (alone,) = llm.chat([{"role": "user", "content": "Hello"}], GREEDY)
        assert asyncio.run(main()) == alone.outputs[0].text


def test_an_import_takes_few_modules() -> None:
    script = "import sys; had = set(sys.modules); import kernmill; print(*(set(sys.modules) - had))"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    heavy = {"asyncio", "dataclasses", "enum", "inspect", "json", "logging", "numpy", "re", "typing"}
    assert "kernmill.llm" in told.split() and not heavy & set(told.split())


def test_values_are_shown_and_compared() -> None:
    params = SamplingParams(seed=7, stop=["x"], structured_outputs=StructuredOutputsParams(choice=["a", "b"]))
    same = params.clone()
    assert same == params and same is not params
    shown = repr(params)
    assert shown.startswith("SamplingParams(n=1, presence_penalty=0.0, ") and "seed=7, stop=['x']" in shown
    assert eval(shown, {**vars(kernmill)}) == params
    same.seed = 8
    assert same != params and params.seed == 7 and params != vars(params)
    with pytest.raises(TypeError, match="unhashable"):
        hash(params)
    for copy in (pickle.loads(pickle.dumps(params)), copies.deepcopy(params)):
        assert copy == params


def test_the_code_of_the_document_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs/user/python.md").read_text()
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert len(blocks) >= 7
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(blocks)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
