"""Second stage: teach the nano model to talk. The first is train.py, on text alone.

    python talk.py [--base DIR] [--data DIR] [--out DIR] [--fixtures DIR] [--tokens N] [--resume]

A tokenizer is trained on the text and on dialogues; the base model's embedding rows go over to its
tokens (a token that the base lacks gets the mean of its pieces). Then text and dialogues are trained
together. A row of dialogues has a segment for each: none sees another, and only what the model is to
say counts. The length of the run is a number of tokens. Checkpoints are written every few minutes to
the data directory; --resume goes on from the newest, also with another --tokens.
"""

import argparse
import json
import math
import multiprocessing
import os
import random
import time
from pathlib import Path

import torch
import torch.distributed as dist
from tokenizers import Tokenizer

import evaluate
import train as text_stage
from dialogues import Maker
from harmony import SPECIAL, Rendered, vocabulary
from model import Nano
from prepare import SEPARATOR, data_dir
from train import CONFIG, END, LENGTH, LONG, MICRO_TOKENS, WORKERS, Stored, batch, heldout_bits

SEED = 28
PEAK = {"muon": 0.015, "embed": 5e-3, "head": 2.5e-3, "small": 3e-3}
QUANTISE_FROM = 0.70         # share of the tokens
LONG_EVERY = 16              # every so many steps is one of long rows of text
TEXT_EVERY = 2               # of the other passes every so many has a row of text
TOKENIZER_DIALOGUES = 6000
CHECKPOINT_SECONDS = 150
BALANCE = 0.01


def rendered(encode, special, item):
    """(inputs, targets) of a dialogue; targets are -1 where nothing is to learn."""
    _, conversation, made, learn = item
    out = Rendered(encode, special)
    out.prompt(conversation, learn)
    out.answer(conversation, made)
    return out.ids[:-1], out.wanted[1:]


def pack(examples, rows, length):
    """Rows of (tokens, targets, segments) [rows, length]; each row is filled with what still fits."""
    end = CONFIG["vocab_size"] - 1
    tokens = torch.full((rows, length), end)
    targets = torch.full((rows, length), -1)
    segments = torch.full((rows, length), -1)
    pending = list(examples)
    for row in range(rows):
        at, count = 0, 0
        while True:
            fit = next((n for n, (ids, _) in enumerate(pending) if len(ids) <= length - at), None)
            if fit is None:
                break
            ids, wanted = pending.pop(fit)
            tokens[row, at:at + len(ids)] = torch.tensor(ids)
            targets[row, at:at + len(ids)] = torch.tensor(wanted)
            segments[row, at:at + len(ids)] = count
            at, count = at + len(ids), count + 1
    return tokens, targets, segments


def step_batch(step, rank, stream, maker, words):
    """The tokens, targets and segments of a worker's pass; the same for the same step and rank."""
    generator = torch.Generator().manual_seed(SEED * 1_000_003 + step * WORKERS + rank)
    end = CONFIG["vocab_size"] - 1
    if step % LONG_EVERY == LONG_EVERY - 1:
        return *batch(stream, LONG, MICRO_TOKENS // LONG, end, generator), None
    rows = MICRO_TOKENS // LENGTH
    text_rows = 1 if (step + rank) % TEXT_EVERY == 0 else 0
    maker.at_step(step)
    maker.random = random.Random(f"{SEED} {step} {rank}")
    examples, size = [], 0
    while size < (rows - text_rows) * LENGTH * 1.25:
        example = rendered(*words, maker.dialogue())
        if len(example[0]) <= LENGTH:
            examples.append(example)
            size += len(example[0])
    parts = [pack(examples, rows - text_rows, LENGTH)]
    if text_rows:
        parts.append((*batch(stream, LENGTH, text_rows, end, generator), torch.zeros(text_rows, LENGTH).long()))
    return [torch.cat(part) for part in zip(*parts)]


def carry_over(base, tokenizer):
    """The base model with its embedding rows moved to this tokenizer's tokens."""
    old = Tokenizer.from_file(str(base / "tokenizer.json"))
    state = evaluate.dequantise(base / "model.safetensors")
    model = Nano(CONFIG)
    own = {}
    for name, value in state.items():
        name = name.removeprefix("model.").replace("embed_tokens.weight", "embed").replace("lm_head.weight", "lm_head")
        name = name.replace("self_attn", "attention").replace("mlp.router", "experts.router")
        name = name.replace("mlp.experts", "experts").replace("layernorm.weight", "layernorm")
        name = "norm" if name == "norm.weight" else name
        if name.endswith("gate_up_proj"):             # [E, D, 2F], gate and up alternate
            value = value.transpose(1, 2).unflatten(1, (-1, 2)).transpose(1, 2)
        elif name.endswith("gate_up_proj_bias"):
            value = value.unflatten(1, (-1, 2)).transpose(1, 2)
        elif name.endswith("down_proj"):
            value = value.transpose(1, 2)
        own[name.replace("_proj_bias", "_bias").replace("gate_up_proj", "gate_up").replace("down_proj", "down")] = value
    tables = {name: own.pop(name) for name in ("embed", "lm_head")}
    for name, table in tables.items():
        rows = torch.empty_like(table)
        for id_ in range(CONFIG["vocab_size"]):
            text = tokenizer.decode([id_], skip_special_tokens=False)
            pieces = old.encode(text, add_special_tokens=False).ids if "\ufffd" not in text else []
            same = old.token_to_id(tokenizer.id_to_token(id_))
            if same is not None:
                rows[id_] = table[same]
            elif pieces and tokenizer.id_to_token(id_) not in SPECIAL:
                rows[id_] = table[pieces].mean(0)
            else:
                rows[id_] = table.mean(0) + table.std(0) * torch.randn(table.shape[1])
        own[name] = rows
    missing, unexpected = model.load_state_dict({k: v.contiguous() for k, v in own.items()}, strict=False)
    assert not missing and not unexpected, (missing, unexpected)
    return model


def make_tokenizer(text, path):
    """The tokenizer of text and dialogues, with Harmony's special tokens."""
    maker, texts = Maker(SEED, text), text.split(SEPARATOR)
    for _ in range(TOKENIZER_DIALOGUES):
        out = []
        example = Rendered(lambda part, out=out: out.append(part) or [], dict.fromkeys(SPECIAL, 0))
        _, conversation, made, learn = maker.dialogue()
        example.prompt(conversation, learn)
        example.answer(conversation, made)
        texts.extend(out)
    text_stage.train_tokenizer(texts, path, SPECIAL)
    return Tokenizer.from_file(str(path))


def rate(progress):
    """Share of the peak learning rate at this share of the tokens."""
    if progress < 0.01:
        return 0.1 + 90 * progress
    return min(1.0, max(0.0, 1 - progress) / 0.75 + 0.01)


def checkpoints(data):
    """Steps of which every worker's checkpoint is there, ascending."""
    found = [{int(path.name.split("-")[1]) for path in data.glob(f"talk-*-{rank}.pt")} for rank in range(WORKERS)]
    return sorted(set.intersection(*found))


def save_checkpoint(data, step, rank, model, steps, record):
    path = data / f"talk-{step}-{rank}.pt"
    torch.save({"model": model.state_dict(), "steps": [optimiser.state_dict() for optimiser in steps],
                "record": record}, path.with_suffix(".tmp"))
    os.replace(path.with_suffix(".tmp"), path)
    dist.barrier()
    own = sorted((int(path.name.split("-")[1]), path) for path in data.glob(f"talk-*-{rank}.pt"))
    for _, old in own[:-2]:
        old.unlink(missing_ok=True)


def train(model, stream, heldout, heldout_bytes, text, tokenizer, data, tokens, resume, stop):
    """Train on `tokens` tokens; return a record of the run."""
    rank, end = dist.get_rank(), CONFIG["vocab_size"] - 1
    text_stage.PEAK.update(PEAK)
    steps = text_stage.optimisers(model)
    maker, words = Maker(SEED, text), vocabulary(tokenizer)
    record = {"step": 0, "cpu_seconds": [0.0] * WORKERS, "wall_seconds": 0.0, "log": []}
    known = checkpoints(data) if resume else []
    if known:
        stored = torch.load(data / f"talk-{known[-1]}-{rank}.pt", weights_only=False)
        model.load_state_dict(stored["model"])
        for optimiser, state in zip(steps, stored["steps"]):
            optimiser.load_state_dict(state)
        record = stored["record"]
    dist.barrier()
    parameters = list(model.parameters())
    total = math.ceil(tokens / (WORKERS * MICRO_TOKENS))
    began, cpu, saved, average = time.time(), time.process_time(), time.time(), None
    earlier, first = dict(record), record["step"]
    for step in range(first, min(total, stop or total)):
        progress = step / total
        for optimiser in steps:
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * rate(progress)
        stored = Stored(model)
        if progress >= QUANTISE_FROM:
            stored.__enter__()
        loss, balance = model.loss(*step_batch(step, rank, stream, maker, words))
        (loss + BALANCE * balance).backward()
        if progress >= QUANTISE_FROM:
            stored.__exit__()
        average = loss.item() if average is None else 0.96 * average + 0.04 * loss.item()
        for p, grad in zip(parameters, text_stage.summed([p.grad for p in parameters])):
            p.grad = grad / WORKERS
        for optimiser in steps:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        due = torch.tensor([float(time.time() - saved > CHECKPOINT_SECONDS), time.process_time() - cpu])
        used = [torch.zeros_like(due) for _ in range(WORKERS)]
        if step % 10 == 9 or step + 1 == total:
            dist.all_gather(used, due)
            record["step"] = step + 1
            record["cpu_seconds"] = [a + b[1].item() for a, b in zip(earlier["cpu_seconds"], used)]
            record["wall_seconds"] = earlier["wall_seconds"] + time.time() - began
            if step % 50 == 49 or step + 1 == total:
                speed = (step + 1 - first) * WORKERS * MICRO_TOKENS / (time.time() - began)
                line = {"step": step + 1, "of": total, "loss": round(average, 4), "balance": round(balance.item(), 3),
                        "cpu_minutes": round(sum(record["cpu_seconds"]) / 60, 1), "tokens_per_second": round(speed)}
                if rank == 0 and (step % 400 == 399 or step + 1 == total):
                    with Stored(model):
                        bits = heldout_bits(model, heldout, heldout_bytes, end)
                    line["heldout_bits_per_byte"] = round(bits, 4)
                record["log"].append(line)
                if rank == 0:
                    print(json.dumps(line), flush=True)
            if used[0][0] or step + 1 == total:
                save_checkpoint(data, step + 1, rank, model, steps, record)
                saved = time.time()
    record["tokens"] = record["step"] * WORKERS * MICRO_TOKENS
    return record


def worker(rank, rendezvous, options, data, result):
    """One of WORKERS equal, single-threaded processes; the first one puts (model, record) into result."""
    text_stage.keep_memory()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=WORKERS)
    torch.manual_seed(SEED)
    text = (data / "train.txt").read_text(encoding="utf-8")
    heldout = (data / "heldout.txt").read_text(encoding="utf-8")
    tokenizer = Tokenizer.from_file(str(data / "talk-tokenizer.json"))
    model = carry_over(options.base, tokenizer)
    stream = text_stage.encode_pages(tokenizer, text)
    ids = tokenizer.encode(heldout, add_special_tokens=False).ids
    record = train(model, stream, ids, len(heldout.encode()), text, tokenizer, data, options.tokens,
                   options.resume, options.stop)
    if rank == 0:
        result.update(model=model, record=record)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", help="directory of prepare.py's output (default: $KERNMILL_DATA)")
    parser.add_argument("--base", type=Path, help="what train.py wrote (default: text in the data directory)")
    parser.add_argument("--out", type=Path, default=root / "model-specs" / "nano")
    parser.add_argument("--fixtures", type=Path, default=root / "tests" / "fixtures" / "nano")
    parser.add_argument("--tokens", type=float, default=14.75e6, help="length of the training")
    parser.add_argument("--stop", type=int, help="end after this step, for a trial")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint")
    options = parser.parse_args()
    data = data_dir(options.data)
    options.base = options.base or data / "text"
    for directory in (options.out, options.fixtures):
        directory.mkdir(parents=True, exist_ok=True)
    if not (options.resume and (data / "talk-tokenizer.json").exists()):
        make_tokenizer((data / "train.txt").read_text(encoding="utf-8"), data / "talk-tokenizer.json")

    rendezvous = data.resolve() / f"rendezvous-{os.getpid()}"
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=worker, args=(rank, rendezvous, options, data, None)) for rank in range(1, WORKERS)]
    for process in others:
        process.start()
    result = {}
    worker(0, rendezvous, options, data, result)
    for process in others:
        process.join()
    rendezvous.unlink(missing_ok=True)
    (data / "talk.json").write_text(json.dumps(result["record"], indent=1) + "\n")
    model = result["model"]
    text_stage.write_model(model, data, options.out, options.fixtures, "talk-tokenizer.json")

    # The training code on the stored weights against transformers on the exported files.
    tokenizer = Tokenizer.from_file(str(options.out / "tokenizer.json"))
    ids = tokenizer.encode((data / "heldout.txt").read_text(encoding="utf-8"), add_special_tokens=False).ids
    sample = torch.tensor([evaluate.fixture_tokens(ids)])
    with torch.no_grad(), Stored(model):
        difference = (model.logits(sample) - evaluate.logits(evaluate.load(options.out), sample)).abs().max().item()
    print(json.dumps({"max_logit_difference_to_transformers": difference}), flush=True)
    assert difference < 1e-3, difference


if __name__ == "__main__":
    main()
