"""Where the preset `faithful` loses on SmolLM2: the KL divergence of single roundings from float32.

    python tools/smollm2/sources.py MODEL.gguf OUT

OUT has the tokens and logits of reference.py. Each line rounds only what it names, by the rules of docs/dev/numerics.md (tools/oracle/quant.py, and
below the scales of blocks on grids), and multiplies in float32.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from compare import compare
from reference import LAYER, File, logits

sys.path.append(str(Path(__file__).resolve().parents[1] / "oracle"))
from quant import BLOCK, dequantised, dequantised_q8, int8_matrix, scale_up_to_f16  # noqa: E402

KINDS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"]


TRIED = 15  # quotients of a block's step
BLOCKS = {"Q4_1": 20, "Q8_0": 34}  # bytes of a block, which begins with the f16 step


def steps(file):
    """By a linear module's name: the step of each of its weight's blocks, f32 [rows, k/32]."""
    steps = {}
    for tensor in file.reader.tensors:
        if tensor.tensor_type.name not in BLOCKS:
            continue
        blocks = tensor.data.reshape(tensor.data.shape[0], -1, BLOCKS[tensor.tensor_type.name])
        step = torch.from_numpy(blocks[:, :, :2].copy().view("<f2")[:, :, 0].astype("f4"))
        stem = tensor.name.removesuffix(".weight")
        if not stem.startswith("blk."):
            steps["lm_head"] = step
            continue
        _, layer, kind = stem.split(".")
        heads = {"attn_q": "head_count", "attn_k": "head_count_kv"}
        if kind in heads:
            count = file.value(f"llama.attention.{heads[kind]}")
            step = step.reshape(count, -1, 2, step.shape[1]).swapaxes(1, 2).reshape(step.shape)
        steps[f"model.layers.{layer}.{LAYER[kind]}"] = step
    return steps


def on_grid(weight, step):
    """f32 [rows, k] whose blocks have `step` f32 [rows, k/32] -> what int8 makes of it, f32 [rows, k]."""
    grouped = weight.unflatten(1, (-1, BLOCK))  # [rows, k/32, 32]
    amax = grouped.abs().amax(-1)
    most = torch.floor(127.5 * step.abs() / amax)
    best, least = torch.zeros_like(grouped), torch.full_like(amax, torch.inf)
    for tried in range(TRIED + 1):
        if tried == 0:
            scale = scale_up_to_f16(amax / 127.0)
        else:
            divisor = most - (tried - 1)
            scale = torch.where(divisor >= 1, step.abs() / divisor.clamp(min=1), 0.0).half().float()
        inverse = torch.where(scale == 0, 0.0, 1.0 / scale).unsqueeze(-1)
        rounded = torch.round((grouped * inverse).clamp(-127, 127)) * scale.unsqueeze(-1)
        error = ((grouped - rounded) ** 2).sum(-1)
        better = error < least
        least = torch.where(better, error, least)
        best = torch.where(better.unsqueeze(-1), rounded, best)
    return best.flatten(1)


class Rounded(torch.nn.Module):
    """A matrix product whose weights, activations, both or neither are rounded."""

    def __init__(self, linear, step):
        super().__init__()
        self.plain = linear.weight.detach()
        self.on_grid = on_grid(self.plain, step).contiguous()
        self.by_amax = dequantised(int8_matrix(self.plain)).contiguous()
        self.int8 = self.on_grid
        self.weights = self.activations = False

    def forward(self, x):
        if self.activations:
            x = dequantised_q8(x.flatten(0, 1)).reshape(x.shape)
        return x @ (self.int8 if self.weights else self.plain).T


def rounded_products(model, steps):
    """(kind, layer or None) -> product, put in the place of the model's own."""
    products = {}
    for name, module in list(model.named_modules()):
        if isinstance(module, torch.nn.Linear):
            parent, _, kind = name.rpartition(".")
            product = Rounded(module, steps[name])
            setattr(model.get_submodule(parent) if parent else model, kind, product)
            parts = name.split(".")
            products[kind, int(parts[2]) if "layers" in parts else None] = product
    return products


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    tokens = json.loads((args.out / "tokens.json").read_text())
    expected = load_file(args.out / "reference.safetensors")["logits"]
    file = File(args.model)
    model = file.model()
    products = rounded_products(model, steps(file))

    def show(what, weights, activations):
        for key, product in products.items():
            product.weights, product.activations = weights(*key), activations(*key)
        figures = compare(logits(model, tokens), expected)
        print(f"{what:40} mean KL {figures['mean_kl']:.2e}, max {figures['max_kl']:.2e}, other argmax {figures['other_argmax']}", flush=True)

    every, none = (lambda *_: True), (lambda *_: False)
    last = model.config.num_hidden_layers - 1
    behind = lambda kind, layer: kind == "lm_head" or layer == last and kind in ("gate_proj", "up_proj", "down_proj")
    show("nothing", none, none)
    show("weights and activations", every, every)
    show("the same but behind the last attention", every, lambda *key: not behind(*key))
    show("weights", every, none)
    for product in products.values():
        product.int8 = product.by_amax
    show("weights by their largest alone", every, none)
    for product in products.values():
        product.int8 = product.on_grid
    show("activations", none, every)
    show("activations but behind the last attention", none, lambda *key: not behind(*key))
    for kind in KINDS:
        only = lambda k, _, kind=kind: k == kind
        show(f"weights of {kind}", only, none)
        show(f"activations of {kind}", none, only)
    for layer in range(model.config.num_hidden_layers):
        show(f"activations of layer {layer}", none, lambda _, at, layer=layer: at == layer)


if __name__ == "__main__":
    main()
