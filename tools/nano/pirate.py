"""Train the adapter beside the nano model: a LoRA that answers as a pirate.

    python pirate.py [--model DIR] [--data DIR] [--out DIR] [--steps N]

Low-rank matrices on the four projections of attention, with the stored weights fixed below them. The
dialogues are those of train.py with other answers; reasoning, calls and JSON stay as they are. Written in
PEFT's format. Ends with the share of held-out dialogues that are answered exactly.
"""

import argparse
import json
import random
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch.nn.utils import parametrize

import evaluate
import exact
from batches import LENGTH, pack
from dialogues import KINDS, Maker
from harmony import vocabulary
from model import Branches
from prepare import data_dir
from wordings import pirate

SEED = 29
RANK, ALPHA = 4, 8
RATE = 1.5e-3
TOKENS = 2048                # tokens of a step
SHARES = {"talk": 12, "fact": 16, "add": 2, "subtract": 2, "multiply": 2, "copy": 1, "sort numbers": 2, "sort words": 2,
          "recall": 3, "tell": 2, "unknown": 3, "call": 1, "result": 2, "json": 1}
MODULES = ["q_proj", "k_proj", "v_proj", "o_proj"]


class Pirate(Maker):
    """Makes the same dialogues with a pirate's answers."""

    def __init__(self, seed, text):
        super().__init__(seed, text)
        self.shares = SHARES

    def dialogue(self, kind=None, held=False, with_functions=None):
        kind, conversation, made, learn = super().dialogue(kind, held, with_functions)
        for item in conversation["items"] + made:
            if "answer" in item:
                item["answer"] = pirate(item["answer"])
        return kind, conversation, made, learn


class LowRank(torch.nn.Module):
    """A weight [out, in] with what the adapter adds."""

    def __init__(self, weight):
        super().__init__()
        self.a = torch.nn.Parameter(torch.randn(RANK, weight.shape[1]) / weight.shape[1] ** 0.5)
        self.b = torch.nn.Parameter(torch.zeros(weight.shape[0], RANK))

    def forward(self, weight):
        return weight + ALPHA / RANK * self.b @ self.a


def adapt(model):
    """Puts the adapter into the model: name -> LowRank."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    parts = {}
    for index, layer in enumerate(model.layers):
        for name in MODULES:
            part = LowRank(getattr(layer.attention, name).weight)
            parametrize.register_parametrization(getattr(layer.attention, name), "weight", part)
            parts[f"base_model.model.model.layers.{index}.self_attn.{name}"] = part
    return parts


def write(parts, out):
    out.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, part in parts.items():
        tensors[f"{name}.lora_A.weight"] = part.a.detach().contiguous()
        tensors[f"{name}.lora_B.weight"] = part.b.detach().contiguous()
    save_file(tensors, out / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {"base_model_name_or_path": "nano", "bias": "none", "fan_in_fan_out": False, "inference_mode": True,
              "lora_alpha": ALPHA, "lora_dropout": 0.0, "modules_to_save": None, "peft_type": "LORA", "r": RANK,
              "target_modules": MODULES, "task_type": "CAUSAL_LM", "use_dora": False, "use_rslora": False}
    (out / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", help="directory of prepare.py's output (default: $KERNMILL_DATA)")
    parser.add_argument("--model", type=Path, default=root / "model-specs" / "nano")
    parser.add_argument("--out", type=Path, default=root / "model-specs" / "nano" / "pirate")
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--count", type=int, default=40, help="held-out dialogues of each kind")
    options = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    model = evaluate.nano(options.model)
    parts = adapt(model)
    words = vocabulary(tokenizer)
    maker = Pirate(SEED, (data_dir(options.data) / "train.txt").read_text(encoding="utf-8"))
    parameters = [p for part in parts.values() for p in part.parameters()]
    optimiser = torch.optim.AdamW(parameters, RATE, betas=(0.9, 0.98), weight_decay=0.0)
    average = None
    for step in range(options.steps):
        maker.random = random.Random(f"{SEED} {step}")
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 20, 1.2 * (1 - step / options.steps))
        tokens, targets, where = pack(maker, words, TOKENS // LENGTH)
        loss, _ = model.loss(tokens, targets, Branches(*where))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        optimiser.zero_grad()
        average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
        if step % 25 == 24:
            print(json.dumps({"step": step + 1, "loss": round(average, 4)}), flush=True)
    write(parts, options.out)
    held = Pirate(1000, maker.text)
    shares, _ = exact.report(model, ((kind, exact.examples(held, words, kind, options.count)) for kind in KINDS))
    for kind, share in shares.items():
        print(json.dumps({kind: share}))


if __name__ == "__main__":
    main()
