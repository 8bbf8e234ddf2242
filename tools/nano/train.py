"""Train the nano model and export it: tokenizer, training, quantisation, checks.

    python train.py [--data DIR] [--out DIR] [--fixtures DIR] [--minutes 50]

Needs the files written by prepare.py. The learning rate and the phases follow the share
of the wall-clock budget that has passed. From QUANTISE_FROM on, forward and backward
passes use the weights as they will be stored (experts in MXFP4, the rest in bfloat16;
the gradient passes straight through to the float32 masters), so what is exported is what
was trained. From LONG_FROM on, a part of the batches are sequences of LONG positions.
"""

import argparse
import ctypes
import hashlib
import json
import math
import multiprocessing
import os
import shutil
import time
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

import evaluate
import mxfp4
from model import COMPILE, Nano
from prepare import SEPARATOR, data_dir

SEED = 20
END = "<|endoftext|>"
SPLIT = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
])

LAYERS = 4
CONFIG = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "attention_bias": True,
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "hidden_size": 224,
    "head_dim": 32,
    "initial_context_length": 256,
    "initializer_range": 0.02,
    "intermediate_size": 192,
    "layer_types": ["sliding_attention", "full_attention"] * (LAYERS // 2),
    "max_position_embeddings": 2048,
    "num_attention_heads": 8,
    "num_experts_per_tok": 2,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": 2,
    "num_local_experts": 8,
    "output_router_logits": False,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "factor": 8.0,
        "original_max_position_embeddings": 256,
        "rope_type": "yarn",
        "truncate": False,
    },
    "rope_theta": 150000,
    "router_aux_loss_coef": 0.01,
    "sliding_window": 64,
    "swiglu_limit": 7.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "vocab_size": 3072,
}

LENGTH = 512                 # positions of a training sequence
LONG = 2048                  # positions of a long one
MICRO_TOKENS = 2048          # tokens of a worker's forward and backward pass
WORKERS = 2                  # single-threaded processes; each does one pass per step
QUANTISE_FROM = 0.70         # share of the budget
LONG_FROM = 0.75
LONG_EVERY = 4               # every so many optimiser steps is a long one
BALANCE = 0.01
PEAK = {"muon": 0.02, "embed": 6e-3, "head": 3e-3, "small": 4e-3}
DECAY = {"muon": 0.1, "embed": 0.02, "head": 0.05, "small": 0.0}


def keep_memory():
    """Keep freed memory in the process; returning it to the system costs page faults."""
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)              # M_MMAP_MAX
        libc.mallopt(-1, 2**31 - 1)      # M_TRIM_THRESHOLD
        libc.mallopt(-2, 256 << 20)      # M_TOP_PAD
    except (OSError, AttributeError):
        pass


def splitter(rule):
    """Cut a text by the rule and write its bytes as letters."""
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(rule), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def train_tokenizer(texts, path, special=()):
    """Train a byte-level BPE with the published model's splitting rule; END is the last id.

    With special tokens, which come before END, digits are cut one by one, so that no merge joins two.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = splitter(SPLIT.replace(r"\p{N}{1,3}", r"\p{N}") if special else SPLIT)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=CONFIG["vocab_size"] - 1 - len(special), show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.pre_tokenizer = splitter(SPLIT)
    tokenizer.add_special_tokens([*special, END])
    # Every text of the training began with it, so a prompt does too.
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", pair=f"{END} $A {END}:1 $B:1", special_tokens=[(END, tokenizer.token_to_id(END))])
    assert tokenizer.get_vocab_size() == CONFIG["vocab_size"]
    tokenizer.save(str(path), pretty=False)
    return tokenizer


def encode_pages(tokenizer, text):
    """Return one stream of token ids, END before each page."""
    end, stream = tokenizer.token_to_id(END), []
    for page in tokenizer.encode_batch_fast(text.split(SEPARATOR), add_special_tokens=False):
        stream.append(end)
        stream.extend(page.ids)
    return torch.tensor(stream)


def orthogonal(update):
    """Approximate the nearest orthogonal matrix of update [..., r, c] (Newton-Schulz)."""
    x = update / (update.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.mT if tall else x


def summed(tensors):
    """Return the sums over the workers of each of a list of tensors."""
    flat = torch.cat([t.reshape(-1) for t in tensors])
    dist.all_reduce(flat)
    parts = flat.split([t.numel() for t in tensors])
    return [part.view_as(t) for part, t in zip(parts, tensors)]


class Muon(torch.optim.Optimizer):
    """Momentum with orthogonalised updates for the matrices of the hidden layers."""

    def __init__(self, parameters, lr, weight_decay):
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay, "momentum": 0.95})

    @torch.no_grad()
    def step(self):
        """Each worker orthogonalises its share of the matrices; all add all updates."""
        (group,) = self.param_groups
        updates = []
        for index, p in enumerate(group["params"]):
            if index % WORKERS != dist.get_rank():
                updates.append(torch.zeros_like(p))
                continue
            state = self.state[p]
            if not state:
                state["momentum"] = torch.zeros_like(p)
            momentum = state["momentum"]
            momentum.lerp_(p.grad, 1 - group["momentum"])
            update = orthogonal(p.grad.lerp(momentum, group["momentum"]))
            updates.append(update * max(1.0, p.shape[-2] / p.shape[-1]) ** 0.5)
        for p, update in zip(group["params"], summed(updates)):
            p.mul_(1 - group["lr"] * group["weight_decay"])
            p.add_(update, alpha=-group["lr"])


def optimisers(model):
    """Return [Muon, AdamW] over all parameters; each group carries its peak rate."""
    groups = {"muon": [], "embed": [], "head": [], "small": []}
    for name, p in model.named_parameters():
        if name in ("embed", "lm_head"):
            groups["embed" if name == "embed" else "head"].append(p)
        elif p.ndim >= 2 and "bias" not in name and "router" not in name:
            groups["muon"].append(p)
        else:
            groups["small"].append(p)
    muon = Muon(groups["muon"], PEAK["muon"], DECAY["muon"])
    adam = torch.optim.AdamW(
        [{"params": groups[g], "lr": PEAK[g], "weight_decay": DECAY[g]} for g in ("embed", "head", "small")],
        betas=(0.9, 0.98), eps=1e-10, fused=True)
    for optimiser in (muon, adam):
        for group in optimiser.param_groups:
            group["peak"] = group["lr"]
    return [muon, adam]


def rate(progress):
    """Share of the peak learning rate at this share of the budget."""
    if progress < 0.01:
        return 0.1 + 90 * progress
    return min(1.0, max(0.0, 1 - progress) / 0.75 + 0.01)


quantise = torch.compile(mxfp4.nearest, dynamic=False) if COMPILE else mxfp4.nearest


class Stored:
    """Within the context the model's weights are as stored; the masters come back after."""

    def __init__(self, model):
        self.model = model

    @torch.no_grad()
    def __enter__(self):
        self.masters = [(p, p.data) for p in self.model.parameters()]
        for name, p in self.model.named_parameters():
            if name.endswith(("experts.gate_up", "experts.down")):
                p.data = quantise(p.data)[0]
            else:
                p.data = p.data.bfloat16().float()

    def __exit__(self, *_):
        for p, data in self.masters:
            p.data = data


def batch(stream, length, rows, end, generator):
    """Random windows: tokens and targets [rows, length]; three of four begin with END."""
    start = torch.randint(0, len(stream) - length - 1, (rows,), generator=generator)
    window = stream[start[:, None] + torch.arange(length + 1)]
    begin = torch.rand(rows, generator=generator) < 0.75
    shifted = torch.cat((torch.full((rows, 1), end), window[:, :-1]), 1)
    window = torch.where(begin[:, None], shifted, window)
    return window[:, :-1].contiguous(), window[:, 1:].contiguous()


@torch.no_grad()
def heldout_bits(model, tokens, size, end):
    """Bits per byte of tokens by the procedure of evaluate.py, with the training code."""
    total = 0.0
    for inputs, targets in evaluate.chunks(tokens, end):
        total += model.loss(inputs[None], targets[None])[0].item() * len(targets)
    return total / math.log(2) / size


def warm_up(model, stream):
    """Run each shape once, so that the fused steps are compiled before the clock starts."""
    generator, end = torch.Generator().manual_seed(SEED), model.config["vocab_size"] - 1
    with Stored(model):
        for length in (LENGTH, LENGTH, LONG):
            loss, balance = model.loss(*batch(stream, length, MICRO_TOKENS // length, end, generator))
            (loss + balance).backward()
    model.zero_grad(set_to_none=True)


def train(model, stream, heldout, heldout_bytes, minutes, checkpoint):
    """Train within the wall-clock budget; return a record of the run.

    checkpoint() is called once after a tenth of the budget.
    """
    rank = dist.get_rank()
    generator = torch.Generator().manual_seed(SEED + rank)
    end, steps = model.config["vocab_size"] - 1, optimisers(model)
    warm_up(model, stream)
    dist.barrier()
    parameters = list(model.parameters())
    began, step, seen, report, average = time.time(), 0, 0, 0.0, None
    log = []
    while True:
        clock = torch.tensor([(time.time() - began) / (60 * minutes)], dtype=torch.float64)
        dist.broadcast(clock, 0)
        progress = clock.item()
        if progress >= 1:
            break
        for optimiser in steps:
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * rate(progress)
        length = LONG if progress > LONG_FROM and step % LONG_EVERY == 0 else LENGTH
        stored = Stored(model)
        if progress > QUANTISE_FROM:
            stored.__enter__()
        tokens, targets = batch(stream, length, MICRO_TOKENS // length, end, generator)
        loss, balance = model.loss(tokens, targets)
        (loss + BALANCE * balance).backward()
        average = loss.item() if average is None else 0.96 * average + 0.04 * loss.item()
        if progress > QUANTISE_FROM:
            stored.__exit__()
        for p, total in zip(parameters, summed([p.grad for p in parameters])):
            p.grad = total / WORKERS
        for optimiser in steps:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        step, seen = step + 1, seen + WORKERS * MICRO_TOKENS
        if rank == 0 and (step in (5, 20, 50, 100) or progress >= report):
            speed = seen / (time.time() - began)
            line = {"progress": round(progress, 3), "step": step, "tokens": seen,
                    "loss": round(average, 4), "balance": round(balance.item(), 3), "tokens_per_second": round(speed)}
            if progress >= report and step > 20:
                stored = Stored(model)
                with stored:
                    line["heldout_bits_per_byte"] = round(heldout_bits(model, heldout, heldout_bytes, end), 4)
                report = max(report + 0.1, progress)
            if checkpoint and progress >= 0.1:
                checkpoint()
                checkpoint = None
            log.append(line)
            print(json.dumps(line), flush=True)
    return {"minutes": minutes, "steps": step, "tokens": seen, "log": log}


def export(model):
    """Return the published layout's tensors: name -> uint8 or bfloat16 tensor."""
    out = {"model.embed_tokens.weight": model.embed, "model.norm.weight": model.norm,
           "lm_head.weight": model.lm_head}
    for index, layer in enumerate(model.layers):
        prefix = f"model.layers.{index}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            out[f"{prefix}{name}.weight"] = getattr(layer, name)
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            linear = getattr(layer.attention, name)
            out[f"{prefix}self_attn.{name}.weight"] = linear.weight
            out[f"{prefix}self_attn.{name}.bias"] = linear.bias
        out[prefix + "self_attn.sinks"] = layer.attention.sinks
        experts = layer.experts
        out[prefix + "mlp.router.weight"] = experts.router.weight
        out[prefix + "mlp.router.bias"] = experts.router.bias
        # [E, 2, F, ...] -> rows alternate: even = gate, odd = up.
        blocks, scales = mxfp4.pack(experts.gate_up.data.transpose(1, 2).flatten(1, 2))
        out[prefix + "mlp.experts.gate_up_proj_blocks"] = blocks
        out[prefix + "mlp.experts.gate_up_proj_scales"] = scales
        out[prefix + "mlp.experts.gate_up_proj_bias"] = experts.gate_up_bias.data.transpose(1, 2).flatten(1, 2)
        blocks, scales = mxfp4.pack(experts.down.data)
        out[prefix + "mlp.experts.down_proj_blocks"] = blocks
        out[prefix + "mlp.experts.down_proj_scales"] = scales
        out[prefix + "mlp.experts.down_proj_bias"] = experts.down_bias
    return {name: (t.detach() if t.dtype == torch.uint8 else t.detach().bfloat16()).contiguous().clone()
            for name, t in sorted(out.items())}


def write_model(model, data, out, fixtures, tokenizer="tokenizer.json"):
    """Write config, weights, tokenizer and the text files."""
    config = dict(CONFIG, eos_token_id=CONFIG["vocab_size"] - 1, pad_token_id=CONFIG["vocab_size"] - 1)
    config["quantization_config"] = {
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                   "model.embed_tokens", "lm_head"],
        "quant_method": "mxfp4",
    }
    (out / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_file(export(model), out / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(data / tokenizer, out / "tokenizer.json")
    shutil.copy(data / "heldout.txt", out / "heldout.txt")
    shutil.copy(data / "corpus.json", out / "corpus.json")
    shutil.copy(data / "words.txt", fixtures / "words.txt")


def worker(rank, rendezvous, stream, heldout, heldout_bytes, minutes, checkpoint, result):
    """One of WORKERS equal processes; the first one puts (model, record) into result.

    Single-threaded workers that meet once per step lose less on a busy machine than
    threads that meet in every operation.
    """
    keep_memory()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=WORKERS)
    torch.manual_seed(SEED)
    model = Nano(CONFIG)
    record = train(model, stream, heldout, heldout_bytes, minutes,
                   (lambda: checkpoint(model)) if rank == 0 else None)
    if rank == 0:
        result.update(model=model, record=record)
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", help="directory of prepare.py's output (default: $KERNMILL_DATA)")
    parser.add_argument("--out", type=Path, default=root / "model-specs" / "nano")
    parser.add_argument("--fixtures", type=Path, default=root / "tests" / "fixtures" / "nano")
    parser.add_argument("--minutes", type=float, default=50.0, help="wall-clock budget of the training")
    options = parser.parse_args()
    data = data_dir(options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    options.fixtures.mkdir(parents=True, exist_ok=True)

    text = (data / "train.txt").read_text(encoding="utf-8")
    heldout_text = (data / "heldout.txt").read_text(encoding="utf-8")
    tokenizer = train_tokenizer(text.split(SEPARATOR), data / "tokenizer.json")
    stream = encode_pages(tokenizer, text)
    heldout = tokenizer.encode(heldout_text, add_special_tokens=False).ids
    print(json.dumps({"train_tokens": len(stream), "train_bytes": len(text.encode()),
                      "heldout_tokens": len(heldout)}), flush=True)

    rendezvous = data.resolve() / f"rendezvous-{os.getpid()}"
    shared = (rendezvous, stream, heldout, len(heldout_text.encode()), options.minutes)
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=worker, args=(rank, *shared, None, None)) for rank in range(1, WORKERS)]
    for process in others:
        process.start()
    result = {}
    worker(0, *shared, lambda model: write_model(model, data, options.out, options.fixtures), result)
    for process in others:
        process.join()
    rendezvous.unlink(missing_ok=True)
    model, record = result["model"], result["record"]
    torch.set_num_threads(WORKERS)
    write_model(model, data, options.out, options.fixtures)

    # The training code on the stored weights against transformers on the exported files.
    reference = evaluate.load(options.out)
    sample = torch.tensor([evaluate.fixture_tokens(heldout)])
    with torch.no_grad(), Stored(model):
        difference = (model.logits(sample) - evaluate.logits(reference, sample)).abs().max().item()
    print(json.dumps({"max_logit_difference_to_transformers": difference}), flush=True)
    assert difference < 1e-3, difference
    record["max_logit_difference_to_transformers"] = difference
    record["sha256"] = hashlib.sha256((options.out / "model.safetensors").read_bytes()).hexdigest()
    (data / "training.json").write_text(json.dumps(record, indent=1) + "\n")
    evaluate.run(options.out, options.fixtures, write=True)


if __name__ == "__main__":
    main()
