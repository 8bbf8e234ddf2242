"""Makes `xlm-roberta.gguf` in `tests/fixtures/unigram`: a vocabulary of SentencePiece in the layout of XLM-RoBERTa as llama.cpp's own
converter writes it, and `xlm-roberta.json`: what transformers' tokenizer of the same vocabulary makes of some texts.

    python tools/tokenizers/make_unigram_gguf.py LLAMA_CPP tests/fixtures/unigram

LLAMA_CPP is a checkout of llama.cpp. Needs what its requirements/requirements-convert_hf_to_gguf.txt names.
"""

import json
import sys
import tempfile
from pathlib import Path

import sentencepiece
from transformers import XLMRobertaTokenizer

from make_unigram import RULES, TEXTS, hexed

VOCAB = 400
# What SentencePiece has for <pad> and <mask> is not in its file.
CONFIG = dict(architectures=["XLMRobertaModel"], model_type="xlm-roberta", vocab_size=VOCAB + 2, hidden_size=64, num_hidden_layers=1,
              num_attention_heads=4, intermediate_size=64, max_position_embeddings=34, type_vocab_size=1, layer_norm_eps=1e-5,
              pad_token_id=1, bos_token_id=0, eos_token_id=2, hidden_act="gelu")
SENTENCES = [
    "Слайс — это вид на участок памяти.", "切片是对一段内存的视图。", "スライスはメモリの一部を見るものです。", "슬라이스는 메모리의 일부이다.",
    "Ein Slice ist eine Sicht auf einen Speicherbereich: Größe, Straße, Übung.", "Une tranche est une vue; l'été, où ça?",
    "الشريحة هي عرض لجزء من الذاكرة.", "स्लाइस स्मृति का एक भाग है।", "Một lát cắt là một khung nhìn.", "פרוסה היא מבט על זיכרון",
]
HOSTILE = [
    " ", "\u2581", "\u2581\u2581 a\u2581b", "a\u00a0b\u2003c\u2028d\u0085e", "[PAD401] [PAD400]", " [PAD401]", "<s></s><pad><unk>", "<s", "\x00a\x00",
    "\ufeffbom", "\U0001f3f4\U000e0067\U000e007f", "e\u0301\u0301\u0301", "\ufdfa" * 5, "a" * 300, "\u200b" * 20, "\r\n\r\n x \r\n",
    "x </s> y <s> z", "\ufb01\ufb01 \ufb00", "z" + "\u0300" * 40, "ab  <unk>  cd ", "1234567890 3.14 -7", "\ud7ff\ue000\U0010ffff",
]


def main() -> None:
    llama_cpp, out = Path(sys.argv[1]), Path(sys.argv[2])
    sys.path[:0] = [str(llama_cpp), str(llama_cpp / "gguf-py")]
    import gguf
    from conversion import get_model_class

    licence = Path(__file__).parents[2] / "LICENSE-APACHE"
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        rules, texts = directory / "rules.tsv", directory / "texts.txt"
        rules.write_text("".join(f"{hexed(text)}\t{hexed(other)}\n" for text, other in RULES.items()))
        texts.write_text(licence.read_text() + "\n".join(SENTENCES * 20) + "\n")
        sentencepiece.SentencePieceTrainer.train(
            input=str(texts), model_prefix=f"{scratch}/sentencepiece.bpe", model_type="unigram", vocab_size=VOCAB, minloglevel=2,
            normalization_rule_tsv=str(rules), character_coverage=0.999,
        )
        (directory / "config.json").write_text(json.dumps(CONFIG))
        published = XLMRobertaTokenizer.from_pretrained(directory)
        kind = get_model_class("XLMRobertaModel")
        model = kind(directory, gguf.LlamaFileType.ALL_F32, out / "xlm-roberta.gguf", eager=True, hparams=dict(CONFIG))
        model.gguf_writer.add_type(gguf.GGUFType.MODEL)
        model.set_vocab()
        for write in ("write_header_to_file", "write_kv_data_to_file", "close"):
            getattr(model.gguf_writer, write)(*[out / "xlm-roberta.gguf"] if write == "write_header_to_file" else [])
    found = [{"text": text, "ids": published(text).input_ids} for text in TEXTS + SENTENCES + HOSTILE]
    (out / "xlm-roberta.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
