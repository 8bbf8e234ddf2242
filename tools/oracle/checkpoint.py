"""Reading and writing checkpoints in the published layout: config.json and one or several safetensors files."""

import contextlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

INDEX = "model.safetensors.index.json"


@contextlib.contextmanager
def unpacked(*archives: Path) -> Iterator[Path]:
    """A directory with what is in the archives, each below its own name."""
    with tempfile.TemporaryDirectory() as temporary:
        for archive in archives:
            with tarfile.open(archive) as tar:
                tar.extractall(Path(temporary) / archive.stem, filter="data")
        yield Path(temporary)


def pack(directory: Path, archive: Path) -> None:
    """Writes the files below a directory to an archive: the same files give the same bytes."""
    with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()):
            info, data = tarfile.TarInfo(name), (directory / name).read_bytes()
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))


@contextlib.contextmanager
def changed(archive: Path) -> Iterator[Path]:
    """A directory with what is in an archive, which is written anew afterwards."""
    with unpacked(*[archive] if archive.exists() else []) as temporary:
        directory = temporary / archive.stem
        directory.mkdir(exist_ok=True)
        yield directory
        pack(directory, archive)


class Checkpoint:
    """A checkpoint directory, read tensor by tensor."""

    def __init__(self, directory: Path):
        self.directory = Path(directory)
        self.config = json.loads((self.directory / "config.json").read_text())
        index = self.directory / INDEX
        if index.exists():
            self._file_of = json.loads(index.read_text())["weight_map"]
        else:
            with safe_open(self.directory / "model.safetensors", "pt") as file:
                self._file_of = dict.fromkeys(file.keys(), "model.safetensors")
        self._open = {}

    def names(self) -> list[str]:
        return list(self._file_of)

    def raw(self, name: str) -> torch.Tensor:
        """The tensor as stored."""
        file = self._file_of[name]
        if file not in self._open:
            self._open[file] = safe_open(self.directory / file, "pt")
        return self._open[file].get_tensor(name)

    def f32(self, name: str) -> torch.Tensor:
        """A bf16 tensor widened to f32 (exact)."""
        return self.raw(name).float()


def rope_of(config: dict) -> dict:
    """The rope parameters of either spelling as one dict with `rope_theta` and `rope_type`.

    Older: `rope_theta` and `rope_scaling` (or null) beside each other. Newer: both inside `rope_parameters`.
    """
    if "rope_parameters" in config:
        return dict(config["rope_parameters"])
    scaling = config.get("rope_scaling") or {"rope_type": "default"}
    return {"rope_theta": config["rope_theta"], **scaling}


def head_dim_of(config: dict) -> int:
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def write_config(directory: Path, config: dict) -> None:
    (Path(directory) / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def write_shards(directory: Path, shards) -> None:
    """Writes an iterable of {name: tensor}: one gives model.safetensors, several give numbered files and an index.

    A list decides the count; each shard may be a function making it, so that only one is in memory at a time.
    """
    directory = Path(directory)
    if len(shards) == 1:
        _save(shards[0], directory / "model.safetensors")
        return
    weight_map, total = {}, 0
    for number, shard in enumerate(shards, start=1):
        tensors = shard() if callable(shard) else shard
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        _save(tensors, directory / file)
        weight_map.update(dict.fromkeys(tensors, file))
        total += sum(t.numel() * t.element_size() for t in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (directory / INDEX).write_text(json.dumps(index, indent=2) + "\n")


def _save(tensors, path: Path) -> None:
    tensors = tensors() if callable(tensors) else tensors
    save_file({name: t.contiguous() for name, t in tensors.items()}, path, metadata={"format": "pt"})


def write_oracle(
    path: Path, tokens: torch.Tensor, logits: torch.Tensor, faithful: torch.Tensor, bf16: torch.Tensor | None = None
) -> None:
    """tokens i32 [T], logits f32 [T, vocab], faithful_logits f32 [T, vocab], and bf16_logits where there are experts."""
    tensors = {"tokens": tokens.int(), "logits": logits.float(), "faithful_logits": faithful.float()}
    if bf16 is not None:
        tensors["bf16_logits"] = bf16.float()
    save_file({name: t.contiguous() for name, t in tensors.items()}, path)
