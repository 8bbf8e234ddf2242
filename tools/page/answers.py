"""Checks that need the answers of `mock.py`."""

import json

import mock
from browser import equal, scripted
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


@scripted
def reasoning_is_folded(page):
    page.send("reason about it")
    page.until(lambda: page.js("document.querySelector('.reasoning')?.open"), "reasoning is open while it comes")
    answer = page.done()
    equal(answer.find_element(By.CSS_SELECTOR, ".reasoning").get_attribute("open"), None)
    page.click(".reasoning summary")
    text = answer.find_element(By.CSS_SELECTOR, ".reasoning").text
    equal(text.count("The user wants to know."), 1)
    assert "12 of reasoning" in answer.text, answer.text
    page.ask("next")
    sent = page.server.seen[-1]["messages"][1]
    equal((sent["reasoning_content"], sent["content"]), (mock.REASONING, "nano heard: reason about it"))


@scripted
def stop_keeps_what_came(page):
    page.send("slow one")
    page.until(lambda: "word5" in page.one(".answer").text, "text comes")
    page.press(Keys.ESCAPE)
    answer = page.done()
    assert "word5" in answer.text and "You stopped the answer." in answer.text and "word399" not in answer.text, answer.text
    page.until(lambda: page.server.running == 0, "the server sees that the browser left", 10)
    page.send("slow two")
    page.until(lambda: "word3" in page.one(".answer:last-child").text, "text comes")
    page.click("#stop")
    page.done()
    assert "word5" in page.server.seen[-1]["messages"][1]["content"], "the part is sent back"
    page.open()
    assert "word5" in page.all(".answer")[0].text


@scripted
def text_is_drawn_before_a_pause(page):
    page.send("pause")
    end = "document.querySelector('.answer > .markdown').textContent.slice(-17)"
    page.until(lambda: page.js(end) == "before the pause.", "all that came is drawn", 3)
    page.done()
    equal(page.js(end), " pause. After it.")


@scripted
def a_turn_goes_on_out_of_sight(page):
    page.send("slow in the background")
    page.click("#new")
    page.ask("meanwhile")
    equal(len(page.all("#list li.busy")), 1)
    page.click("#list li.busy .open")
    page.until(lambda: "word9" in page.one(".answer").text, "text comes")
    page.click("#stop")
    page.done()


@scripted
def a_deleted_turn_ends_and_stays_away(page):
    page.send("slow, and deleted")
    page.until(lambda: "word3" in page.one(".answer").text, "text comes")
    page.click("#list li button:nth-child(3)")
    page.until(lambda: page.server.running == 0, "the request ends", 10)
    page.open()
    equal((len(page.all("#list li")), page.users()), (0, []))


@scripted
def a_turn_gives_way_to_an_edit(page):
    page.send("slow, and then edited")
    page.until(lambda: "word3" in page.one(".answer").text, "text comes")
    page.click("article.user .actions > button:first-child")
    page.fill(".edit textarea", "quick")
    page.press(Keys.ENTER)
    page.until(lambda: "heard: quick" in page.one(".answer").text, "the other message is answered")
    page.done()
    equal((page.users(), len(page.all(".answer")), page.server.seen[-1]["messages"]), (["quick"], 1, [{"role": "user", "content": "quick"}]))


@scripted
def tools_take_a_typed_result(page):
    page.click("#open-settings")
    page.fill("#tools", "[{")
    assert "no JSON" in page.one("#tools-error").text
    page.click("#settings .close")
    page.one("#input").send_keys("refused", Keys.ENTER)
    assert page.one("#settings").get_attribute("open"), "what cannot be sent opens the settings"
    equal(page.js("document.getElementById('input').value"), "refused")
    page.click("#example")
    page.click("#settings .close")
    page.one("#input").clear()
    page.ask("weather?")
    card = page.one(".call")
    assert "get_weather" in card.text and '"city": "Paris"' in card.text, card.text
    page.one(".result").send_keys("12 degrees", Keys.ENTER)
    answer = page.done()
    assert "The tool says: 12 degrees" in answer.text, answer.text
    sent = page.server.seen[-1]
    equal([message["role"] for message in sent["messages"]], ["user", "assistant", "tool"])
    equal(sent["messages"][1]["tool_calls"][0]["function"], {"name": "get_weather", "arguments": '{"city": "Paris"}'})
    equal((sent["messages"][2]["tool_call_id"], sent["messages"][1]["content"]), ("call_0", None))
    page.ask("again?")
    page.ask("no result given")
    equal([m["role"] for m in page.server.seen[-1]["messages"]], ["user", "assistant", "tool", "assistant", "user", "user"])


@scripted
def settings_are_sent(page):
    page.click("#open-settings")
    for name, text in {"system": "Be short.", "max": "50", "temperature": "0.5", "seed": "7"}.items():
        page.fill(f"#{name}", text)
    page.click("#settings .close")
    page.choose("#effort", "high")
    page.choose("#model", "pirate")
    page.ask("hello")
    sent = page.server.seen[-1]
    equal(sent["messages"][0], {"role": "system", "content": "Be short."})
    wanted = {"model": "pirate", "max_completion_tokens": 50, "temperature": 0.5, "seed": 7, "reasoning_effort": "high", "stream": True}
    equal({name: sent[name] for name in wanted}, wanted)
    page.click("#new")
    equal(page.js("document.getElementById('system').value"), "Be short.")
    page.driver.execute_script("localStorage.clear(); sessionStorage.clear()")
    page.open()
    page.ask("plain")
    equal(sorted(page.server.seen[-1]), ["messages", "model", "stream", "stream_options"])


@scripted
def json_mode(page):
    page.click("#open-settings")
    page.choose("#format", "object")
    page.click("#settings .close")
    answer = page.ask("as JSON")
    equal(json.loads(answer.find_element(By.CSS_SELECTOR, "pre").text)["form"], "json_object")
    page.click("#open-settings")
    page.choose("#format", "schema")
    page.fill("#schema", '{"type": "object"}')
    page.click("#settings .close")
    page.ask("by schema")
    equal(page.server.seen[-1]["response_format"]["json_schema"]["schema"], {"type": "object"})


@scripted
def errors_are_text_with_a_way_on(page):
    for text, message, detail in [
        ("error 400", "temperature: 9 is above the greatest, 2.", "HTTP 400, invalid_request_error, temperature"),
        ("error 503", "The queue is full.", "HTTP 503, overloaded_error; the server asks to wait 7 s"),
        ("error inside", "The engine stopped.", "server_error"),
        ("broken", "The connection ended before the answer was complete.", ""),
    ]:
        page.click("#new")
        answer = page.ask(text)
        trouble = answer.find_element(By.CSS_SELECTOR, ".trouble")
        assert message in trouble.text and detail in trouble.text, trouble.text
        count = len(page.server.seen)
        page.click(".trouble button")
        page.done()
        equal((len(page.server.seen), len(page.all(".answer"))), (count + 1, 1))
    assert "This breaks o" in page.one(".answer").text
    page.click("#new")
    assert "reached the limit" in page.ask("long").text


@scripted
def markdown_is_shown(page):
    page.ask("markdown")
    page.until(lambda: page.all(".in-keyword"), "the code has colours")
    tags = page.js("[...document.querySelectorAll('.answer > .markdown *')].map(e => e.tagName).join(' ')")
    for tag in "H2 P STRONG EM CODE DEL A BR OL UL LI BLOCKQUOTE PRE TABLE TH TD HR".split():
        assert f" {tag} " in f" {tags} ", f"no {tag} in {tags}"
    equal(page.js("document.querySelector('.answer ol > li > ul').children.length"), 2)
    equal(page.js("[...document.querySelectorAll('.answer td')].map(e => e.innerText)"), ["a | b", "12", "c\nd", "3.5"])
    equal(page.one(".answer pre").text.split("\n")[1].strip(), 'println!("1 < 2 && **no bold**");')
    links = page.js("[...document.querySelectorAll('.answer a')].map(e => [e.href, e.rel, e.target])")
    equal(links, [[href, "noopener noreferrer", "_blank"] for href in ("https://example.org/a_(b)", "https://example.org/x")])
    page.click(".answer .bar button")
    page.until(lambda: page.one(".bar button").text == "Copied", "the code is copied")
    assert "\tprintln!" in page.js("navigator.clipboard.readText()"), "the copy keeps the tab"
    streamed = page.js("document.querySelector('.answer > .markdown').innerHTML")
    page.open()
    page.until(lambda: page.all(".in-keyword"), "the code has colours")
    equal(page.js("document.querySelector('.answer > .markdown').innerHTML"), streamed.replace("Copied", "Copy"))


@scripted
def hostile_text_stays_text(page):
    answer = page.ask("hostile")
    text = page.js("document.querySelector('.answer > .markdown').textContent")
    for part in ("<script>", "<img src=x onerror=", "javascript:alert(1)", "data:text/html", "//evil.example)", "[" * 90_000, "*" * 90_000):
        assert part in text, f"{part[:30]} is not shown"
    tags = set(page.js("[...document.querySelectorAll('.answer > .markdown *')].map(e => e.tagName)"))
    assert tags <= set("P A STRONG EM DEL CODE PRE BR UL OL LI BLOCKQUOTE H2 H3 H4 H5 H6 HR DIV SPAN BUTTON TABLE THEAD TBODY TR TH TD".split()), tags
    equal(page.js("[...document.querySelectorAll('.answer .markdown a')].map(e => e.href)"), ["https://evil.example/pixel.png"])
    equal(page.driver.title, "kernmill")
    for mark in ["[", "*", "*a ", "`` ` ", "](", "![", "> ", "- ", "|", "[a](http://b", "**_~~", "1. ", "```\n", "\n\n  - ",
                 "\\(", "\\[\n", "$a", "$a ", "$$", "$$\n", "\\(\\", "$a\\$", "\\[ \\]", "\\begin{align}\n", "# \\("]:
        # The best of three, as other programs run beside the browser.
        script = """const {Markdown} = await import('./markdown.js');
            const once = (text) => {
              const before = performance.now();
              new Markdown(document.createElement('div')).set(text);
              return performance.now() - before;
            };
            return [20000, 80000].map((n) => {
              const text = arguments[0].repeat(n / arguments[0].length);
              return Math.min(once(text), once(text), once(text));
            });"""
        small, large = page.driver.execute_script(script, mark)
        assert large < 12 * small + 150, f"{mark!r}: {small:.0f} ms for 20 kB, {large:.0f} ms for 80 kB"
    assert answer.find_element(By.CSS_SELECTOR, ".numbers").text


@scripted
def markdown_grows_to_what_it_is_at_once(page):
    """Random texts, piece by piece and whole, give the same elements; words are never lost."""
    found = page.driver.execute_async_script("""const done = arguments[0];
        const parts = ['*', '**', '_', '~~', '`', '``', '```', '~~~', '\\n', '\\n\\n', '\\n- ', '\\n  - ', '\\n1. ', '\\n> ', '\\n>> ', '\\n# ',
          '\\n---\\n', '|', '\\n|-|-|\\n', '\\n| a | b |', '[', '](', ')', '![', '](https://a.b/)', 'https://c.d/', '<br>', '<b>', '\\\\', '    ', '\\t',
          ' ', ' ', '\\r\\n', 'x1 ', 'y2', ' z3', '\\u00e9', '\\ud83d\\ude00', '\\ud800', '\\0', '&amp;', '(', '.', '\\n```js\\n', '\\n***\\n', '$', '$$', '\\n$$\\n', '\\\\(', '\\\\)', '\\\\[', '\\n\\\\]\\n',
          '\\n\\\\begin{align}\\n', '\\\\end{align}', '\\n### '];
        let state = 7;
        const random = (n) => (state = (state * 1103515245 + 12345) % 2147483648) % n;
        const wrong = [];
        import('./markdown.js').then(({Markdown}) => {
          for (let n = 0; n < 3000; n += 1) {
            const pieces = Array.from({length: random(40)}, () => parts[random(parts.length)]);
            const text = pieces.join('');
            const [grown, whole] = [document.createElement('div'), document.createElement('div')];
            const growing = new Markdown(grown);
            for (let end = 0; end < text.length; end += 1 + random(4)) growing.set(text.slice(0, end), true);
            growing.set(text);
            new Markdown(whole).set(text);
            const count = (t) => (t.match(/[xyz][123]/g) || []).length;
            const shown = whole.textContent.replaceAll('Copy', ' ');
            if (grown.innerHTML !== whole.innerHTML || count(shown) !== count(text)) wrong.push([text, grown.innerHTML, whole.innerHTML]);
          }
          done(wrong.slice(0, 3));
        }, (error) => done([String(error)]));""")
    equal(found, [])


@scripted
def a_key_is_asked_for(page):
    locked = mock.start(key="open sesame")
    page.driver.get(locked.url)
    page.until(lambda: page.one("#settings").get_attribute("open"), "the page asks for the key")
    assert "A key is needed" in page.one("#key-help").text
    page.press("wrong", Keys.ENTER)
    page.until(lambda: page.one("#settings").get_attribute("open") and page.js("document.activeElement.id") == "key", "it asks again")
    page.press("open sesame", Keys.ENTER)
    page.until(lambda: page.all("#model option"), "the models are there")
    locked.key = "another"
    page.send("held up")
    page.until(lambda: page.one("#settings").get_attribute("open"), "the page asks for the key")
    assert "A key is needed" in page.one(".trouble").text
    page.fill("#key", "another")
    page.one("#key").send_keys(Keys.ENTER)
    page.until(lambda: "heard: held up" in page.one(".answer").text, "the answer comes by itself")
    equal(page.js("Object.values(localStorage).join().includes('another')"), False)
    equal(page.js("sessionStorage.getItem('kernmill.key')"), "another")
    page.collect()
    page.console = [entry for entry in page.console if "401" not in entry["message"]]
    locked.shutdown()


@scripted
def the_page_survives_what_is_stored(page):
    page.ask("good")
    page.driver.execute_script("""localStorage.setItem('kernmill.chat.bad', '{'); localStorage.setItem('kernmill.chat.b', 'null');
        localStorage.setItem('kernmill.chat.c', '{"id":"c","title":5,"messages":[null,{"role":"x"},{"role":"assistant","content":"kept","tool_calls":[{}]}]}');
        localStorage.setItem('kernmill.settings', '7'); localStorage.setItem('kernmill.theme', 'x');""")
    page.open()
    equal(page.users(), ["good"])
    page.ask("still works")
