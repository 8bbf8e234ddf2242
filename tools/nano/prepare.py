"""Extract the nano model's training text from the installed Rust documentation.

    python prepare.py [--docs DIR] [--data DIR]

The source is the HTML documentation which `rustup component add rust-docs`
installs (licence: MIT OR Apache-2.0). The prose of every English page is kept:
paragraphs, headings, list items and table-free block quotes, with inline code in
backticks; code listings, navigation, signatures and tables are dropped.
A paragraph that occurs on several pages is kept on the first one only, before the
split, so no paragraph of the held-out pages stands in the training text. Whole
pages are held out by a hash of their path.

Writes into the data directory:
    train.txt      training pages, separated by SEPARATOR lines
    heldout.txt    held-out pages joined by blank lines (the figures' bytes)
    words.txt      sorted unique lower-case words of train.txt
    corpus.json    source, licence, page and byte counts
"""

import argparse
import hashlib
import html
import json
import os
import re
import subprocess
import tempfile
from html.parser import HTMLParser
from pathlib import Path

SEPARATOR = "\n<|endoftext|>\n"
HELDOUT_PERCENT = 3.0
HELDOUT_MAX_BYTES = 150_000
MIN_PAGE_BYTES = 200

BOOKS = [
    "book", "reference", "nomicon", "rust-by-example", "cargo", "edition-guide",
    "rustc", "rustdoc", "clippy", "embedded-book", "style-guide", "unstable-book",
    "error_codes",
]
CRATES = ["std", "alloc", "core", "proc_macro", "test"]
SKIP_PARTS = {
    "arch", "core_arch", "std_detect", "2018-edition", "second-edition",
    "es", "ja", "ko", "zh", "src", "theme", "css", "fonts",
}
SKIP_FILES = {"print.html", "toc.html", "404.html", "all.html", "SUMMARY.html", "searcher.html"}

BLOCKS = {"p", "li", "h1", "h2", "h3", "h4", "h5", "h6", "dt", "dd", "blockquote"}
DROPPED = {
    "script", "style", "pre", "table", "nav", "button", "svg", "sup", "noscript",
    "rustdoc-toolbar", "form", "math",
}
VOID = {"br", "img", "hr", "input", "meta", "link", "wbr", "source", "col", "area", "base"}
# Headings whose content is code listings, which are dropped.
CODE_HEADINGS = {"example", "examples", "usage"}


def data_dir(argument=None):
    """Return the data directory: argument, $KERNMILL_DATA or the system's temporary one."""
    chosen = argument or os.environ.get("KERNMILL_DATA")
    path = Path(chosen) if chosen else Path(tempfile.gettempdir()) / "kernmill-nano"
    path.mkdir(parents=True, exist_ok=True)
    return path


def docs_dir(argument=None):
    """Return the HTML root of the installed Rust documentation."""
    if argument:
        return Path(argument)
    sysroot = subprocess.check_output(["rustc", "--print", "sysroot"], text=True).strip()
    return Path(sysroot) / "share" / "doc" / "rust" / "html"


class Prose(HTMLParser):
    """Collects the prose blocks of a page as (kind, text) pairs.

    For a book page the content is `<main>`; for an API page it is each element of
    class `docblock` and the page's own title.
    """

    def __init__(self, api_page):
        super().__init__(convert_charrefs=True)
        self.api_page = api_page
        self.blocks = []
        self.stack = []          # open elements: (tag, opens_content, is_dropped)
        self.content = 0         # depth of open content roots
        self.dropped = 0         # depth of open dropped elements
        self.kind = None
        self.text = []
        self.item = None         # name of the API item whose docblock comes next

    def flush(self):
        text = re.sub(r"\s+", " ", "".join(self.text)).strip()
        if text and self.kind:
            self.blocks.append((self.kind, text))
        self.text = []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        classes = (attributes.get("class") or "").split()
        if tag in VOID:
            if tag == "br":
                self.text.append(" ")
            return
        opens = tag == "main" if not self.api_page else "docblock" in classes
        drops = (
            tag in DROPPED
            or "doc-anchor" in classes
            or "item-decl" in classes
            or "example-wrap" in classes
            or "tooltip" in classes
            or "rule" in classes
            or "grammar-container" in classes
            or (tag == "a" and "test-link" in classes)
            or "buttons" in classes
        )
        identity = re.match(r"(?:ty)?method\.([a-z_0-9]+)", attributes.get("id") or "")
        if self.api_page and not self.content and identity:
            self.item = re.sub(r"-\d+$", "", identity[1])
        self.stack.append((tag, opens, drops))
        if opens:
            self.flush()
            if self.item and not self.content:
                self.blocks.append(("h3", f"`{self.item}`"))
                self.item = None
            self.kind = "p"
        self.content += opens
        self.dropped += drops
        if drops and self.content:
            self.flush()
        if self.content and not self.dropped:
            if tag in BLOCKS:
                self.flush()
                if not (tag == "p" and self.kind == "li" and self.inside("li")):
                    self.kind = tag
            elif tag == "code":
                self.text.append("`")

    def inside(self, tag):
        return any(entry[0] == tag for entry in self.stack)

    def handle_endtag(self, tag):
        if tag in VOID or not any(entry[0] == tag for entry in self.stack):
            return
        while self.stack:
            top, opened, dropped = self.stack.pop()
            if self.content and not self.dropped:
                if top == "code":
                    self.text.append("`")
                elif top in BLOCKS or opened:
                    self.flush()
                    self.kind = "p"
            self.content -= opened
            self.dropped -= dropped
            if top == tag:
                break

    def handle_data(self, data):
        if self.content and not self.dropped:
            self.text.append(data)


def ascii_punctuation(text):
    """Replace typographic punctuation by ASCII and drop rare symbols."""
    table = {
        "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-",
        "\u2014": " - ", "\u2026": "...", "\u00a0": " ", "\u2192": "->", "\u21d2": "=>",
        "\u2265": ">=", "\u2264": "<=", "\u00a7": "", "\u24d8": "", "\u200b": "", "\u00d7": "x",
        "\u2212": "-",
    }
    text = text.translate({ord(key): value for key, value in table.items()})
    return re.sub(r" +", " ", text).strip()


def page_blocks(path, root):
    """Return the page's prose as a list of (kind, text)."""
    relative = path.relative_to(root)
    api_page = relative.parts[0] in CRATES
    source = path.read_text(encoding="utf-8", errors="replace")
    if 'http-equiv="refresh"' in source[:2000]:
        return []
    parser = Prose(api_page)
    parser.feed(source)
    parser.flush()
    blocks = parser.blocks
    if api_page and blocks:
        match = re.search(r"<h1>(.*?)</h1>", source, re.S)
        if match:
            title = re.sub(r"<button.*?</button>|<rustdoc-toolbar.*?</rustdoc-toolbar>", "", match[1], flags=re.S)
            title = re.sub(r"<span class=\"(since|sub)\".*?</span>", "", title, flags=re.S)
            title = html.unescape(re.sub(r"<[^>]+>", "", title))
            title = re.sub(r"Copy item path$", "", re.sub(r"\s+", " ", title).strip())
            blocks = [("h1", title)] + blocks
    cleaned = []
    for kind, text in blocks:
        text = ascii_punctuation(text)
        if not text or not re.search(r"[A-Za-z]", text):
            continue
        if sum(ord(c) > 126 for c in text) > 0.05 * len(text):
            continue
        if re.search(r"(Read more|\[src\])$", text):
            text = re.sub(r"\s*(Read more|\[src\])$", "", text)
        if kind not in ("h1", "h2", "h3", "h4", "h5", "h6") and (len(text) < 20 or " " not in text):
            continue
        cleaned.append((kind, text))
    return cleaned


def render(blocks):
    """Join blocks to Markdown-like text; headings with nothing below them are dropped."""
    kept = []
    for index, (kind, text) in enumerate(blocks):
        if kind[0] == "h" and kind[1].isdigit():
            if text.lower().strip(":") in CODE_HEADINGS:
                continue
            following = blocks[index + 1] if index + 1 < len(blocks) else ("h1", "")
            heads = following[0][0] == "h" and following[0][1].isdigit()
            if heads and int(following[0][1]) <= int(kind[1]):
                continue
            if index + 1 == len(blocks):
                continue
            kept.append(("h", "#" * min(int(kind[1]), 4) + " " + text))
        elif kind == "li":
            kept.append(("li", "- " + text))
        else:
            kept.append(("p", text))
    while kept and kept[-1][0] == "h":
        kept.pop()
    lines = []
    for index, (kind, text) in enumerate(kept):
        if index:
            lines.append("\n" if kind == "li" and kept[index - 1][0] == "li" else "\n\n")
        lines.append(text)
    return "".join(lines)


def pages(root):
    """Yield (relative path, path) of every page in a fixed order."""
    for part in BOOKS + CRATES:
        for path in sorted((root / part).rglob("*.html")):
            relative = path.relative_to(root)
            if SKIP_PARTS.intersection(relative.parts[:-1]) or path.name in SKIP_FILES:
                continue
            if "!" in path.name:
                continue
            yield relative.as_posix(), path


def heldout_page(relative):
    digest = hashlib.sha256(relative.encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32 * 100 < HELDOUT_PERCENT


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--docs", help="HTML root (default: the active toolchain's)")
    arguments.add_argument("--data", help="output directory (default: $KERNMILL_DATA)")
    options = arguments.parse_args()
    root, out = docs_dir(options.docs), data_dir(options.data)

    seen, training, heldout, sources = set(), [], [], {}
    for relative, path in pages(root):
        blocks = []
        for kind, text in page_blocks(path, root):
            heading = kind[0] == "h" and kind[1].isdigit()
            key = re.sub(r"[^a-z0-9]+", " ", text.lower())
            if not heading:
                if key in seen:
                    continue
                seen.add(key)
            blocks.append((kind, text))
        text = render(blocks)
        if len(text) < MIN_PAGE_BYTES:
            continue
        held = heldout_page(relative)
        (heldout if held else training).append(text)
        entry = sources.setdefault(relative.split("/")[0], {"pages": 0, "bytes": 0, "heldout_pages": 0})
        entry["heldout_pages" if held else "pages"] += 1
        entry["bytes"] += 0 if held else len(text.encode())

    # A deterministic order that mixes the sources, cut to whole pages.
    heldout.sort(key=lambda text: hashlib.sha256(text.encode()).digest())
    kept, size = [], 0
    for text in heldout:
        length = len(text.encode()) + 2
        if size + length <= HELDOUT_MAX_BYTES:
            kept.append(text)
            size += length
    train_text = SEPARATOR.join(training)
    heldout_text = "\n\n".join(kept) + "\n"
    words = sorted(set(re.findall(r"[a-z]+", train_text.lower())))
    (out / "train.txt").write_text(train_text, encoding="utf-8")
    (out / "heldout.txt").write_text(heldout_text, encoding="utf-8")
    (out / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    record = {
        "source": "Rust documentation of the installed toolchain (rust-docs component)",
        "toolchain": (root / "version_info.html").exists()
        and " ".join(re.findall(r"\d+\.\d+\.\d+", (root / "version_info.html").read_text())[:1]),
        "licence": "MIT OR Apache-2.0",
        "train_pages": len(training),
        "train_bytes": len(train_text.encode()),
        "heldout_pages": len(kept),
        "heldout_bytes": len(heldout_text.encode()),
        "words": len(words),
        "parts": sources,
    }
    (out / "corpus.json").write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
