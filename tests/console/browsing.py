"""A real browser for tests, and the console as a user sees it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

T = TypeVar("T")

PATIENCE = 30
"""Seconds after which a test gives up."""
DRIVER = "chromedriver"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
MISSING = "no Chromium with chromedriver here. On Debian: apt install chromium chromium-driver"
WIDE, NARROW, NARROWEST = (1280, 900), (360, 740), (320, 640)


def found_browser() -> str | None:
    """The path of a browser, if there is one with a driver."""
    if shutil.which(DRIVER) is None:
        return None
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@contextmanager
def browsing(browser: str) -> Iterator[webdriver.Chrome]:
    """A browser without a window. It ends with the block."""
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    # Tests run as root in containers, where Chromium's sandbox and its shared memory are not to be had.
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-gpu"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


class Console:
    """The console in a browser. Elements are named by CSS selectors."""

    def __init__(self, driver: webdriver.Chrome, url: str) -> None:
        self.driver = driver
        self.url = url

    def open(
        self,
        place: str = "",
        *,
        token: str | None = None,
        tenant: str | None = None,
        size: tuple[int, int] = WIDE,
        dark: bool = False,
    ) -> None:
        """Open a view as in a fresh tab: nothing is left of an earlier test."""
        self.look(size, dark=dark)
        self.driver.get(f"{self.url}/health")
        kept = {"tamis token": token, "tamis tenant": tenant}
        self.run(
            "sessionStorage.clear(); for (const [key, value] of Object.entries(arguments[0])) sessionStorage.setItem(key, value)",
            {key: value for key, value in kept.items() if value is not None},
        )
        self.go(place)

    def go(self, place: str) -> None:
        """Open a view as with a bookmark."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.url}/#{place}")

    def look(self, size: tuple[int, int], *, dark: bool = False) -> None:
        """Take a size and a colour scheme."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def run(self, script: str, *words: object) -> Any:
        return self.driver.execute_script(script, *words)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def the(self, selector: str) -> WebElement:
        """The first element that is seen, when it comes."""
        return self.when(lambda: next((each for each in self.all(selector) if each.is_displayed()), None), selector)

    def text(self, selector: str) -> str:
        """The text of an element; empty if it is not seen."""
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def says(self, selector: str, text: str) -> None:
        """Wait until an element has a text."""
        self.when(lambda: text in self.text(selector), f"{text!r} in {selector}")

    def click(self, selector: str) -> None:
        """Click on an element, when it is seen and enabled."""

        def clicked() -> bool:
            element = self.the(selector)
            if not element.is_enabled():
                return False
            self.run("arguments[0].scrollIntoView({block: 'center'})", element)
            element.click()
            return True

        self.when(clicked, f"{selector} to be enabled")

    def write(self, selector: str, text: str) -> None:
        """Put a text into a field, in place of what it has. The page sees it as if it was pasted."""
        self.run(
            "arguments[0].focus(); arguments[0].value = arguments[1];"
            "arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
            self.the(selector),
            text,
        )

    def press(self, *keys: str) -> None:
        """Press keys one after another, wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def press_with(self, modifier: str, key: str) -> None:
        """Press a key while another one is held."""
        ActionChains(self.driver).key_down(modifier).send_keys(key).key_up(modifier).perform()

    def follow(self, place: str) -> None:
        """Go to another place of the page that is open."""
        self.run("location.hash = arguments[0]", place)

    def controls(self) -> list[tuple[str, str]]:
        """Role and name of each control, as the browser tells assistive software."""
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes
            if not node["ignored"] and any(each["name"] == "focusable" for each in node.get("properties", []))
        ]  # fmt: skip

    def focused(self) -> str:
        """The id of the element that has the focus."""
        return str(self.driver.switch_to.active_element.get_attribute("id"))

    def rows(self, table: str) -> list[list[str]]:
        """The texts of a table's cells."""
        found: list[list[str]] = self.run(
            "return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
            ".map((row) => [...row.cells].map((cell) => cell.innerText.trim()))",
            table,
        )
        return found

    def when(self, question: Callable[[], T | None], what: str = "what was awaited") -> T:
        """The first answer that is true."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if found := question():
                    return found
            except (NoSuchElementException, StaleElementReferenceException):
                pass
            if time.monotonic() > end:
                raise AssertionError(f"waited {PATIENCE} s for {what}; the page says:\n{self.text('body')[:600]}")
            time.sleep(0.03)

    def complaints(self) -> list[str]:
        """What the browser complains about, without answers that are errors: the page shows those itself."""
        log = self.driver.get_log("browser")  # type: ignore[no-untyped-call, unused-ignore]
        return [each["message"] for each in log if "Failed to load resource" not in each["message"]]
