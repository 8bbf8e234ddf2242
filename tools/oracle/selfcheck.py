"""Checks the oracles themselves.

    python tools/oracle/selfcheck.py [tests/fixtures/oracle.tar]

1. The fixtures, made again, equal the committed ones: weights and configs bit for bit, logits within 1e-5.
2. The simulated graph with every quantisation left out gives transformers' float32 logits.
3. Running layer by layer gives the same float32 logits as the whole model at once.
4. Every part that a fixture is there to test has an effect on its logits.
"""

import argparse
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file

from checkpoint import Checkpoint, unpacked
from faithful import NONE, Simulation
from make_checkpoints import RECIPES, make
from reference import float32_logits_streamed

REMADE_TOLERANCE = 1e-5  # another machine's f32 matmuls may sum in another order
UNROUNDED_TOLERANCE = 2e-4  # transformers' order of sums and f32 rope frequencies against docs/dev/numerics.md
SMALLEST_EFFECT = 1e-2  # on the logits, anywhere, when a part is taken away


class Edited(Checkpoint):
    """A checkpoint with some config keys replaced and the tensors whose names end in `zeroed` set to zero."""

    def __init__(self, directory: Path, config: dict | None = None, zeroed: str = "\0"):
        super().__init__(directory)
        self.config = self.config | (config or {})
        self._zeroed = zeroed

    def raw(self, name: str) -> torch.Tensor:
        tensor = super().raw(name)
        return torch.zeros_like(tensor) if name.endswith(self._zeroed) else tensor


def check_remade(committed: Path, remade: Path) -> float:
    """Largest difference of the oracle logits; raises when files or weights differ."""
    files = sorted(p.name for p in committed.iterdir())
    expect(files == sorted(p.name for p in remade.iterdir()), f"{committed.name}: the files differ")
    worst = 0.0
    for name in files:
        if name == "oracle.safetensors":
            ours, theirs = load_file(remade / name), load_file(committed / name)
            expect(ours["tokens"].equal(theirs["tokens"]), f"{committed.name}: the tokens differ")
            for key in ("logits", "faithful_logits"):
                worst = max(worst, largest_difference(ours[key], theirs[key]))
        elif name.endswith(".safetensors"):
            ours, theirs = load_file(remade / name), load_file(committed / name)
            same = ours.keys() == theirs.keys() and all(ours[k].equal(theirs[k]) for k in ours)
            expect(same, f"{committed.name}/{name}: the tensors differ")
        else:
            expect((remade / name).read_bytes() == (committed / name).read_bytes(), f"{committed.name}/{name} differs")
    expect(worst <= REMADE_TOLERANCE, f"{committed.name}: remade logits differ by {worst:.1e}")
    return worst


def check_effects(directory: Path, tokens: torch.Tensor, logits: torch.Tensor) -> dict[str, float]:
    """Largest change of the float32 logits without each part."""
    config = Checkpoint(directory).config
    zeroed, edits = [], {}
    if config["model_type"] == "gpt_oss":
        zeroed = ["sinks", "q_proj.bias", "k_proj.bias", "v_proj.bias", "o_proj.bias", "router.bias",
                  "gate_up_proj_bias", "down_proj_bias"]
        edits["window"] = {"sliding_window": 1 << 20}
    edits["rope scaling"] = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}
    if config.get("rope_scaling") is None and "rope_parameters" not in config:
        edits.pop("rope scaling")
    variants = {name: Edited(directory, zeroed=name) for name in zeroed}
    variants |= {name: Edited(directory, config=edit) for name, edit in edits.items()}
    effects = {}
    for name, variant in variants.items():
        effects[name] = largest_difference(Simulation(variant, NONE).logits(tokens), logits)
        expect(effects[name] >= SMALLEST_EFFECT, f"{directory.name}: {name} has no effect ({effects[name]:.1e})")
    return effects


def largest_difference(a: torch.Tensor, b: torch.Tensor) -> float:
    return (a - b).abs().max().item()


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise SystemExit("selfcheck failed: " + message)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path, nargs="?", default=Path("tests/fixtures/oracle.tar"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary, unpacked(args.archive) as fixtures:
        for recipe in RECIPES:
            make(recipe, Path(temporary))
            directory = fixtures / args.archive.stem / recipe.name
            remade = check_remade(directory, Path(temporary) / recipe.name)

            checkpoint, oracle = Checkpoint(directory), load_file(directory / "oracle.safetensors")
            tokens, logits = oracle["tokens"], oracle["logits"]
            unrounded = largest_difference(Simulation(checkpoint, NONE).logits(tokens), logits)
            expect(unrounded <= UNROUNDED_TOLERANCE, f"{recipe.name}: unrounded simulation differs by {unrounded:.1e}")
            line = f"{recipe.name:16} remade {remade:.0e}  unrounded {unrounded:.1e}"
            if recipe.experts:
                streamed = largest_difference(float32_logits_streamed(checkpoint, tokens)[0], logits)
                expect(streamed <= REMADE_TOLERANCE, f"{recipe.name}: streamed logits differ by {streamed:.1e}")
                line += f"  streamed {streamed:.1e}"
            effects = check_effects(directory, tokens, logits)
            if effects:
                name = min(effects, key=effects.get)
                line += f"  smallest effect {effects[name]:.2f} ({name})"
            print(line, flush=True)
    print("all oracles check out")


if __name__ == "__main__":
    main()
