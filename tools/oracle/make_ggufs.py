"""Converts the models of make_imports.py to GGUF files by llama.cpp's own converter: <name>.gguf in an archive.

    python tools/oracle/make_ggufs.py LLAMA_CPP tests/fixtures/imports.tar tests/fixtures/ggufs.tar

LLAMA_CPP is a checkout of llama.cpp. The models have no tokenizer, so that the files have none either. Needs what
llama.cpp's requirements/requirements-convert_hf_to_gguf.txt names.
"""

import argparse
import json
import sys
import tarfile
import tempfile
from pathlib import Path

VOCAB = 64
# The converter knows no name for the tensors of a mixture with dense layers of this class, and for a head with a bias.
LEFT_OUT = ("qwen3-moe-dense", "modernbert-masked")


def convert(directory: Path, out: Path) -> None:
    import gguf
    import torch
    from conversion import get_model_class
    from conversion.base import ModelBase

    # Gemma's converter counts the tokens of a file.
    tokens = {"model": {"vocab": {str(i): i for i in range(VOCAB)}}, "added_tokens": []}
    (directory / "tokenizer.json").write_text(json.dumps(tokens))
    parameters = ModelBase.load_hparams(directory, False)
    # Guessing makes f16 of f32.
    is_f32 = "float32" in (parameters.get("dtype"), parameters.get("torch_dtype"))
    kind = gguf.LlamaFileType.ALL_F32 if is_f32 else gguf.LlamaFileType.GUESSED
    with torch.inference_mode():
        model = get_model_class(parameters["architectures"][0])(directory, kind, out, eager=True)
        for part in (model, getattr(model, "impl", model)):
            part.set_vocab = lambda part=part: part.gguf_writer.add_vocab_size(VOCAB)
        model.write()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("llama_cpp", type=Path)
    parser.add_argument("imports", type=Path)
    parser.add_argument("archive", type=Path)
    args = parser.parse_args()
    sys.path[:0] = [str(args.llama_cpp), str(args.llama_cpp / "gguf-py")]
    with tempfile.TemporaryDirectory() as temporary, tarfile.open(args.archive, "w") as archive:
        models = Path(temporary) / "models"
        with tarfile.open(args.imports) as saved:
            saved.extractall(models, filter="data")
        for directory in sorted(models.iterdir()):
            if directory.name not in LEFT_OUT:
                out = Path(temporary) / f"{directory.name}.gguf"
                convert(directory, out)
                archive.add(out, out.name)
                print(f"{out.name}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
