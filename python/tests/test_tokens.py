"""Texts are those of the program, however they are asked for."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import call, run
from kernmill import LLM, AsyncLLM, SamplingParams

PROMPTS = ["A slice is", "# References and Borrowing\n\nA reference is", "fn main() {"]
PARAMS: list[dict[str, Any]] = [
    {"temperature": 0.0, "max_tokens": 24},
    {"temperature": 0.8, "top_p": 0.9, "seed": 7, "max_tokens": 24},
    {"temperature": 1.1, "top_k": 40, "min_p": 0.02, "seed": 3, "repetition_penalty": 1.1, "max_tokens": 16},
    {"temperature": 0.5, "seed": 1, "presence_penalty": 0.5, "frequency_penalty": 0.25, "max_tokens": 16},
]
OPTIONS = {
    "temperature": "--temp",
    "top_p": "--top-p",
    "top_k": "--top-k",
    "min_p": "--min-p",
    "seed": "--seed",
    "max_tokens": "--max-tokens",
    "repetition_penalty": "--repeat-penalty",
    "presence_penalty": "--presence-penalty",
    "frequency_penalty": "--frequency-penalty",
}

Model = tuple[LLM, list[str]]


def expected(model: list[str], prompt: str, params: dict[str, Any]) -> dict[str, Any]:
    """The program's report of this text."""
    # What the program's own defaults are is not what SamplingParams has.
    options = {"top_p": 1.0, **params}
    given = [word for name, value in options.items() for word in (OPTIONS[name], value)]
    return run(*model, "--prompt", prompt, *given)


def test_texts_are_those_of_the_program(model: Model) -> None:
    llm, arguments = model
    for params in PARAMS:
        outputs = llm.generate(PROMPTS, SamplingParams(**params))
        for prompt, output in zip(PROMPTS, outputs, strict=True):
            report = expected(arguments, prompt, params)
            (completion,) = output.outputs
            assert completion.token_ids == report["tokens"], (prompt, params)
            assert completion.text == report["text"]
            assert output.prompt == prompt and len(output.prompt_token_ids) == report["prompt_tokens"]
            ends = {"max_tokens": "length", "context": "length"}
            assert completion.finish_reason == ends.get(report["stop"], "stop")


def test_defaults_are_those_of_the_program(nano: LLM) -> None:
    report = run("--prompt", PROMPTS[0])
    assert nano(PROMPTS[0]) == report["text"]


def test_streams_have_the_same_tokens(model: Model) -> None:
    llm, arguments = model
    for params in PARAMS[:2]:
        report = expected(arguments, PROMPTS[0], params)
        with llm.stream(PROMPTS[0], SamplingParams(**params)) as stream:
            deltas = list(stream)
        assert [token for delta in deltas for token in delta.token_ids] == report["tokens"]
        assert "".join(delta.text for delta in deltas) == report["text"]
        assert stream.output is not None and stream.output.outputs[0].token_ids == report["tokens"]
        assert [delta.finish_reason for delta in deltas if delta.finish_reason] == [
            stream.output.outputs[0].finish_reason
        ]


def test_stop_strings_end_a_text_where_the_program_ends_it(nano: LLM) -> None:
    report = run("--prompt", PROMPTS[1], "--temp", 0, "-n", 40, "--stop", "the")
    params = SamplingParams(temperature=0, max_tokens=40, stop="the")
    (completion,) = nano.generate(PROMPTS[1], params)[0].outputs
    assert report["stop"] == "stop_string", report
    assert (completion.text, completion.token_ids) == (report["text"], report["tokens"])
    assert (completion.finish_reason, completion.stop_reason) == ("stop", "the")
    params.include_stop_str_in_output = True
    assert nano(PROMPTS[1], params) == report["text"] + "the"


def test_threads_get_their_own_texts(nano: LLM) -> None:
    params = {"temperature": 0.0, "max_tokens": 40}
    found: dict[str, list[int]] = {}

    def make(prompt: str) -> None:
        found[prompt] = nano.generate(prompt, SamplingParams(**params))[0].outputs[0].token_ids

    threads = [threading.Thread(target=make, args=(prompt,)) for prompt in PROMPTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for prompt in PROMPTS:
        assert found[prompt] == expected([], prompt, params)["tokens"]


def test_a_thread_of_python_goes_on_meanwhile(nano: LLM) -> None:
    count, is_done = 0, False

    def spin() -> None:
        nonlocal count
        while not is_done:
            count += 1

    thread = threading.Thread(target=spin)
    thread.start()
    before = count
    nano.generate("A", SamplingParams(temperature=0, max_tokens=200, ignore_eos=True))
    after, is_done = count, True
    thread.join()
    assert after > before + 1000


async def test_tasks_have_the_same_tokens_and_take_turns(model: Model) -> None:
    sync, arguments = model
    params = {"temperature": 0.0, "max_tokens": 24}
    wanted = [expected(arguments, prompt, params)["tokens"] for prompt in PROMPTS]
    order: list[int] = []
    async with await AsyncLLM.create(*arguments, context=1024) as llm:

        async def follow(number: int) -> list[int]:
            tokens: list[int] = []
            async for delta in llm.stream(PROMPTS[number], SamplingParams(**params)):
                tokens += delta.token_ids
                order.append(number)
            return tokens

        found = await asyncio.gather(*(follow(number) for number in range(len(PROMPTS))))
        outputs = await llm.generate(PROMPTS, SamplingParams(**params))
    assert list(found) == wanted
    assert [output.outputs[0].token_ids for output in outputs] == wanted
    # None of them waits until another has ended.
    assert sorted(order) != order
    assert sync.model == llm.model


def test_loops_may_follow_each_other() -> None:
    llm = AsyncLLM(context=256)
    params = SamplingParams(temperature=0, max_tokens=8)
    texts = [asyncio.run(llm.generate("A slice is", params))[0].outputs[0].text for _ in range(3)]
    assert texts[0] == texts[1] == texts[2] == run("--prompt", "A slice is", "--temp", 0, "-n", 8)["text"]
    asyncio.run(llm.close())


def test_conversations_are_answered_as_by_the_program(model: Model, tmp_path: Path) -> None:
    llm, arguments = model
    messages = [
        [{"role": "user", "content": "What is a slice?"}],
        [
            {"role": "system", "content": "Answer briefly."},
            {"role": "user", "content": "What is a vector?"},
            {"role": "assistant", "content": "A list that grows."},
            {"role": "user", "content": [{"type": "text", "text": "And a slice?"}]},
        ],
    ]
    fields = {"temperature": 0, "max_tokens": 40}
    lines = [{"id": str(at), "messages": one, **fields} for at, one in enumerate(messages)]
    requests, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
    requests.write_text("\n".join(map(json.dumps, lines)))
    call("batch", *arguments, requests, "-o", answers, "--date", "none", "--quiet")
    read = {line["custom_id"]: line for line in map(json.loads, answers.read_text().splitlines())}
    outputs = llm.chat(messages, SamplingParams(temperature=0, max_tokens=40))
    for at, output in enumerate(outputs):
        body = read[str(at)]["response"]["body"]
        message = body["choices"][0]["message"]
        (completion,) = output.outputs
        assert completion.text == message["content"]
        assert completion.reasoning == message.get("reasoning")
        assert completion.finish_reason == body["choices"][0]["finish_reason"]
        assert len(output.prompt_token_ids) == body["usage"]["prompt_tokens"]
        with llm.stream_chat(messages[at], SamplingParams(temperature=0, max_tokens=40)) as stream:
            deltas = list(stream)
        said = "".join(delta.text for delta in deltas if delta.part in ("answer", "preamble"))
        assert said == completion.text
        thought = "".join(delta.text for delta in deltas if delta.part == "reasoning")
        assert thought == (completion.reasoning or "")
        follow_up = [*messages[at], completion.message(), {"role": "user", "content": "Why?"}]
        assert len(llm.chat_prompt(follow_up)) > len(output.prompt_token_ids)


def test_adapters_are_those_of_the_program(tmp_path: Path, fixtures: Path) -> None:
    base, adapter = fixtures / "oracle/llama-plain", fixtures / "adapters/all-linear"
    ids = tmp_path / "ids.json"
    ids.write_text("[1, 2, 3, 4, 5]")
    given = (base, "--tokens", ids, "--temp", 0, "-n", 12)
    plain, adapted = run(*given)["tokens"], run(*given, "--lora", f"poet={adapter}")["tokens"]
    weighted = run(*given, "--lora", f"poet={adapter}:0.5")["tokens"]
    assert plain != adapted
    params = SamplingParams(temperature=0, max_tokens=12)
    with LLM(base) as llm:

        def tokens(adapter: Any = None) -> list[int]:
            return llm.generate([[1, 2, 3, 4, 5]], params, adapter=adapter)[0].outputs[0].token_ids

        assert tokens() == plain and llm.adapters.names() == []
        assert llm.adapters.load("poet", adapter) > 0
        assert tokens("poet") == adapted and tokens() == plain
        assert tokens({"poet": 0.5}) == weighted
        assert "poet" in llm.adapters and llm.adapters.unload("poet") and not llm.adapters.unload("poet")
        with pytest.raises(ValueError, match="no adapter `poet` is loaded"):
            tokens("poet")
    with LLM(base, adapters={"poet": adapter}) as llm:
        assert tokens(["poet"]) == adapted


def test_vectors_are_those_of_the_program(tmp_path: Path) -> None:
    texts = ["A slice is a view.", "Threads may panic."]
    nano = Path(__file__).resolve().parents[2] / "model-specs/nano"
    lines = call("embed", nano / "nano.toml", "--weights", nano, "--vectors", "mean", *texts).splitlines()
    plan = tmp_path / "mean.plan"
    call("compile", nano / "nano.toml", "--weights", nano, "--vectors", "mean", "-o", plan)
    for options in ({"vectors": "mean"}, {"model": plan}):
        with LLM(**options) as llm:
            assert llm.embed(texts).tolist() == [json.loads(line) for line in lines]
            assert llm.embed(texts[0], dimensions=16).shape == (1, 16)
            with pytest.raises(ValueError, match="makes vectors of texts"):
                llm.generate(texts[0])
            with pytest.raises(ValueError, match="makes vectors of texts"):
                llm.logits(texts[0])
