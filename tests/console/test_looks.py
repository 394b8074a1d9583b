"""Narrow screens, dark mode, hostile names, the keyboard: in every view."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from selenium.webdriver.common.keys import Keys

from tests.console.browsing import NARROW, NARROWEST, PATIENCE, WIDE, Console
from tests.service.serving import Server

VIEWS = ("overview", "subscriptions", "live", "queues", "index")
SCRIPT = "<script>document.title = 'broken'</script>"
IMAGE = "<img src=x onerror=alert(1)>"
NAMES = (
    SCRIPT,
    IMAGE,
    "&lt;b&gt;",
    "a/b?c=d#e%20",
    "x" * 500,
    "مرحبا",
    "日本語",
    "👨‍👩‍👧",
    "tab\tline\n",
    "turned\u202earound",
    "' \" `",
)

# The colour of each visible text, and the first colour behind it that is not transparent.
CONTRASTS = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")


TENANT = "hostile"


@pytest.fixture(scope="module")
def hostile(server: Server) -> httpx2.Client:
    """A client of a tenant whose names try to break the page. It has matches, queues and a webhook."""
    (server.folder / "tenants" / TENANT).mkdir(parents=True)
    client = httpx2.Client(base_url=server.url, headers={"Tamis-Tenant": TENANT}, timeout=PATIENCE, trust_env=False)
    for name in NAMES:
        place = quote(name, safe="")
        answer = client.put(
            f"/v1/subscribers/{place}/subscriptions/{place}", json={"expression": f"\"{SCRIPT}\" = '{IMAGE}'"}
        )
        assert answer.status_code == 200, answer.text
    client.put(f"/v1/subscribers/{quote(SCRIPT, safe='')}/webhook", json={"url": "http://127.0.0.1:9/<b>"})
    for _ in range(30):
        assert client.post("/v1/events", json={SCRIPT: IMAGE}).json()["matches"] == len(NAMES)
    return client


def show_much(console: Console, view: str) -> None:
    """Fill a view with what it can show."""
    console.the(f"#view-{view}")
    if view == "overview":
        console.says("#hottest", SCRIPT)
    if view == "subscriptions":
        console.write("#subscriptions-search", "onerror")
        console.says("#subscriptions-rows", SCRIPT)
        console.click("#subscriptions-rows a")
        console.says("#editor-title", SCRIPT)
        console.write("#explain-event", '{"<script>": ["<b>", 1]}')
        console.says("#explanation", SCRIPT)
    if view == "live":
        console.write("#publish-event", '{"<b>": 1}')
        console.click("#publish-form .main")
        console.says("#published", "Published")
        console.write("#watch-subscriber", SCRIPT)
        console.click("#watch-start")
        console.says("#stream", IMAGE)
    if view == "queues":
        console.says("#queues-deepest-panel", "30")
        console.says("#webhooks", SCRIPT)
        console.write("#queues-search", "<")
        console.when(lambda: console.run(FOUND) or None, "the found rows")
        console.says("#queues-rows", SCRIPT)
    if view == "index":
        console.says("#index-facts", "engine")


FOUND = "return [...document.querySelectorAll('#queues-rows a')].every((each) => each.textContent.includes('<'))"

WIDEST = """
return [...document.querySelectorAll("body *")].filter((each) => each.getBoundingClientRect().right > innerWidth)
  .map((each) => each.outerHTML.slice(0, 80)).slice(-3);
"""

CUT_OFF = """
const end = document.querySelector(".bar nav").getBoundingClientRect().right;
return [...document.querySelectorAll(".bar nav a")].filter((each) => each.getBoundingClientRect().right > end)
  .map((each) => each.textContent);
"""
# Labels below the axis of a plot that begin before the label on their left ends.
OVERLAPPING = """
return [...document.querySelectorAll(".plot svg")].flatMap((plot) => {
  const bottom = Math.max(...[...plot.querySelectorAll("text.tick")].map((each) => Number(each.getAttribute("y"))));
  const labels = [...plot.querySelectorAll("text.tick")].filter((each) => Number(each.getAttribute("y")) === bottom);
  const boxes = labels.map((each) => [each.getBoundingClientRect(), each.textContent]).sort((a, b) => a[0].left - b[0].left);
  return boxes.filter(([box], place) => place && box.left < boxes[place - 1][0].right).map(([, text]) => text);
});
"""


@pytest.mark.parametrize("view", VIEWS)
def test_names_are_text_and_fit(console: Console, hostile: httpx2.Client, view: str) -> None:
    console.open(view, size=NARROW, tenant=TENANT)
    show_much(console, view)
    assert console.driver.title == f"{view.capitalize()} – Tamis"
    assert console.all("main script, main img, main b b") == []
    for size in (NARROWEST, NARROW, (768, 900), WIDE):
        console.look(size)
        wide = console.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{view} is {wide} pixels too wide at {size}: {console.run(WIDEST)}"
        assert console.run(CUT_OFF) == [], f"names of views are cut off at {size}"
        console.when(lambda: console.run(OVERLAPPING) == [], f"labels of plots that stand apart at {size}")
    for dark in (False, True):
        console.look(WIDE, dark=dark)
        assert (console.run("return getComputedStyle(document.documentElement).backgroundColor") < "rgb(2") == dark
        pale = [found for found in console.run(CONTRASTS) if found["contrast"] < 4.5]
        assert pale == [], f"{view}, dark={dark}"


def test_all_controls_have_names(console: Console, hostile: httpx2.Client) -> None:
    console.open(tenant=TENANT)
    for view in VIEWS:
        console.go(view)
        show_much(console, view)
        controls = console.controls()
        assert len(controls) > 8
        assert [role for role, name in controls if not name and role != "main"] == []
        assert console.run("return document.querySelectorAll('main:not([hidden]) h1').length") >= 1
        ids = console.run("return [...document.querySelectorAll('[id]')].map((each) => each.id)")
        assert len(ids) == len(set(ids))


def test_the_keyboard_reaches_everything_and_is_never_trapped(console: Console, hostile: httpx2.Client) -> None:
    console.open(tenant=TENANT)
    for view in VIEWS:
        console.go(view)
        show_much(console, view)
        if view == "live":
            console.click("#watch-stop")
        console.run("document.getElementById('skip').focus()")
        wanted = console.run(REACHABLE)
        console.press(*[Keys.TAB] * (len(wanted) + 20))
        seen = console.run("return window.places")
        assert [each for each in wanted if each not in seen] == [], f"{view}: {seen}"
        assert console.run("return window.unseen") == [], f"{view}: the focus is not seen"


# Controls that Tab should reach, named by their place in the document. Of radio buttons, Tab reaches the chosen one.
REACHABLE = """
const controls = "a[href], button, input, textarea, summary, [tabindex='0']";
const placeOf = (element) => {
  const all = [...document.querySelectorAll(controls)];
  return element.id || `${element.tagName} ${all.indexOf(element)} ${element.innerText?.slice(0, 20)}`;
};
window.places = [];
window.unseen = [];
// The window may get the focus only now. What has the focus in it was not reached by a key then.
let pressed = false;
addEventListener("keydown", () => pressed = true, true);
addEventListener("focusin", ({ target }) => {
  window.places.push(placeOf(target));
  if (pressed && getComputedStyle(target).outlineStyle === "none") window.unseen.push(placeOf(target));
});
return [...document.querySelectorAll(controls)]
  .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled)
  .filter((each) => each.type !== "radio" || each.checked)
  .slice(0, 45).map(placeOf);
"""


def test_work_with_the_keyboard_alone(console: Console, server: Server) -> None:
    console.open("subscriptions")
    console.says("#subscriptions-status", "1–50")
    console.run("document.activeElement.blur()")
    console.press(Keys.TAB)
    assert console.focused() == "skip"
    console.press(Keys.ENTER)
    assert console.focused() == "main"
    console.press(Keys.TAB, Keys.ENTER)  # the button "New subscription"
    assert console.focused() == "editor-title"
    console.press(Keys.TAB)
    console.press("kim")
    console.press(Keys.TAB)
    console.press("keys")
    console.press(Keys.TAB)
    console.press("price < 4")
    console.says("#editor-verdict", "Valid.")
    console.press_with(Keys.CONTROL, Keys.ENTER)
    console.says("#editor-said", "Added.")
    assert server.client.get("/v1/subscribers/kim/subscriptions/keys").json()["expression"] == "price < 4"
    console.run("document.querySelector('#editor-remove').focus()")
    console.press(Keys.ENTER)
    console.the("#question")
    assert console.focused() == "question-no"
    console.press(Keys.ESCAPE)
    console.when(lambda: console.focused() == "editor-remove", "the focus to come back")
    console.press(Keys.ENTER)
    console.press_with(Keys.SHIFT, Keys.TAB)
    console.press(Keys.ENTER)
    console.says("#editor-said", "Removed.")
    assert console.focused() == "editor-title"


def test_strange_names_can_be_opened_changed_and_removed(console: Console, hostile: httpx2.Client) -> None:
    console.open("subscriptions", tenant=TENANT)
    for name in NAMES:
        place = quote(name, safe="")
        console.follow(f"subscriptions/{place}/{place}")
        console.says("#editor-verdict", "Asks about <script>")
        console.write("#editor-expression", "price < 3")
        console.says("#editor-verdict", "Asks about price.")
        console.click("#editor-save")
        console.says("#editor-said", "Changed.")
        found = hostile.get(f"/v1/subscribers/{place}/subscriptions/{place}").json()
        assert (found["subscriber"], found["name"], found["expression"]) == (name, name, "price < 3")
