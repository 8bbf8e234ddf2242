"""Where the preset `faithful` loses on SmolLM2: the KL divergence of single roundings from float32.

    python tools/smollm2/sources.py MODEL.gguf OUT

OUT has the tokens and logits of reference.py. Each line rounds only what it names, by the rules of docs/numerics.md (tools/oracle/quant.py),
and multiplies in float32.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from compare import compare
from reference import File, logits

sys.path.append(str(Path(__file__).resolve().parents[1] / "oracle"))
from quant import dequantised, dequantised_q8, int8_matrix  # noqa: E402

KINDS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"]


class Rounded(torch.nn.Module):
    """A matrix product whose weights, activations, both or neither are rounded."""

    def __init__(self, linear):
        super().__init__()
        self.plain = linear.weight.detach()
        self.int8 = dequantised(int8_matrix(self.plain)).contiguous()
        self.weights = self.activations = False

    def forward(self, x):
        if self.activations:
            x = dequantised_q8(x.flatten(0, 1)).reshape(x.shape)
        return x @ (self.int8 if self.weights else self.plain).T


def rounded_products(model):
    """(kind, layer or None) -> product, put in the place of the model's own."""
    products = {}
    for name, module in list(model.named_modules()):
        if isinstance(module, torch.nn.Linear):
            parent, _, kind = name.rpartition(".")
            product = Rounded(module)
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
    model = File(args.model).model()
    products = rounded_products(model)

    def show(what, weights, activations):
        for key, product in products.items():
            product.weights, product.activations = weights(*key), activations(*key)
        figures = compare(logits(model, tokens), expected)
        print(f"{what:40} mean KL {figures['mean_kl']:.2e}, max {figures['max_kl']:.2e}, other argmax {figures['other_argmax']}", flush=True)

    every, none = (lambda *_: True), (lambda *_: False)
    show("nothing", none, none)
    show("weights and activations", every, every)
    show("weights", every, none)
    show("activations", none, every)
    for kind in KINDS:
        only = lambda k, _, kind=kind: k == kind
        show(f"weights of {kind}", only, none)
        show(f"activations of {kind}", none, only)
    for layer in range(model.config.num_hidden_layers):
        show(f"activations of layer {layer}", none, lambda _, at, layer=layer: at == layer)


if __name__ == "__main__":
    main()
