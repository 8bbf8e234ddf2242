"""Makes small random models for vectors, and their vectors, in an archive:

- qwen3-embedding/{config.json, model.safetensors, modules.json, 1_Pooling/config.json, oracle.safetensors}, as sentence-transformers saves
  Qwen3-Embedding. The last has `tokens` i32 [T], and the normalised rows after every token, `vectors` f32 [T, hidden].
- modernbert/, a ModernBERT with a tokenizer of bytes as sentence-transformers saves it, with `texts.json` and `oracle.safetensors`: the
  vectors of the texts under `vectors`, f32 [texts, hidden], which are their first rows.
- prompts/, an encoder with prompts as sentence-transformers itself saves it, with `prompts.json`, the texts, and with `oracle.safetensors`:
  the vectors that it makes of the texts, f32 [texts, hidden], by the name of the prompt, and `usual`, where none is named.

    python tools/oracle/make_vectors.py tests/fixtures/vectors.tar
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3Model

from checkpoint import changed
from make_imports import SIZES, TOKENS, randomise

MODULES = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]


@torch.no_grad()
def make(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    config = Qwen3Config(**SIZES, head_dim=32, tie_word_embeddings=True, rope_theta=1e6)
    config._attn_implementation = "eager"
    model = Qwen3Model(config).float().eval()
    randomise(model, 21, lambda name: torch.bfloat16)
    generator = torch.Generator().manual_seed(21)
    tokens = torch.randint(config.vocab_size, (TOKENS,), generator=generator, dtype=torch.int32)
    rows = model(tokens[None].long(), use_cache=False).last_hidden_state[0]
    vectors = torch.nn.functional.normalize(rows, dim=-1)
    model.to(torch.bfloat16).save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    path = directory / "config.json"
    # The published models name the class that has an unembedding, and have none.
    path.write_text(json.dumps(json.loads(path.read_text()) | {"architectures": ["Qwen3ForCausalLM"]}, indent=2) + "\n")
    modules = [{"idx": at, "name": str(at), "path": place, "type": f"sentence_transformers.models.{kind}"}
               for at, (kind, place) in enumerate(MODULES)]
    (directory / "modules.json").write_text(json.dumps(modules, indent=2) + "\n")
    (directory / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": config.hidden_size, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False,
               "pooling_mode_lasttoken": True, "include_prompt": True}
    (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling, indent=2) + "\n")
    save_file({"tokens": tokens, "vectors": vectors.contiguous()}, directory / "oracle.safetensors")


PROMPTS = {"query": "question : ", "document": "", "passage": "passage : a b "}
TEXTS = ["a slice is a view", "threads may panic", "a"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"a slice is view threads may panic question passage b : ##s".split()]


def make_prompts(directory: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    shutil.rmtree(directory, ignore_errors=True)
    config = BertConfig(vocab_size=len(WORDS), hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                        max_position_embeddings=40)
    model = BertModel(config).float().eval()
    randomise(model, 22, lambda name: torch.float32)
    with tempfile.TemporaryDirectory() as parts:
        model.save_pretrained(parts)
        (Path(parts) / "vocab.txt").write_text("\n".join(WORDS) + "\n")
        BertTokenizerFast(vocab=str(Path(parts) / "vocab.txt")).save_pretrained(parts)
        transformer = Transformer(parts)
    pooling = Pooling(config.hidden_size, pooling_mode="mean")
    whole = SentenceTransformer(modules=[transformer, pooling, Normalize()], prompts=PROMPTS, default_prompt_name="query", device="cpu")
    whole.save(str(directory), create_model_card=False)
    vectors = {name: whole.encode(TEXTS, prompt_name=name, convert_to_tensor=True) for name in PROMPTS}
    vectors["usual"] = whole.encode(TEXTS, convert_to_tensor=True)
    (directory / "prompts.json").write_text(json.dumps(TEXTS) + "\n")
    save_file({name: vector.float().contiguous() for name, vector in vectors.items()}, directory / "oracle.safetensors")


MODERN_TEXTS = ["A slice is a view into a block of memory.", "Ein Schwert, zwei Bäume: 三つの橋 🌉", "a", " \t\n  x  y ", "",
                "no token of a layer's window sees this far. " * 12]


def make_modern(directory: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import ModernBertConfig, ModernBertModel, PreTrainedTokenizerFast

    shutil.rmtree(directory, ignore_errors=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(MODERN_TEXTS, trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet,
                                                                    show_progress=False))
    ids = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=ids)
    config = ModernBertConfig(vocab_size=300, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                              max_position_embeddings=512, local_attention=16, pad_token_id=3, cls_token_id=1, sep_token_id=2,
                              bos_token_id=1, eos_token_id=2)
    model = ModernBertModel(config).float().eval()
    randomise(model, 23, lambda name: torch.float32)
    with tempfile.TemporaryDirectory() as parts:
        model.save_pretrained(parts)
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]",
                                mask_token="[MASK]", model_max_length=512).save_pretrained(parts)
        transformer = Transformer(parts)
    whole = SentenceTransformer(modules=[transformer, Pooling(config.hidden_size, pooling_mode="cls")], device="cpu")
    whole.save(str(directory), create_model_card=False)
    vectors = torch.stack([whole.encode(text, convert_to_tensor=True) for text in MODERN_TEXTS])
    (directory / "texts.json").write_text(json.dumps(MODERN_TEXTS) + "\n")
    save_file({"vectors": vectors.float().contiguous()}, directory / "oracle.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    args = parser.parse_args()
    with changed(args.archive) as out:
        make(out / "qwen3-embedding")
        make_prompts(out / "prompts")
        make_modern(out / "modernbert")


if __name__ == "__main__":
    main()
