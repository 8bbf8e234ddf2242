"""The page of `kernmill explain --html` in a true browser.

    explain.py FILE [--pictures DIR]

FILE is opened as a file. The exit status is 1 if a check fails.
"""

import argparse
import base64
import json
import pathlib
import sys
import traceback

from browser import Page, equal
from selenium.webdriver.common.keys import Keys

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def report(page):
    return json.loads(page.js("document.getElementById('report').textContent"))


def boxes(page):
    return [int(box.get_attribute("data-group")) for box in page.all("#graph .box")]


def for_adapters(report, group):
    return all(step["for_adapters"] for step in report["steps"] if step["group"] == group)


def assert_code(page, function):
    assert function["name"] in page.one("#chosen-title").text, page.one("#chosen-title").text
    equal(page.js("document.getElementById('clif').textContent"), function["clif"])
    equal(page.js("document.getElementById('assembly').textContent"), function["assembly"])
    assert function["assembly"].startswith(function["name"] + ":\n"), function["name"]
    assert page.one("#assembly").is_displayed() and page.one("#clif").is_displayed()


@check
def the_head_says_what_the_report_says(page):
    facts = report(page)
    equal(page.one("#title").text, facts["model"])
    for estimate in facts["estimate"]:
        speed = page.js("arguments[0].toLocaleString('en-GB', {minimumFractionDigits: 1, maximumFractionDigits: 1})",
                        estimate["tokens_per_second"])
        assert f"{speed} tokens/s" in page.one("#head").text, page.one("#head").text
    kinds = {kind["kind"] for estimate in facts["estimate"] for kind in estimate["kinds"]}
    equal(len(page.all("#kinds tbody tr")), len(kinds))
    equal(len(page.all("#missed tbody tr")), len(facts["near_misses"]))


@check
def every_group_of_every_kind_of_layer_is_drawn(page):
    facts = report(page)
    options = page.all("#layer-kind option")
    outside = [index for index, group in enumerate(facts["groups"]) if group["layer"] is None]
    kinds = [kind["groups"] for kind in facts["layer_kinds"]] + ([outside] if outside else [])
    equal(len(options), len(kinds))
    for index, groups in enumerate(kinds):
        page.choose("#layer-kind", str(index))
        for with_adapters in (False, True):
            if page.js("document.getElementById('with-adapters').checked") != with_adapters:
                page.click("#with-adapters")
            equal(sorted(boxes(page)), [group for group in groups if with_adapters or not for_adapters(facts, group)])
            places = page.js("""[...document.querySelectorAll('#graph .box rect.frame')].map(rect => rect.getBBox())
                .map(box => [box.x, box.y, box.width, box.height])""")
            for at, (x, y, width, height) in enumerate(places):
                for other_x, other_y, other_width, other_height in places[:at]:
                    beside = x + width <= other_x or other_x + other_width <= x
                    above = y + height <= other_y or other_y + other_height <= y
                    assert beside or above, f"boxes of layer kind {index} overlap"
            assert len(page.all("#graph .edge")) >= len(places) - 1
            ops = page.js("document.querySelectorAll('#graph .box text:not(.name)').length")
            equal(ops, sum(facts["groups"][group]["nodes"] for group in boxes(page)))
        page.click("#with-adapters")
    page.choose("#layer-kind", "0")


@check
def a_click_on_a_box_shows_its_kernel(page):
    facts = report(page)
    functions = {function["name"]: function for function in facts["functions"]}
    for group in boxes(page):
        kernel = next(step["kernel"] for step in facts["steps"] if step["group"] == group)
        page.driver.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))",
                                   page.one(f"#graph [data-group='{group}']"))
        assert_code(page, functions[kernel])
        equal(page.js("document.querySelectorAll('.box[aria-pressed=true]').length"), 1)
        equal(len(page.all("#chosen .ops li")), facts["groups"][group]["nodes"])


@check
def keys_do_what_clicks_do(page):
    facts = report(page)
    functions = {function["name"]: function for function in facts["functions"]}
    group = boxes(page)[0]
    page.js("arguments[0].focus()", page.one(f"#graph [data-group='{group}']"))
    page.press(Keys.ENTER)
    kernel = next(step["kernel"] for step in facts["steps"] if step["group"] == group)
    assert_code(page, functions[kernel])
    equal(page.js("document.activeElement.id"), "chosen-title")
    page.js("arguments[0].focus()", page.one("#arena-plot svg"))
    page.press(Keys.ARROW_RIGHT)
    first = page.one("#arena-chosen").text
    page.press(Keys.ARROW_RIGHT)
    assert first != page.one("#arena-chosen").text
    equal(len(page.all("#arena-plot .on")), 1)


@check
def every_function_has_its_code(page):
    facts = report(page)
    buttons = page.all("#function-table button")
    equal([button.text for button in buttons], [function["name"] for function in facts["functions"]])
    for button, function in zip(buttons, facts["functions"]):
        page.js("arguments[0].click()", button)
        assert_code(page, function)


@check
def a_kernel_leads_to_its_micro_kernels_and_back(page):
    facts = report(page)
    caller = next(function for function in facts["functions"] if function["calls"])
    index = facts["functions"].index(caller)
    page.js("arguments[0].click()", page.all("#function-table button")[index])
    called = next(button for button in page.all("#chosen button") if button.text == caller["calls"][0])
    page.js("arguments[0].click()", called)
    assert caller["calls"][0] in page.one("#chosen-title").text
    assert caller["name"] in [button.text for button in page.all("#chosen button")]


@check
def every_buffer_of_the_arena_is_drawn(page):
    facts = report(page)
    for index, arena in enumerate(facts["arenas"]):
        page.choose("#arena-class", str(index))
        for scale in ("bytes", "even"):
            page.choose("#arena-scale", scale)
            equal(len(page.all("#arena-plot .buffer")), len(arena["buffers"]))
        equal(len(page.all("#arena-table tbody tr")), len(arena["buffers"]))
        page.choose("#arena-scale", "bytes")
        layers = {step["label"].split(".")[1] for step in facts["steps"] if step["label"].startswith("layers.")}
        ticks = page.js("[...document.querySelectorAll('#arena-plot text')].map(text => text.textContent)")
        assert layers <= set(ticks), ticks


@check
def every_kind_with_products_is_a_point(page):
    facts = report(page)
    for batch, name in ((facts["estimate"][1], "decode"), (facts["estimate"][2], "prompt")):
        equal(len(page.all(f"#roofline-plot .{name}")), sum(kind["macs"] > 0 for kind in batch["kinds"]))
    equal(len(page.all("#roofline-plot .roof")), 1)


@check
def what_is_drawn_is_text_and_shapes(page):
    text = page.js("[...document.querySelectorAll('header, main, svg')].map(part => part.textContent).join(' ')")
    assert "[object" not in text and "undefined" not in text and "NaN" not in text


@check
def nothing_is_wider_than_a_phone(page):
    page.phone(390, 800)
    width, window = page.width()
    page.desktop()
    assert width <= window, f"{width} in a window of {window}"


@check
def nothing_is_asked_for_and_nothing_went_wrong(page):
    page.collect()
    asked = [url for url in page.hosts if not url.startswith(("file:", "data:"))]
    equal(asked, [])
    equal([entry["message"] for entry in page.console], [])


def pictures(page, folder):
    folder.mkdir(parents=True, exist_ok=True)
    page.driver.set_window_size(1280, 980)
    page.driver.save_screenshot(str(folder / "top.png"))
    page.driver.set_window_size(1700, 1400)
    page.driver.execute_script("arguments[0].dispatchEvent(new MouseEvent('click'))", page.all("#graph .box")[0])
    page.driver.execute_script("window.scrollTo(0, 0)")
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        for part in ("facts", "layer", "arena", "roofline"):
            clip = page.js("(box => ({x: 0, y: box.y + scrollY, width: innerWidth, height: box.height, scale: 1}))"
                           "(arguments[0].getBoundingClientRect())", page.one(f"#{part}"))
            shot = page.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
            (folder / f"{part}-{scheme}.png").write_bytes(base64.b64decode(shot["data"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path)
    args = parser.parse_args()
    page = Page(args.file.resolve().as_uri())
    failed = 0
    try:
        page.driver.get(page.url)
        for function in CHECKS:
            try:
                function(page)
                print("ok   ", function.__name__)
            except Exception:
                failed += 1
                print("FAIL ", function.__name__)
                traceback.print_exc()
        if args.pictures:
            pictures(page, args.pictures)
    finally:
        page.driver.quit()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
