"""Makes `tests/fixtures/unigram`: a tokenizer of the kind Unigram as XLM-RoBERTa's files have it, and what
Hugging Face's `tokenizers` makes of some texts.

    python tools/tokenizers/make_unigram.py tests/fixtures/unigram
"""

import json
import sys
import tempfile
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import Unigram

# A few rules of NFKC: all of them would take 240 KB.
RULES = {
    "\ufb01": "fi", "\ufb00": "ff", "\uff21": "A", "e\u0301": "\u00e9", "\u200b": "", "\u0007": "",
    "\t": " ", "\u3000": " ", "\u00ad": "", "\u2460": "1", "\u337f": "\u682a\u5f0f\u4f1a\u793e",
    "\ufdfa": "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064a\u0647 \u0648\u0633\u0644\u0645",
}
TEXTS = [
    "", "You may reproduce the Work.", "  two  spaces\tand a tab ", "\ufb01ne e\ufb00ort \uff21 \uff22",
    "cafe\u0301 \u00e9 a\u0301\u0301", "\u200bzero\u200bwidth\u0007", "ends\u200b", "\u0007", "\ufdfa\u337f \u2460\u2461",
    "\u4e16\u754c \U0001f600 Gr\u00fc\u00dfe", "<s>special</s> <unk>", "if (x) {\n    y();\n}\n",
    "\u3000wide\u3000space", "soft\u00adhyphen", "\U0001f469\u200d\U0001f469\u200d\U0001f467",
]


def hexed(text: str) -> str:
    return " ".join(f"{ord(letter):X}" for letter in text)


def main() -> None:
    out = Path(sys.argv[1])
    licence = Path(__file__).parents[2] / "LICENSE-APACHE"
    with tempfile.TemporaryDirectory() as scratch:
        rules = Path(scratch) / "rules.tsv"
        rules.write_text("".join(f"{hexed(text)}\t{hexed(other)}\n" for text, other in RULES.items()))
        sentencepiece.SentencePieceTrainer.train(
            input=str(licence), model_prefix=f"{scratch}/unigram", model_type="unigram", vocab_size=300,
            normalization_rule_tsv=str(rules), bos_id=0, pad_id=1, eos_id=2, unk_id=3,
            pad_piece="<pad>", minloglevel=2,
        )
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString(Path(f"{scratch}/unigram.model").read_bytes())
    charsmap = model.normalizer_spec.precompiled_charsmap
    tokenizer = Tokenizer(Unigram([(piece.piece, round(piece.score, 4)) for piece in model.pieces], 3, False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(charsmap), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    ids = [tokenizer.encode(text).ids for text in TEXTS]
    found = [
        {"text": text, "ids": of, "decoded": tokenizer.decode(of)} for text, of in zip(TEXTS, ids)
    ]
    (out / "expected.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
