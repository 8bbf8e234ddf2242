"""A browser with the page in it, and the list of checks."""

import json

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

CHECKS = []
# Seconds; the machine may be busy with other work.
WAIT = 120


def check(function):
    """A check that any server passes."""
    CHECKS.append((function, False))
    return function


def scripted(function):
    """A check that needs the answers of the mock."""
    CHECKS.append((function, True))
    return function


class Page:
    def __init__(self, url, server=None, key=None):
        options = webdriver.ChromeOptions()
        for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,860", "--disable-dev-shm-usage"):
            options.add_argument(option)
        # Headless, the browser says that there is no mouse.
        options.add_argument("--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
        self.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
        self.url, self.server, self.key, self.hosts, self.console = url, server, key, set(), []

    def open(self, query=""):
        self.driver.get(self.url + query)
        self.until(lambda: self.all("#model option"), "the models are there")

    def fresh(self):
        """As at the first visit."""
        self.collect()
        self.driver.get(self.url)
        self.driver.execute_script("localStorage.clear(); sessionStorage.clear()")
        if self.key:
            self.driver.execute_script("sessionStorage.setItem('kernmill.key', arguments[0])", self.key)
        self.driver.set_window_size(1280, 860)
        self.open()

    def collect(self):
        """Hosts that were asked, and what the console says; both are emptied by being read."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.hosts.add(message["params"]["request"]["url"])
        self.console += self.driver.get_log("browser")

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.until(lambda: self.all(selector), f"{selector} is there")[-1]

    def until(self, condition, what, seconds=WAIT):
        def tried(_):
            try:
                return condition()
            except StaleElementReferenceException:
                return False
        return WebDriverWait(self.driver, seconds, 0.05).until(tried, f"never: {what}")

    def js(self, script, *args):
        return self.driver.execute_script("return " + script, *args)

    def click(self, selector):
        # Buttons may be seen under the pointer only.
        self.js("arguments[0].click()", self.one(selector))

    def fill(self, selector, text):
        script = "(arguments[0].value = arguments[1], arguments[0].dispatchEvent(new Event('input', {bubbles: true})))"
        self.js(script, self.one(selector), text)

    def choose(self, selector, value):
        script = "(arguments[0].value = arguments[1], ['input', 'change'].forEach(e => arguments[0].dispatchEvent(new Event(e))))"
        self.js(script, self.one(selector), value)

    def press(self, *keys):
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def chord(self, modifier, key):
        webdriver.ActionChains(self.driver).key_down(modifier).send_keys(key).key_up(modifier).perform()

    def phone(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": True}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})

    def desktop(self):
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})

    def is_idle(self):
        return not self.one("#send").get_attribute("hidden")

    def send(self, text):
        before = len(self.all(".answer"))
        self.one("#input").send_keys(text, Keys.ENTER)
        self.until(lambda: len(self.all(".answer")) > before, "an answer begins")

    def done(self):
        self.until(self.is_idle, "the answer ends")
        return self.one(".answer:last-child")

    def ask(self, text):
        self.send(text)
        return self.done()

    def users(self):
        return [bubble.text for bubble in self.all(".bubble")]

    def width(self):
        return self.js("document.documentElement.scrollWidth"), self.js("window.innerWidth")


def equal(found, expected):
    assert found == expected, f"found {found!r}, expected {expected!r}"
