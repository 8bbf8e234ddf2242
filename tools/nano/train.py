"""Train the nano model and export it: tokenizer, training, quantisation, checks.

    python train.py [--data DIR] [--out DIR] [--fixtures DIR] [--tokens N] [--from DIR [--rate R]] [--resume]

Needs the files written by prepare.py. Text and dialogues are trained together; of the dialogues only what
the model is to say counts. The length of the run is a number of tokens, so its result does not depend on
the clock. From QUANTISE_FROM on, forward and backward passes use the weights as they will be stored
(experts in MXFP4, the rest in bfloat16; the gradient passes straight through to the float32 masters), so
what is exported is what was trained. --from goes on from an exported model: with its tokenizer, new
optimisers, a rate that warms up again, and stored weights in every pass. Checkpoints are written every few
minutes to the data directory; --resume goes on from the newest.
"""

import argparse
import ctypes
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
from batches import LENGTH, mixed, text_windows
from dialogues import Maker
from harmony import END, SPECIAL, Rendered, vocabulary
from model import COMPILE, HALF, Nano
from prepare import SEPARATOR, data_dir

SEED = 28
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

LONG = 2048                  # positions of a row of long text
MICRO_TOKENS = 2048          # tokens of a worker's forward and backward pass
WORKERS = 2                  # single-threaded processes; each does one pass per step
LONG_EVERY = 16              # every so many steps is one of long text
TEXT_ROWS = 1                # of the MICRO_TOKENS // LENGTH rows of the other passes
TOKENIZER_DIALOGUES = 6000
QUANTISE_FROM = 0.70         # share of the tokens
POLISH_TOKENS = 2e6          # after them
POLISH_RATE = 0.1            # share of the peak learning rate that it begins with
BALANCE = 0.01
CHECKPOINT_SECONDS = 150
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


def train_tokenizer(text, path):
    """Train a byte-level BPE on text and dialogues with the published model's splitting rule; END is the last id.

    Digits are cut one by one, so that no merge joins two.
    """
    maker, texts = Maker(SEED, text), text.split(SEPARATOR)
    for _ in range(TOKENIZER_DIALOGUES):
        out = []
        example = Rendered(lambda part, out=out: out.append(part) or [], dict.fromkeys(SPECIAL, 0))
        _, conversation, made, learn = maker.dialogue()
        example.prompt(conversation, learn)
        example.answer(conversation, made)
        texts.extend(out)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = splitter(SPLIT.replace(r"\p{N}{1,3}", r"\p{N}"))
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=CONFIG["vocab_size"] - 1 - len(SPECIAL), show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.pre_tokenizer = splitter(SPLIT)
    tokenizer.add_special_tokens([*SPECIAL, END])
    # Every text of the training began with it, so a prompt does too.
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", pair=f"{END} $A {END}:1 $B:1", special_tokens=[(END, tokenizer.token_to_id(END))])
    assert tokenizer.get_vocab_size() == CONFIG["vocab_size"]
    tokenizer.save(str(path), pretty=False)


def encode_pages(tokenizer, text):
    """Return one stream of token ids, END before each page."""
    end, stream = tokenizer.token_to_id(END), []
    for page in tokenizer.encode_batch_fast(text.split(SEPARATOR), add_special_tokens=False):
        stream.append(end)
        stream.extend(page.ids)
    return torch.tensor(stream)


def orthogonal(update):
    """Approximate the nearest orthogonal matrix of update [..., r, c] (Newton-Schulz)."""
    x = (update / (update.norm(dim=(-2, -1), keepdim=True) + 1e-7)).to(HALF)
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.mT if tall else x).float()


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


def rate(progress, again=None):
    """Share of the peak learning rate at this share of the tokens; above 1 it is the share of the polish, plus 1.

    `again`: the share that a training which goes on from an exported model rises to.
    """
    if progress >= 1:
        return POLISH_RATE * (2 - progress) + 0.005
    if again is not None:
        return min(again * (0.05 + 50 * progress), again + (POLISH_RATE - again) * progress)
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


@torch.no_grad()
def heldout_bits(model, tokens, size, end):
    """Bits per byte of tokens by the procedure of evaluate.py, with the training code."""
    total = 0.0
    for inputs, targets in evaluate.chunks(tokens, end):
        total += model.loss(inputs[None], targets[None])[0].item() * len(targets)
    return total / math.log(2) / size


def checkpoints(data):
    """Steps of which every worker's checkpoint is there, ascending."""
    found = [{int(path.name.split("-")[1]) for path in data.glob(f"train-*-{rank}.pt")} for rank in range(WORKERS)]
    return sorted(set.intersection(*found))


def save_checkpoint(data, step, rank, model, steps, record):
    path = data / f"train-{step}-{rank}.pt"
    torch.save({"model": model.state_dict(), "steps": [optimiser.state_dict() for optimiser in steps],
                "record": record}, path.with_suffix(".tmp"))
    os.replace(path.with_suffix(".tmp"), path)
    dist.barrier()
    own = sorted((int(path.name.split("-")[1]), path) for path in data.glob(f"train-*-{rank}.pt"))
    for _, old in own[:-2]:
        old.unlink(missing_ok=True)


def train(model, stream, heldout, heldout_bytes, text, tokenizer, data, options):
    """Train on as many tokens as the options say; return a record of the run."""
    rank, end = dist.get_rank(), CONFIG["vocab_size"] - 1
    steps = optimisers(model)
    maker, words = Maker(SEED, text), vocabulary(tokenizer)
    record = {"step": 0, "cpu_seconds": [0.0] * WORKERS, "wall_seconds": 0.0, "log": []}
    known = checkpoints(data) if options.resume else []
    if known:
        stored = torch.load(data / f"train-{known[-1]}-{rank}.pt", weights_only=False)
        model.load_state_dict(stored["model"])
        for optimiser, state in zip(steps, stored["steps"]):
            optimiser.load_state_dict(state)
        record = stored["record"]
    dist.barrier()
    parameters = list(model.parameters())
    main, polish = (math.ceil(part / (WORKERS * MICRO_TOKENS)) for part in (options.tokens, options.polish))
    total = main + polish
    again, quantise_from = (options.rate, 0.0) if options.source else (None, QUANTISE_FROM)
    began, cpu, saved, average = time.time(), time.process_time(), time.time(), None
    earlier, first = dict(record), record["step"]
    for step in range(first, min(total, options.stop or total)):
        progress = step / main if step < main else 1 + (step - main) / polish
        for optimiser in steps:
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * rate(progress, again)
        stored = Stored(model)
        if progress >= quantise_from:
            stored.__enter__()
        if step % LONG_EVERY == LONG_EVERY - 1:
            generator = torch.Generator().manual_seed(SEED * 1_000_003 + step * WORKERS + rank)
            tokens, targets = text_windows(stream, LONG, MICRO_TOKENS // LONG, end, generator)
            loss, balance = model.loss(tokens, targets)
        else:
            rows = MICRO_TOKENS // LENGTH
            # A model that goes on knows the text already: every other pass is of dialogues alone.
            text_rows = 0 if options.source and (step + rank) % 2 else TEXT_ROWS
            loss, balance = model.loss(*mixed(f"{SEED} {step} {rank}", stream, maker, words, rows, text_rows))
        (loss + BALANCE * balance).backward()
        if progress >= quantise_from:
            stored.__exit__()
        average = loss.item() if average is None else 0.96 * average + 0.04 * loss.item()
        for p, grad in zip(parameters, summed([p.grad for p in parameters])):
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


def write_model(model, data, out, fixtures):
    """Write config, weights, tokenizer and the text files."""
    config = dict(CONFIG, eos_token_id=CONFIG["vocab_size"] - 1, pad_token_id=CONFIG["vocab_size"] - 1)
    config["quantization_config"] = {
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                   "model.embed_tokens", "lm_head"],
        "quant_method": "mxfp4",
    }
    (out / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    save_file(export(model), out / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(data / "tokenizer.json", out / "tokenizer.json")
    shutil.copy(data / "heldout.txt", out / "heldout.txt")
    shutil.copy(data / "corpus.json", out / "corpus.json")
    shutil.copy(data / "words.txt", fixtures / "words.txt")


def worker(rank, rendezvous, options, data, result):
    """One of WORKERS equal, single-threaded processes; the first one puts (model, record) into result."""
    keep_memory()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=WORKERS)
    torch.manual_seed(SEED)
    text = (data / "train.txt").read_text(encoding="utf-8")
    heldout = (data / "heldout.txt").read_text(encoding="utf-8")
    tokenizer = Tokenizer.from_file(str(data / "tokenizer.json"))
    model = evaluate.nano(options.source) if options.source else Nano(CONFIG)
    stream = encode_pages(tokenizer, text)
    ids = tokenizer.encode(heldout, add_special_tokens=False).ids
    record = train(model, stream, ids, len(heldout.encode()), text, tokenizer, data, options)
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
    parser.add_argument("--tokens", type=float, default=30e6, help="length of the training")
    parser.add_argument("--polish", type=float, default=POLISH_TOKENS, help="length of the polish after it")
    parser.add_argument("--from", dest="source", type=Path, help="exported model to go on from")
    parser.add_argument("--rate", type=float, default=0.5, help="with --from: share of the peak learning rate")
    parser.add_argument("--stop", type=int, help="end after this step, for a trial")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint")
    options = parser.parse_args()
    data = data_dir(options.data)
    for directory in (options.out, options.fixtures):
        directory.mkdir(parents=True, exist_ok=True)
    if options.source:
        shutil.copy(options.source / "tokenizer.json", data / "tokenizer.json")
    elif not (options.resume and (data / "tokenizer.json").exists()):
        train_tokenizer((data / "train.txt").read_text(encoding="utf-8"), data / "tokenizer.json")

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
    (data / "training.json").write_text(json.dumps(result["record"], indent=1) + "\n")
    model = result["model"]
    write_model(model, data, options.out, options.fixtures)

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
