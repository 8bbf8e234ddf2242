"""compare.py MODEL.gguf : kernmill's tokenizer of a GGUF file against other implementations, on 2,000 texts.

Of a byte-level file (SmolLM2's), the reference is Hugging Face's `tokenizers`, put together here from the file's vocabulary and merges and
the components that the model was published with; `--llama-cpp` asks llama.cpp as well, through the package llama-cpp-python. `--sentencepiece DIR`
trains a small SentencePiece model with byte fallback, writes it as a GGUF file, and compares with SentencePiece itself.
"""

import argparse
import json
import random
import subprocess
from pathlib import Path

SNIPPETS = [
    "The quick brown fox jumps over the lazy dog.", "def f(x):\n    return x ** 2  # squared\n", "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}\n",
    "fn main() {\n    println!(\"{}\", 1_000);\n}\n", "SELECT * FROM t WHERE id = 42;", "{\"key\": [1, 2.5e-3, null]}", "It's what they'll've said; I'd've.",
    "IT'S DON'T WE'LL", "1234567890", "3.14159 2,718 0x1F 1/2 ¼ ² ٣٤", "日本語のテキスト、テスト。", "汉字混合English文字123", "한국어 문장입니다.", "สวัสดีชาวโลก",
    "नमस्ते दुनिया", "مرحبا بالعالم", "Ελληνικά και кириллица", "Grüße, naïve café — “quotes” … ‘x’", "😀😃👍🏽🎉", "👩‍👩‍👧‍👦 🏳️‍🌈 ☕", "e\u0301 n\u0303 \u200b\ufeff",
    "   ", "\t\t", "\n\n\n", "\r\n", " \n \t", "a" * 40, "=" * 70, "-" * 33, "<|im_start|>user\nhi<|im_end|>\n", "<|endoftext|>", "https://example.org/a?b=c&d=%20",
    "\x00\x01\x7f", "\u2028\u2029\u00a0\u3000", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 𠜎", "ﬁ ﬂ Ⅷ ①", "CamelCaseWord snake_case_word kebab-case", "a.b.c::d->e", "\\frac{1}{2} \\alpha_{i}^{2}", "don’t — it’s",
]
CHARACTERS = "abzABZ019 \t\n'’\"_-.,;:!?()[]{}<>|/\\@#$%^&*+=~`éßñçü世界日本語한국😀🎉ЖжΩ\u0301\u200d"


def texts(count, special):
    """`count` texts: every snippet alone, then mixtures of them, runs of spaces, and random characters."""
    rng = random.Random(7)
    found = ["", *SNIPPETS]
    while len(found) < count:
        kind = rng.randrange(4)
        if kind == 0:
            parts = rng.sample(SNIPPETS, rng.randint(2, 5))
            text = rng.choice(["", " ", "\n", "  "]).join(parts)
        elif kind == 1:
            text = "".join(rng.choice(CHARACTERS) for _ in range(rng.randint(1, 60)))
        elif kind == 2:
            words = [" " * rng.choice([1, 2, 3, 4, 7, 8, 15, 16, 31, 64]) + rng.choice(SNIPPETS).split("\n")[0] for _ in range(rng.randint(1, 5))]
            text = "".join(words) + " " * rng.randrange(5)
        else:
            text = "".join(chr(rng.choice([*range(0x20, 0x250), *range(0x370, 0x600), *range(0x3040, 0x3100), *range(0x4E00, 0x4F00), *range(0x1F600, 0x1F650)]))
                           for _ in range(rng.randint(1, 40)))
        found.append(text)
    if not special:
        found = [text.replace("<|", "<!").replace("|>", "!>") for text in found]
    return found[:count]


def kernmill(encode, model, inputs):
    """Ids and texts by kernmill."""
    ran = subprocess.run([encode, model], input=json.dumps(inputs), capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def fields(path, *names):
    import gguf

    reader = gguf.GGUFReader(path)
    return [reader.fields["tokenizer.ggml." + name].contents() for name in names]


def hugging_face(path, inputs):
    """Ids by `tokenizers`, with SmolLM2's components: single digits, then GPT-2's words."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens, merges, kinds = fields(path, "tokens", "merges", "token_type")
    vocab = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(merge.split(" ")) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token, kind in zip(tokens, kinds) if kind == 3])
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in inputs]


def llama_cpp(path, inputs):
    """Ids by llama.cpp, by way of llama-cpp-python."""
    from llama_cpp import Llama

    model = Llama(str(path), vocab_only=True, verbose=False)
    return [model.tokenize(text.encode(), add_bos=False, special=True) for text in inputs]


def sentencepiece_file(directory):
    """Trains a SentencePiece model and writes its vocabulary as a GGUF file. -> file, processor"""
    import gguf
    import sentencepiece

    directory.mkdir(parents=True, exist_ok=True)
    corpus = directory / "corpus.txt"
    corpus.write_text("\n".join(line for text in texts(2000, False) for line in text.split("\n") if line.strip() and "\x00" not in line))
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus), model_prefix=str(directory / "spm"), vocab_size=1500, model_type="bpe", byte_fallback=True, character_coverage=0.98,
        normalization_rule_name="identity", remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, split_digits=True, minloglevel=2)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(directory / "spm.model"))
    path = directory / "spm.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    count = processor.get_piece_size()
    kind = lambda i: 2 if processor.is_unknown(i) else 3 if processor.is_control(i) else 6 if processor.is_byte(i) else 1
    writer.add_tokenizer_model("llama")
    writer.add_token_list([processor.id_to_piece(i) for i in range(count)])
    writer.add_token_scores([processor.get_score(i) for i in range(count)])
    writer.add_token_types([kind(i) for i in range(count)])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path, processor


def report(name, inputs, ours, theirs):
    different = [i for i in range(len(inputs)) if ours[i] != theirs[i]]
    print(f"{name}: {len(inputs) - len(different)} of {len(inputs)} texts have the same ids ({sum(map(len, ours))} tokens)")
    for i in different[:5]:
        print(f"  {inputs[i]!r}\n    kernmill {ours[i]}\n    {name} {theirs[i]}")
    return not different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--encode", default="target/debug/examples/encode", help="the built example `encode`")
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--llama-cpp", action="store_true", help="compare with llama.cpp too")
    parser.add_argument("--sentencepiece", type=Path, metavar="DIR", help="compare a SentencePiece vocabulary too, made in DIR")
    args = parser.parse_args()
    inputs = texts(args.texts, True)
    ours = kernmill(args.encode, args.model, inputs)
    ids = [entry["ids"] for entry in ours]
    same = report("tokenizers", inputs, ids, hugging_face(args.model, inputs))
    plain = [(text, entry["text"]) for text, entry in zip(inputs, ours) if "<|" not in text]
    whole = sum(text == back for text, back in plain)
    print(f"decoded: {whole} of {len(plain)} texts without special tokens come back")
    same &= whole == len(plain)
    if args.llama_cpp:
        same &= report("llama.cpp", inputs, ids, llama_cpp(args.model, inputs))
    if args.sentencepiece:
        path, processor = sentencepiece_file(args.sentencepiece)
        inputs = [text for text in texts(args.texts, False) if "\x00" not in text]
        ours = kernmill(args.encode, path, inputs)
        same &= report("sentencepiece", inputs, [entry["ids"] for entry in ours], [processor.encode(text) for text in inputs])
        decoded = sum(entry["text"] == processor.decode(entry["ids"]) for entry in ours)
        print(f"sentencepiece decodes {decoded} of {len(inputs)} as kernmill does")
    raise SystemExit(not same)


main()
