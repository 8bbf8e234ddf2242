"""Checks of formulas and of colours in code."""

import html.parser
import itertools
import json
import re
import subprocess

import mock
from browser import check, equal, scripted

KATEX = next(mock.PAGE.glob("katex-*/katex.min.js"))

# Each is drawn by the page and by KaTeX alone.
FORMULAS = [
    r"x", r"a_1 + b^{2n}", r"\frac{1}{2}", r"\sqrt[3]{x^2 + y^2}", r"\sum_{n=1}^{\infty} \frac{1}{n^2} = \frac{\pi^2}{6}",
    r"\int_0^1 x^2\,dx", r"\lim_{x \to 0} \frac{\sin x}{x}", r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
    r"\begin{cases} 1 & x > 0 \\ 0 & \text{otherwise} \end{cases}", r"\begin{aligned} a &= b \\ &= c \end{aligned}",
    r"\mathbb{R}^n \to \mathcal{L}(V)", r"\mathfrak{g} \oplus \mathscr{F}", r"\hat{x} \cdot \vec{v} = \overline{ab}",
    r"\left( \frac{a}{b} \right)^2", r"\left\lVert x \right\rVert_2", r"|x| \le \|y\|", r"\binom{n}{k}", r"\underbrace{a + b}_{c}",
    r"\color{red}{x} + \textcolor{#00f}{y}", r"\boxed{E = mc^2}", r"\text{if } n \in \mathbb{N}", r"\xrightarrow{f} Y",
    r"\cancel{x} + \not=", r"\mathbf{A}^{\mathsf{T}} \mathbf{x}", r"\operatorname{softmax}(QK^\top / \sqrt{d})",
    r"\begin{array}{|c|c|} \hline 1 & 2 \\ \hline \end{array}", r"\$5 \% \& \#", r"f\colon A \hookrightarrow B",
    r"\dfrac{\partial^2 u}{\partial t^2} = c^2 \nabla^2 u", r"\oiint_S \mathbf{F} \cdot d\mathbf{S}", r"\pmb{x} \neq \fcolorbox{red}{white}{y}",
]
# Texts, and the formulas that are in each.
DOLLARS = [
    ("It costs $5 and then $10.", []), ("US$5 or CA$6, and $7-$8", []), ("From $1,000 to $2,000 (or 5$)", []),
    ("$5 for one or 9$ for two", []), ("**$5** and **$6**", []), ("$HOME/bin:$PATH and `$x$`", []), ("a $ b $ c", []),
    ("```\n$x$ \\(y\\)\n```", []), ("    $(x).y($z)", []), (r"\$x\$ is text", []), ("$5, and $x$ too", ["x"]),
    ("$x$", ["x"]), ("so $x_1 + y$, and $z$.", ["x_1 + y", "z"]), ("$$a$$ and \\(b\\)", ["a", "b"]), (r"$\$5$", [r"\$5"]),
    ("\\[\na\n- b\n# c\n\\]", ["\na\n- b\n# c\n"]), ("> \\[ a \\]\n\n- $$b$$", [" a ", "b"]), ("**bold \\(a*b*c\\)**", ["a*b*c"]),
    ("\\begin{align}\na &= b\n\\end{align}", ["\\begin{align}\na &= b\n\\end{align}"]), ("|a|b|\n|-|-|\n|\\(|x|\\)|$y$|", ["|x|", "y"]),
    ("\\(open", []), ("\\[\nopen\n\n\\]", []), ("$$\n\nx", []), ("\\(\\)", []), ("[a \\(b\\)](https://c.d/)", ["b"]),
]

RENDER = """const katex = require(process.argv[1]);
const all = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const options = (displayMode) => ({displayMode, throwOnError: true, strict: 'ignore', maxSize: 20});
console.log(JSON.stringify(all.map((tex) => [true, false].map((mode) => katex.renderToString(tex, options(mode))))));"""


class Tree(html.parser.HTMLParser):
    """What HTML says, in whatever way it is written."""

    def __init__(self, text):
        super().__init__()
        self.parts, self.math = [], False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.math |= tag == "math"
        # KaTeX itself makes spaces without this in elements, and with it in text.
        if tag == "mtext":
            return
        given = dict(attributes)
        given.pop("xmlns", None)
        self.parts.append((tag, sorted(pair for pair in given.items() if pair not in [("class", ""), ("style", "")])))

    def handle_endtag(self, tag):
        self.math &= tag != "math"
        if tag != "mtext":
            self.parts.append(tag)

    def handle_data(self, data):
        self.parts.append(data)


MARKDOWN = """const done = arguments[arguments.length - 1];
Promise.all([import('./markdown.js'), import('./rich.js')]).then(([{Markdown}, {drawn}]) => {
    const shown = (text, draw = {}, isLive = false) => {
        const made = document.createElement('div');
        made.className = 'markdown';
        document.body.append(made);
        new Markdown(made, draw).set(text, isLive);
        return made;
    };
    %s
}).catch((error) => done(String(error)));"""


def run(page, script, *args):
    """What a script hands to `done`, which has `shown` to make markdown with."""
    page.driver.set_script_timeout(120)
    return page.driver.execute_async_script(MARKDOWN % script, *args)


@check
def formulas_are_those_of_katex(page):
    asked = subprocess.run(["node", "-e", RENDER, str(KATEX)], input=json.dumps(FORMULAS), capture_output=True, text=True, check=True)
    wanted = json.loads(asked.stdout)
    # A browser writes styles in a form of its own: 0 as 0px, say.
    write = "arguments[0].map((text) => { const made = document.createElement('i'); made.style.cssText = text; return made.style.cssText; })"
    styles = sorted(set(re.findall(r' style="([^"]*)"', asked.stdout.replace('\\"', '"'))))
    form = dict(zip(styles, page.js(write, styles), strict=True))
    wanted = [[re.sub(r' style="([^"]*)"', lambda found: f' style="{form[found[1]]}"', one) for one in both] for both in wanted]
    drawn = run(page, r"""const made = arguments[0].map((tex) => shown(`\\[${tex}\\] and \\(${tex}\\)`, drawn));
        const wait = () => made.every((one) => one.querySelectorAll('.katex').length === 2) || performance.now() > 60000
            ? done(made.map((one) => [...one.querySelectorAll('.formula')].map((place) => place.innerHTML))) : setTimeout(wait, 50);
        wait();""", FORMULAS)
    for tex, ours, theirs in zip(FORMULAS, drawn, wanted, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            pairs = itertools.zip_longest(Tree(one).parts, Tree(other).parts)
            equal((tex, [pair for pair in pairs if pair[0] != pair[1]][:1]), (tex, []))
    assert len(FORMULAS) >= 30


@check
def dollars_are_formulas_or_money(page):
    found = run(page, r"""const found = [];
        const formula = (place, tex) => found.at(-1).push(tex);
        for (const text of arguments[0]) {
            found.push([]);
            shown(text, {formula});
        }
        done(found);""", [text for text, _ in DOLLARS])
    for (text, wanted), have in zip(DOLLARS, found, strict=True):
        equal((text, have), (text, wanted))


@check
def no_backslash_of_a_formula_is_lost(page):
    """Random formulas in random markdown stand in the page as they were written, and are found whole."""
    found = run(page, r"""let state = 11;
        const random = (n) => (state = (state * 1103515245 + 12345) % 2147483648) % n;
        const some = (list, most) => Array.from({length: 1 + random(most)}, () => list[random(list.length)]).join('');
        const tex = ['\\,', '\\;', '\\:', '\\!', '\\\\', '\\frac{1}{2}', '\\{', '\\}', 'x', '_1', '^2', '*', ' + ', '\\_', '\\#', '\\%', '\\&', '[', ']', '<', '|', '\\|',
          '\\left(', '\\right)', '~', '`'];
        const around = ['word ', '*em* ', '**bold** ', '`code` ', '\n\n', '\n', '- item ', '1. ', '> ', '# ', '\n\n```\ncode\n```\n\n', ' '];
        const marks = [['\\(', '\\)'], ['\\[', '\\]'], ['$$', '$$'], ['\\[\n', '\n\\]'], ['$$\n', '\n$$']];
        const wrong = [];
        for (let n = 0; n < 3000; n += 1) {
            let text = '';
            const sources = [];
            for (let more = random(5); more >= 0; more -= 1) {
                const [begin, end] = marks[random(marks.length)];
                const formula = `${begin}x${some(tex, 8)}x${end}`;
                // Within a paragraph or on lines of its own.
                const isApart = begin.includes('\n');
                sources.push(formula);
                text += isApart ? `\n\n${formula}\n\n` : formula + ' ';
                text += some(around, 6);
                if (isApart || random(2)) text += '\n\n';
            }
            const made = shown(text);
            const have = [...made.querySelectorAll('.formula')].map((place) => place.textContent);
            if (JSON.stringify(have) !== JSON.stringify(sources)) wrong.push([text, have]);
            made.remove();
        }
        done(wrong.slice(0, 3));""")
    equal(found, [])


@scripted
def formulas_come_whole_and_stay(page):
    """No half of a formula is drawn, none is taken for emphasis, and none goes back to its text while the answer grows."""
    page.ask("formulas")
    page.until(lambda: page.js("document.querySelectorAll('.katex').length") == 7, "all formulas are drawn")
    page.click("#new")
    page.js("""(window.seen = [], new MutationObserver(() => seen.push(['.katex', '.formula', 'em', '.katex-error'].map(
        (kind) => document.querySelectorAll(`.answer ${kind}`).length))).observe(document.getElementById('messages'), {subtree: true, childList: true}))""")
    page.ask("formulas once more")
    seen = page.js("seen")
    counts = [one[0] for one in seen]
    assert len(seen) > 20 and counts == sorted(counts) and counts[-1] == 7, counts
    equal({tuple(one[2:]) for one in seen}, {(0, 0)})
    assert r"Half of one: \(\frac{1}{" in page.one(".answer").text
    equal(page.js("[...document.querySelectorAll('.answer .markdown :is(h1, h2, h3, h4)')].map(e => e.tagName)"), ["H2", "H3"])
    equal(page.js("document.querySelector('.answer annotation').textContent"), r"\pi r^2\,")


@scripted
def libraries_come_when_they_are_needed(page):
    asked = "performance.getEntriesByType('resource').map(e => e.name).filter(name => /katex|highlight/.test(name)).length"
    page.ask("plain")
    equal(page.js(asked), 0)
    page.ask("colours")
    page.until(lambda: page.all(".in-keyword"), "the code has colours")
    equal(page.js(asked), 1)
    page.ask("formulas")
    page.until(lambda: page.all(".katex"), "formulas are drawn")
    page.until(lambda: page.js("document.fonts.check('16px KaTeX_Main')"), "the fonts are there")


@scripted
def code_has_colours(page):
    page.ask("colours")
    page.until(lambda: page.all(".in-keyword"), "the code has colours")
    equal([span.text for span in page.all(".in-keyword")], ["fn", "let"])
    equal([span.text for span in page.all(".in-string")], ['"mill"'])
    equal(page.js("[...document.querySelectorAll('.answer code')].map(e => e.textContent)"),
          ['// One function.\nfn main() {\n    let name = "mill";\n}', "let x = 1;"])
    equal(page.js("document.querySelectorAll('.answer code')[1].children.length"), 0)


@check
def slow_code_holds_nothing_up(page):
    """Texts for which the library's time is quadratic: alone, the worst of them takes a second for 10,000 characters."""
    took, coloured = run(page, r"""const texts = [['csharp', 'a '.repeat(150) + '\n'], ['ini', 'a.'.repeat(150) + '\n'], ['javascript', '\n'],
            ['java', '$'.repeat(300) + '\n'], ['rust', 'let x = 1;\n']];
        const code = (language, line) => '```' + language + '\n' + line.repeat(Math.floor(19000 / line.length)) + '\n```';
        const first = shown(code('rust', 'let x = 1;\n').slice(0, 40), drawn);
        const ready = () => first.querySelector('.in-keyword') ? go() : setTimeout(ready, 50);
        const go = () => {
            const before = performance.now();
            const made = texts.map((one) => shown(code(...one), drawn));
            const all = () => {
                const last = made.at(-1).querySelectorAll('.in-keyword').length;
                if (last || performance.now() - before > 60000) done([performance.now() - before, last]);
                else setTimeout(all, 20);
            };
            all();
        };
        ready();""")
    assert coloured > 1000 and took < 8000, (took, coloured)


@check
def wrong_and_hostile_formulas_stay_text(page):
    texts = [r"\(\frac{1}\)", r"\(\undefined\)", r"\(\href{javascript:alert(1)}{x}\)", r"\(\includegraphics{https://evil.example/x.png}\)",
             r"\(\htmlStyle{color:red}{x}\)", r"\(\def\a{\a\a}\a\)", r"\(" + "{" * 2000 + r"\)", r"\(\rule{9999em}{9999em}\)"]
    tags = run(page, r"""const made = arguments[0].map((text) => shown(text, drawn));
        setTimeout(() => done(made.map((one) => [one.textContent, one.querySelectorAll('a, img').length, one.scrollWidth])), 3000);""", texts)
    for text, (shown, links, width) in zip(texts, tags, strict=True):
        assert links == 0 and width < 3000, (text[:50], links, width)
        if "rule" not in text and "href" not in text and "include" not in text and "html" not in text:
            equal(shown, text)
