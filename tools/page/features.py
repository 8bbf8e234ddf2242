"""Checks of files, searches, versions and settings, and of what axe-core finds."""

import json
import pathlib
import tempfile

from browser import check, equal, scripted
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

AXE = pathlib.Path(__file__).resolve().parents[2] / "target/page/node_modules/axe-core/axe.min.js"


def files(**contents):
    """Paths of new files, as a browser's picker gets them."""
    folder = pathlib.Path(tempfile.mkdtemp())
    for name, content in contents.items():
        (folder / name.replace("__", ".")).write_bytes(content if isinstance(content, bytes) else content.encode())
    return "\n".join(str(path) for path in sorted(folder.iterdir()))


def pick(page, selector, paths):
    page.driver.find_element(By.CSS_SELECTOR, selector).send_keys(paths)


@scripted
def texts_are_attached(page):
    pick(page, "#pick", files(a__py="print(1)\n", b__md="# B\n```\nx\n```\n"))
    page.until(lambda: len(page.all("#files li")) == 2, "both are there")
    page.click("#files li:first-child button")
    pick(page, "#pick", files(data__csv="a,b\n1,2\n"))
    page.until(lambda: len(page.all("#files li")) == 2, "the third is there")
    page.ask("What is it?")
    wanted = "b.md:\n````md\n# B\n```\nx\n```\n````\n\ndata.csv:\n```csv\na,b\n1,2\n```\n\nWhat is it?"
    equal(page.server.seen[-1]["messages"][-1]["content"], wanted)
    equal(page.all("#files li"), [])
    page.click(".bubble details:first-child summary")
    page.until(lambda: "# B" in page.one(".bubble pre").text, "the file can be read")
    page.open()
    equal([name.text for name in page.all(".bubble .name")], ["b.md", "data.csv"])
    page.click("article.user .actions > button:first-child")
    page.fill(".edit textarea", "And now?")
    page.click(".edit .main")
    page.done()
    equal(page.server.seen[-1]["messages"][-1]["content"], wanted.replace("What is it?", "And now?"))


@check
def what_is_no_text_is_not_attached(page):
    given = {"a__png": b"\x89PNG", "b__pdf": "%PDF", "c__bin": b"\xff\xfe\x00", "d__txt": "x" * (256 * 1024 + 1), "e__txt": " \n", "f__txt": "good"}
    pick(page, "#pick", files(**given))
    page.until(lambda: page.all("#files li"), "the good one is there")
    said = page.one("#notice").text
    for part in ("a.png is a picture", "b.pdf is a PDF", "c.bin is no text in UTF-8", "reads text only", "d.txt has 256 KiB", "e.txt is empty"):
        assert part in said, f"{part!r} is not in {said!r}"
    equal([name.text for name in page.all("#files .name")], ["f.txt"])
    pick(page, "#pick", files(**{f"n{n}__txt": "x" for n in range(9)}))
    page.until(lambda: "8 files at most" in page.one("#notice").text, "there is a limit")
    equal(len(page.all("#files li")), 8)


@scripted
def conversations_are_found(page):
    for text in ("Äpfel and pears", "Birnen", "pears alone"):
        page.click("#new")
        page.ask(text)
    titles = lambda: [entry.text for entry in page.all("#list .open")]
    for search, wanted in [("PEARS", ["pears alone", "Äpfel and pears"]), ("apfel pears", ["Äpfel and pears"]), ("heard birnen", ["Birnen"]), ("nowhere", [])]:
        page.fill("#search", search)
        equal((search, titles()), (search, wanted))
    assert "Nothing is found" in page.one("#list").text
    page.fill("#search", "apfel")
    page.click("#list .open")
    equal(page.users(), ["Äpfel and pears"])
    page.fill("#search", "")
    equal(len(titles()), 3)


@check
def an_export_can_be_imported(page):
    page.ask("Export me.")
    page.js("(window.made = [], URL.createObjectURL = (blob) => (blob.text().then((t) => made.push(t)), 'blob:x'))")
    page.js("(HTMLAnchorElement.prototype.click = function () {})")
    page.click("#export")
    page.until(lambda: page.js("made.length"), "the file is made")
    text, shown = page.js("made[0]"), page.one("#messages").text
    page.fresh()
    bad = {"a__json": "{", "b__json": "[1]", "c__json": json.dumps({"messages": [{"role": "user", "content": "x"}, {"role": "user"}]})}
    pick(page, "#import-file", files(**bad))
    page.until(lambda: "c.json" in page.one("#notice").text, "what is wrong is said")
    for part in ("a.json was not imported: it is no JSON", "b.json was not imported: it has no list", "message 2 of it"):
        assert part in page.one("#notice").text, page.one("#notice").text
    equal(page.all("#list li"), [])
    pick(page, "#import-file", files(chat__json=text))
    page.until(lambda: page.all("#list li"), "it is there")
    equal((page.one("#messages").text, page.one("#title").text, page.one("#notice").text), (shown, "Export me.", ""))
    page.open()
    equal(page.one("#messages").text, shown)


@check
def no_export_breaks_the_page(page):
    """Whatever stands in place of a part of an export: it is refused, or its messages can be shown."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}, "completion_tokens_details": {"reasoning_tokens": 1}}
    answer = {"role": "assistant", "content": "x", "reasoning": "y", "thought": 1.5, "tool_calls": [call], "model": "m", "json": True, "finish": "length",
              "usage": usage, "kernmill": {"seed": 1, "tokens_per_second": 2, "first_token_seconds": 1}, "trouble": {"message": "a", "detail": "b", "status": 500}}
    user = {"role": "user", "content": "x", "files": [{"name": "a.txt", "text": "b"}], "versions": [[{"role": "user", "content": "z"}], None]}
    messages = [user, answer, {"role": "tool", "content": "r", "tool_call_id": "c", "name": "f"}, {"role": "assistant", "content": ""}]
    export = {"title": "t", "updated": "2026-01-01T00:00:00.000Z", "settings": {"model": "m", "top_p": "1"}, "messages": messages}
    taken, refused, broken = page.driver.execute_async_script("""const done = arguments[1];
        Promise.all([import('./store.js'), import('./view.js')]).then(([{Store}, {AnswerView, userView, toolView}]) => {
            const store = new Store(() => {});
            const [broken, count] = [[], {taken: 0, refused: 0}];
            const nothing = new Proxy({}, {get: () => () => {}});
            const look = (whole, place) => {
                let made;
                try {
                    made = store.take(JSON.stringify(whole));
                    count.taken += 1;
                } catch (error) {
                    count.refused += 1;
                    if (!/^it has no list|^message \\d+ of it/.test(error.message)) broken.push([place, String(error)]);
                    return;
                }
                try {
                    for (const message of made.messages) {
                        if (message.role === 'user') userView(message, nothing);
                        else if (message.role === 'tool') toolView(message);
                        else new AnswerView(message, nothing, false).finish(true);
                    }
                    store.find('x');
                    store.remove(made.id);
                } catch (error) {
                    broken.push([place, String(error)]);
                }
            };
            const whole = arguments[0];
            const walk = (part, place) => {
                for (const name of Object.keys(part)) {
                    const kept = part[name];
                    for (const other of [null, 5, 'x', true, [], [null], {}, {length: 1}]) {
                        part[name] = other;
                        look(whole, `${place}.${name} = ${JSON.stringify(other)}`);
                    }
                    delete part[name];
                    look(whole, `no ${place}.${name}`);
                    part[name] = kept;
                    if (typeof kept === 'object' && kept) walk(kept, `${place}.${name}`);
                }
            };
            look(whole, 'as it is');
            walk(whole, 'export');
            done([count.taken, count.refused, broken]);
        }).catch((error) => done([0, 0, String(error)]));""", export)
    equal(broken, [])
    assert taken > 100 and refused > 100, (taken, refused)


@scripted
def versions_are_kept(page):
    place = lambda: page.js("[...document.querySelectorAll('.versions')].map(e => [...e.children].map(e => e.textContent).join(' '))")
    page.ask("One.")
    page.ask("Two.")
    equal(place(), [])
    page.click(".answer:last-child .actions > button:last-of-type")
    page.done()
    equal(place(), ["< 2/2 >"])
    page.click("article.user:first-child .actions > button:first-child")
    page.fill(".edit textarea", "Other.")
    page.click(".edit .main")
    page.done()
    equal((page.users(), place()), (["Other."], ["< 2/2 >"]))
    page.open()
    page.click(".versions button:first-child")
    equal((page.users(), place()), (["One.", "Two."], ["< 1/2 >", "< 2/2 >"]))
    page.click(".answer:last-child .versions button:first-child")
    equal(place(), ["< 1/2 >", "< 1/2 >"])
    assert page.js("document.activeElement.closest('.answer:last-child .versions') !== null"), "the focus stays"
    page.ask("Three.")
    equal([m["content"] for m in page.server.seen[-1]["messages"] if m["role"] == "user"], ["One.", "Two.", "Three."])
    page.click("article.user:first-child .versions button:last-child")
    equal(page.users(), ["Other."])
    page.click("article.user:first-child .versions button:first-child")
    equal(page.users(), ["One.", "Two.", "Three."])
    page.click("#new")
    page.ask("error 400")
    page.click(".trouble button")
    page.done()
    equal((place(), len(page.all(".answer"))), ([], 1))


CONTINUE = "[aria-label='Continue this answer']"


@check
def an_answer_that_was_cut_goes_on(page):
    page.click("#open-settings")
    page.fill("#max", "4")
    page.fill("#temperature", "0")
    page.click("#settings .close")
    page.choose("#effort", "none")
    page.ask("What is the weather like on a day in May?")
    text = "document.querySelector('.answer > .markdown').textContent"
    before = page.js(text)
    equal(page.one(CONTINUE).text, "Continue")
    page.click("#open-settings")
    page.fill("#max", "")
    page.click("#settings .close")
    page.click(CONTINUE)
    page.done()
    after = page.js(text)
    assert after.startswith(before) and len(after) > len(before), (before, after)
    equal((len(page.all(".answer")), page.all(".trouble"), page.all(CONTINUE)), (1, [], []))
    page.open()
    equal(page.js(text), after)


@scripted
def going_on_sends_the_answer_as_it_is(page):
    page.ask("reason for long")
    cut = page.js("JSON.parse(Object.entries(localStorage).find(([name]) => name.startsWith('kernmill.chat.'))[1]).messages[1]")
    equal(cut["finish"], "length")
    page.click(CONTINUE)
    answer = page.done()
    sent = page.server.seen[-1]
    told = {"role": "assistant", "content": cut["content"], "reasoning_content": cut["reasoning"]}
    equal((sent["messages"][1], sent["continue_final_message"], sent["add_generation_prompt"]), (told, True, False))
    assert answer.text.count("Paragraph 199") == 1 and "And this is the rest." in answer.text, answer.text[-300:]
    # The tokens of both parts count, and what follows has all of the text.
    assert "84 tokens, 12 of reasoning" in answer.text and "reached the limit" not in answer.text, answer.text[-300:]
    page.ask("next")
    assert page.server.seen[-1]["messages"][1]["content"].endswith("And this is the rest.")
    # An answer before the last one stays as it is.
    page.send("slow")
    page.until(lambda: "word5" in page.one(".answer:last-child").text, "text comes")
    page.click("#stop")
    page.done()
    equal(len(page.all(CONTINUE)), 1)
    page.ask("meanwhile")
    equal(page.all(CONTINUE), [])


@scripted
def what_cannot_go_on_says_so(page):
    page.ask("long, and refused")
    text = page.js("document.querySelector('.answer > .markdown').textContent")
    page.click(CONTINUE)
    page.done()
    assert "begins its answers with thoughts" in page.one(".trouble").text
    equal(page.js("document.querySelector('.answer > .markdown').textContent"), text)
    page.click(".trouble button")
    page.done()
    equal([body.get("continue_final_message") for body in page.server.seen[-3:]], [None, True, True])
    # JSON that was cut is no text to go on in.
    page.click("#new")
    page.click("#open-settings")
    page.choose("#format", "object")
    page.click("#settings .close")
    page.ask("long JSON")
    assert "reached the limit" in page.one(".answer").text
    equal(page.all(CONTINUE), [])


@scripted
def all_settings_are_sent(page):
    page.click("#open-settings")
    wanted = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1, "presence_penalty": -1, "frequency_penalty": 2, "seed": 3}
    for name, value in wanted.items():
        page.fill(f"#{name}", str(value))
    page.fill("#max", "7")
    page.fill("#stops", "END\n\nSTOP")
    page.fill("#bias", '{"42": -100}')
    page.fill("#prediction", "old text")
    page.choose("#format", "regex")
    page.fill("#regex", "[a-z]+")
    page.click("#settings .close")
    page.ask("with everything")
    wanted |= {"max_completion_tokens": 7, "stop": ["END", "STOP"], "logit_bias": {"42": -100}, "prediction": {"type": "content", "content": "old text"},
               "kernmill": {"regex": "[a-z]+"}}
    sent = page.server.seen[-1]
    equal({name: sent.get(name) for name in wanted}, wanted)
    for name, value in [("top_p", "1.5"), ("top_k", "1.5"), ("max", "0"), ("seed", "-1"), ("temperature", "-1"), ("stops", "x\n" * 17), ("bias", "[]")]:
        page.click("#open-settings")
        page.fill(f"#{name}", value)
        assert page.one(f"#{name}-error").text, f"{name}: {value} is taken"
        page.click("#settings .close")
        count = len(page.server.seen)
        page.one("#input").send_keys("refused", Keys.ENTER)
        assert page.one("#settings").get_attribute("open"), f"{name}: {value} opens the settings"
        equal(len(page.server.seen), count)
        page.fill(f"#{name}", "")
        page.click("#settings .close")
        page.one("#input").clear()
    page.click("#open-settings")
    page.fill("#top_k", "3")
    page.click("#top_k ~ .reset")
    equal(page.js("[document.activeElement.id, document.activeElement.value]"), ["top_k", ""])
    page.click("#reset")
    page.choose("#format", "text")
    page.fill("#prediction", "")
    page.click("#settings .close")
    page.ask("plain")
    equal(sorted(page.server.seen[-1]), ["messages", "model", "stream", "stream_options"])


@scripted
def axe_finds_nothing(page):
    """Each view, on a desk and on a phone, in light and in dark."""
    if not AXE.is_file():
        print("      axe-core is not installed: see README.md")
        return
    source = AXE.read_text()

    def look(view):
        page.driver.execute_script(source)
        found = page.driver.execute_async_script("""const done = arguments[0];
            const ended = document.getAnimations().map((one) => one.finished.catch(() => {}));
            Promise.race([Promise.all(ended), new Promise((resolve) => setTimeout(resolve, 1000))]).then(() => axe.run(document,
                {rules: {'label-content-name-mismatch': {enabled: true}, 'target-size': {enabled: true}}})).then(
                ({violations}) => done(violations.flatMap((one) => one.nodes.map((node) =>
                `${one.impact} ${one.id}: ${node.html.slice(0, 120)} ${node.failureSummary}`))), (error) => done([String(error)]));""")
        equal((view, found), (view, []))

    for theme in ("light", "dark"):
        for phone in (False, True):
            page.fresh()
            if phone:
                page.phone(390, 844)
            page.choose("#theme", theme)
            look("nothing yet")
            pick(page, "#pick", files(a__txt="text"))
            page.until(lambda: page.all("#files li"), "it is attached")
            for text in ("formulas", "reason about markdown", "colours"):
                page.ask(text)
            page.click(".answer:last-child .actions > button:last-of-type")
            page.done()
            page.until(lambda: page.all(".katex") and page.all(".in-keyword"), "all is drawn")
            look(f"an answer, {theme}, phone {phone}")
            page.ask("long")
            look(f"a cut answer, {theme}, phone {phone}")
            page.click("article.user .actions > button:first-child")
            look(f"an edit, {theme}, phone {phone}")
            page.click("#open-settings")
            page.choose("#format", "schema")
            page.fill("#schema", "{}")
            page.click("#example")
            page.fill("#top_p", "7")
            look(f"settings, {theme}, phone {phone}")
            page.click("#settings .close")
            page.fill("#top_p", "")
            page.choose("#format", "text")
            page.click("#new")
            page.ask("a call")
            look(f"a call, {theme}, phone {phone}")
            page.click("#open-status")
            look(f"status, {theme}, phone {phone}")
            page.click("#open-status")
            if phone:
                page.click("#menu")
                page.until(lambda: page.js("document.getAnimations().length === 0"), "the list is open")
                look(f"the list, {theme}")
            page.desktop()


@check
def the_head_fits_a_phone(page):
    page.phone(320, 600)
    page.open()
    page.ask("A title that is long enough to fill the whole head of a small phone, and more.")
    boxes = [element.rect for element in page.all("header > *")]
    equal(len({round(box["y"] + box["height"] / 2) for box in boxes}), 1)
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 320 for box in boxes), boxes
    assert page.js("document.querySelector('header').offsetHeight") < 60
    page.desktop()


@scripted
def reasoning_has_its_time(page):
    answer = page.ask("reason about it")
    summary = answer.find_element(By.CSS_SELECTOR, "summary").text
    assert summary.startswith("Reasoned for "), summary
    page.open()
    equal(page.one("summary").text, summary)
