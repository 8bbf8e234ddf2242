"""The page in a true browser: Debian's `chromium` and `chromium-driver`, driven by selenium.

    check.py [URL] [--key KEY] [--only WORD] [--pictures DIR]

Without a URL, the answers come from `mock.py`. With one, the server there is asked, and the checks that need certain
answers are named and left out. The exit status is 1 if a check fails.
"""

import argparse
import json
import pathlib
import re
import sys
import time
import traceback

import mock
from browser import CHECKS, Page, check, equal
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


@check
def chat(page):
    answer = page.ask("Say hello.")
    assert answer.find_element(By.CSS_SELECTOR, ".markdown").text or page.all(".reasoning"), "the answer is empty"
    numbers = answer.find_element(By.CSS_SELECTOR, ".numbers").text
    assert re.search(r"\d+ tokens.*\d tokens/s.*first after .*prompt \d+, \d+ cached", numbers), numbers
    equal(page.one("#title").text, "Say hello.")
    page.ask("And again.")
    equal(len(page.all(".answer")), 2)


@check
def reload_keeps_the_conversation(page):
    page.ask("Keep this.")
    text = page.one("#messages").text
    page.open()
    equal(page.one("#messages").text, text)
    equal([entry.text for entry in page.all("#list .open")], ["Keep this."])


@check
def edit_truncates(page):
    page.ask("First.")
    page.ask("Second.")
    page.click("article.user:first-child .actions > button:first-child")
    page.fill(".edit textarea", "Instead.")
    page.click(".edit .main")
    page.done()
    equal(page.users(), ["Instead."])
    page.click("article.user .actions > button:first-child")
    page.press(Keys.ESCAPE)
    equal(page.users(), ["Instead."])
    equal(page.js("document.activeElement.textContent"), "Edit")


@check
def retry_asks_again(page):
    page.ask("Once.")
    page.js("arguments[0].focus()", page.one(".answer .actions > button:last-of-type"))
    page.press(Keys.ENTER)
    page.done()
    equal(page.js("document.activeElement.id"), "input")
    equal((page.users(), len(page.all(".answer"))), (["Once."], 1))


@check
def conversations_are_renamed_and_deleted(page):
    page.ask("One.")
    page.click("#new")
    page.ask("Two.")
    page.click("#list li:first-child button:nth-child(2)")
    page.js("document.activeElement.select()")
    page.press("Renamed", Keys.ENTER)
    equal([entry.text for entry in page.all("#list .open")], ["Renamed", "One."])
    page.click("#list li:first-child button:nth-child(3)")
    equal([entry.text for entry in page.all("#list .open")], ["One."])
    page.click("#notice button:nth-of-type(1)")
    equal([entry.text for entry in page.all("#list .open")], ["Renamed", "One."])
    page.open()
    equal(len(page.all("#list li")), 2)


@check
def adapters_are_models(page):
    options = [option.text for option in page.all("#model option")]
    adapters = [text.split(" ")[0] for text in options if "adapter of" in text]
    if not adapters:
        print("      this server has no adapter")
        return
    page.choose("#model", adapters[0])
    answer = page.ask("Hello.")
    assert adapters[0] in answer.find_element(By.CSS_SELECTOR, ".numbers").text, answer.text
    page.open()
    equal(page.js("document.getElementById('model').value"), adapters[0])


@check
def keyboard_only(page):
    page.driver.refresh()
    page.until(lambda: page.all("#model option"), "the models are there")
    equal(page.js("document.activeElement.id"), "input")
    page.press("By keys")
    page.chord(Keys.SHIFT, Keys.ENTER)
    page.press("only", Keys.ENTER)
    page.done()
    equal(page.users(), ["By keys\nonly"])
    equal(page.js("document.activeElement.id"), "input")
    page.chord(Keys.CONTROL, "k")
    equal((page.users(), page.js("document.activeElement.id")), ([], "input"))
    page.js("document.activeElement.blur()")
    seen, outline = [], []
    for _ in range(40):
        page.press(Keys.TAB)
        name = page.js("document.activeElement.id || document.activeElement.textContent")
        if page.js("document.activeElement === document.body"):
            continue
        if name in seen:
            break
        seen.append(name)
        has_ring = "getComputedStyle(document.activeElement).outlineStyle !== 'none' || document.activeElement.id === 'input'"
        outline.append(page.js(has_ring))
    wanted = {"new", "theme", "export", "open-status", "open-settings", "log", "input", "model", "effort", "send", "By keys only"}
    assert wanted <= set(seen), f"not reached by Tab: {wanted - set(seen)}; reached {seen}"
    assert all(outline), f"no ring around {[name for name, has in zip(seen, outline) if not has]}"
    page.js("document.getElementById('open-settings').focus()")
    page.press(Keys.ENTER)
    assert page.one("#settings").get_attribute("open"), "the dialog opens"
    page.press(Keys.ESCAPE)
    equal(page.js("[document.getElementById('settings').open, document.activeElement.id]"), [False, "open-settings"])


@check
def everything_has_a_name(page):
    page.ask("Names.")
    page.click("#open-settings")
    nameless = page.js("""[...document.querySelectorAll('input, select, textarea, button')].filter(e =>
        !(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)""")
    equal(nameless, [])
    equal(page.js("document.getElementById('live').getAttribute('aria-live')"), "polite")
    assert page.js("document.getElementById('live').textContent").strip(), "the answer is not read aloud"


@check
def phone_width(page):
    for width in (360, 320):
        page.phone(width, 700)
        page.open()
        equal(page.js("document.activeElement.id"), "")
        page.ask("A message for a small screen, with-a-word-that-is-so-long-that-it-must-be-broken-somewhere-or-other.")
        equal(page.width(), (width, width))
        assert page.js("getComputedStyle(document.getElementById('drawer')).visibility") == "hidden"
        for button in page.all("header button, #composer button, #composer select"):
            box = button.rect
            assert not box["width"] or box["x"] + box["width"] <= width, f"{button.get_attribute('id')} is cut off: {box}"
        page.click("#menu")
        page.until(lambda: page.one("#drawer").is_displayed(), "the drawer opens")
        equal(page.width(), (width, width))
        page.press(Keys.ESCAPE)
        equal(page.js("document.activeElement.id"), "menu")
        for name in ("settings", "status"):
            page.click(f"#open-{name}")
            equal(page.width(), (width, width))
            page.click(f"#{name} .head button")
    page.desktop()


@check
def dark_and_light(page):
    def ground(system):
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": system}]})
        return sum(map(int, re.findall(r"\d+", page.js("getComputedStyle(document.documentElement).backgroundColor"))[:3])) > 400
    equal((ground("light"), ground("dark")), (True, False))
    page.choose("#theme", "light")
    equal((ground("light"), ground("dark")), (True, True))
    page.choose("#theme", "dark")
    page.open()
    equal((ground("light"), ground("dark")), (False, False))
    page.choose("#theme", "")
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@check
def status_lives(page):
    page.click("#open-status")
    value = lambda name: page.js("[...document.querySelectorAll('#status dt')].find(e => e.textContent === arguments[0]).nextSibling.textContent", name)
    page.until(lambda: "tokens/s" in value("Generated"), "the speed is shown")
    first = value("Up")
    # A server that has run for long shows minutes.
    page.until(lambda: value("Up") != first, "the view is made anew", 70)
    equal(len(page.all("#status tbody tr")), 3)
    page.js("performance.clearResourceTimings()")
    page.click("#open-status")
    time.sleep(2.5)
    equal(page.js("performance.getEntriesByName(new URL('v1/loads', document.baseURI)).length"), 0)


@check
def a_query_runs_nothing(page):
    page.open("?q=hello&prompt=hello")
    time.sleep(0.5)
    equal(page.users(), [])


@check
def export_is_json(page):
    page.ask("Export me.")
    page.js("(window.made = [], URL.createObjectURL = (blob) => (blob.text().then((t) => made.push(t)), 'blob:x'))")
    page.js("(HTMLAnchorElement.prototype.click = function () { made.name = this.download })")
    page.click("#export")
    page.until(lambda: page.js("made.length"), "the file is made")
    kept = json.loads(page.js("made[0]"))
    equal(page.js("made.name"), "Export-me-.json")
    equal([message["role"] for message in kept["messages"]], ["user", "assistant"])


@check
def source_is_strict(page):
    """No way from text to HTML or to code, and nothing inline that the policy forbids."""
    for file in filter(pathlib.Path.is_file, mock.PAGE.iterdir()):
        text = file.read_text()
        assert len(text.splitlines()) < 500, f"{file.name} is long"
        for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "new Function", "DOMParser", " style=", "<style", "onclick="):
            assert word not in text, f"{file.name} has {word}"


# The checks of that file come after those above.
import answers  # noqa: E402, F401
import features  # noqa: E402, F401
import formulas  # noqa: E402, F401


def pictures(page, folder):
    folder.mkdir(parents=True, exist_ok=True)

    def save(name):
        time.sleep(0.4)
        page.driver.save_screenshot(str(folder / f"{name}.png"))

    page.fresh()
    page.choose("#theme", "light")
    page.ask("Sort these words: pear, apple, fig.")
    page.click("#new")
    page.ask("Translate to French: the mill stands still.")
    page.click("#new")
    page.ask("Give me the reason: what is a slice in Rust?")
    save("chat-light")
    page.click("#open-status")
    time.sleep(30)
    save("chat-status")
    page.choose("#theme", "dark")
    save("status-dark")
    page.click("#open-status")
    page.click("#open-settings")
    page.click("#example")
    save("settings-dark")
    page.click("#settings .close")
    page.click("#new")
    page.ask("What is the weather in Paris?")
    save("tools-dark")
    page.phone(360, 640)
    page.open()
    save("phone-tools")
    page.one(".result").send_keys("12 degrees, light rain", Keys.ENTER)
    page.done()
    page.one("#input").send_keys("error 503")
    save("phone-result")
    page.one("#input").send_keys(Keys.ENTER)
    page.done()
    save("phone-error")
    page.click("#menu")
    save("phone-list")
    page.desktop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?")
    parser.add_argument("--key", help="API key of the server at the URL")
    parser.add_argument("--only", default="", help="run the checks whose names hold this word")
    parser.add_argument("--pictures", type=pathlib.Path, help="write pictures of the page, for which the mock answers")
    args = parser.parse_args()
    server = None if args.url else mock.start()
    url = args.url.rstrip("/") + "/" if args.url else server.url
    page = Page(url, server, args.key)
    failed = []
    for function, needs_script in CHECKS:
        if args.only not in function.__name__:
            continue
        if needs_script and not server:
            print(f"  --  {function.__name__}: needs the answers of the mock")
            continue
        try:
            page.fresh()
            page.collect()
            page.console.clear()
            function(page)
            page.collect()
            errors = [entry["message"] for entry in page.console if entry["level"] == "SEVERE"]
            # The browser itself notes answers of the server that are errors.
            errors = [text for text in errors if not re.search(r"the server responded with a status of (400|503)", text)]
            assert not errors, f"the console has {errors}"
            print(f"  ok  {function.__name__}", flush=True)
        except Exception:
            failed.append(function.__name__)
            print(f"FAILED {function.__name__}\n{traceback.format_exc(limit=3)}", flush=True)
    page.collect()
    strange = [asked for asked in page.hosts if not re.match(r"(data|blob|chrome|about):", asked) and not asked.startswith(("http://127.0.0.1:", url))]
    if strange:
        failed.append(f"other hosts were asked: {strange}")
    print(f"{len(page.hosts)} addresses were asked, {len(strange)} of them elsewhere")
    if args.pictures:
        pictures(page, args.pictures)
    page.driver.quit()
    print("failed: " + ", ".join(failed) if failed else "all is well")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
