"""What each branch of a trained model adds to the residual stream, relative to it: the scale on which
`true_width.py --branch-gain` is to be read.

    python tools/oracle/branch_gain.py CHECKPOINT TOKENS.safetensors

CHECKPOINT is a GPT-OSS directory that tools/nano/evaluate.py can load, TOKENS.safetensors holds `tokens` i32 [T].
Prints, for attention and experts of every layer, the median over positions of |branch| / |residual|.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "nano"))
from evaluate import load  # noqa: E402


def norms(x: torch.Tensor) -> torch.Tensor:
    """[1, T, hidden] -> [T]."""
    return x.detach().reshape(-1, x.shape[-1]).norm(dim=-1)


def main() -> None:
    """Runs the model once with hooks on every branch and on the norm before it."""
    loaded = load(Path(sys.argv[1]))
    model = loaded[0] if isinstance(loaded, tuple) else loaded
    tokens = load_file(sys.argv[2])["tokens"].long()  # [T]
    branches: list[tuple[str, torch.Tensor]] = []
    residuals: list[torch.Tensor] = []
    for index, layer in enumerate(model.model.layers):
        for name, branch, norm in (
            ("attention", layer.self_attn, layer.input_layernorm),
            ("experts", layer.mlp, layer.post_attention_layernorm),
        ):
            label = f"layer {index} {name}"
            branch.register_forward_hook(
                lambda _, __, out, label=label: branches.append((label, norms(out[0] if isinstance(out, tuple) else out)))
            )
            norm.register_forward_pre_hook(lambda _, args: residuals.append(norms(args[0])))
    with torch.no_grad():
        model(input_ids=tokens[None])
    medians = [(label, (b / r).median().item()) for (label, b), r in zip(branches, residuals)]
    for label, ratio in medians:
        print(f"{label:20} {ratio:.3f}")
    print(f"{'median of these':20} {torch.tensor([ratio for _, ratio in medians]).quantile(0.5).item():.3f}")


if __name__ == "__main__":
    main()
