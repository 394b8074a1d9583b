"""Make the pictures of the console that the pages show: ``make screenshots``.

It serves a bookshop in a temporary folder, publishes offers for five minutes and takes the pictures in a real browser. So the
plots show what was measured. A second argument is another number of seconds, for a trial.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.console.browsing import MISSING, Console, browsing, found_browser
from tests.service.receiver import receiving
from tests.service.serving import NDJSON, Server, serving

SECONDS = 300
"""How long offers are published: as long as the plots reach back."""
OVERVIEW, EDITOR, QUEUES, TELEPHONE = (1200, 930), (1200, 800), (1200, 900), (390, 844)
LIVE, INDEX = (1200, 820), (1200, 745)
"""Sizes of the pictures: the overview on a telephone is one of them."""
SETTINGS = """
[webhooks]
tries = 2
first_wait = 0.05
allowed_networks = ["127.0.0.0/8"]
"""
WARM_UP = 15
"""Seconds before the plots begin: the first events wait until kernels are compiled."""
READERS = 400
SUBSCRIPTIONS = 20_000
GENRES = ("crime", "poetry", "history", "travel", "cooking", "science", "maps")
WORDS = ("Sea", "Stone", "Garden", "Winter", "Letters", "Island", "House", "Road")
EXPRESSION = "price < 20 AND (genre = 'crime' OR title LIKE '%Sea%') AND NOT signed"


def subscriptions(chance: random.Random) -> Iterator[dict[str, Any]]:
    """What the readers want."""
    for number in range(SUBSCRIPTIONS):
        genre, word, price = chance.choice(GENRES), chance.choice(WORDS), chance.randint(2, 60)
        name, expression = chance.choice(
            [
                (
                    f"{genre} about {price}",
                    f"price BETWEEN {price} AND {price + 1} AND genre = '{genre}' AND pages > {chance.randint(100, 900)}",
                ),
                (
                    f"{word} in {genre}",
                    f"title LIKE '%{word}%' AND genre = '{genre}' AND year = {chance.randint(1780, 1900)}",
                ),
                (f"signed {genre}", f"signed AND genre = '{genre}' AND price BETWEEN {price} AND {price + 3}"),
            ]
        )
        yield {
            "subscriber": f"reader {chance.randint(1, READERS)}",
            "name": f"{name}, {number}",
            "expression": expression,
        }


def offer(chance: random.Random) -> dict[str, Any]:
    """A book that is for sale."""
    return {
        "title": f"The {chance.choice(WORDS)} and the {chance.choice(WORDS)}",
        "genre": chance.choice(GENRES),
        "price": round(chance.lognormvariate(3, 0.5), 2),
        "pages": chance.randint(80, 1200),
        "year": chance.randint(1780, 2020),
        "signed": chance.random() < 0.05,
    }


def publish(server: Server, chance: random.Random, seconds: float) -> None:
    """Publish offers, now more and now fewer, while readers acknowledge what they have read."""
    begin = time.monotonic()
    while (now := time.monotonic() - begin) < seconds:
        for _ in range(round(3 + 2 * math.sin(now / 20) + chance.random() * 2)):
            lines = "\n".join(json.dumps(offer(chance)) for _ in range(chance.randint(5, 15)))
            server.client.post("/v1/events", content=lines, headers=NDJSON)
        for _ in range(4):
            path = f"/v1/subscribers/reader%20{chance.randint(1, READERS)}"
            found = server.client.get(path).json()
            if found.get("last"):
                last = found["last"] - found["waiting"] // 5
                server.client.post(f"{path}/acknowledge", json={"sequence": last})
        time.sleep(0.05)


def add_webhooks(server: Server, url: str) -> None:
    """Add a webhook that works, and one whose receiver is away, so that its two notes become dead letters."""
    for name, place in (("carl", url), ("bookshop", "http://127.0.0.1:9/notes")):
        server.subscribe(name, "maps of the sea", "title LIKE '%Sea%' AND genre = 'maps' AND price > 1000")
        answer = server.client.put(f"/v1/subscribers/{name}/webhook", json={"url": place, "batch": 1})
        assert answer.status_code == 200, answer.text
    for pages in (4, 16):
        server.publish({"title": "The Sea in 1595", "genre": "maps", "price": 2400, "pages": pages, "signed": False})


def take_live(console: Console, folder: Path) -> None:
    """Notes as they come, and a test event that was published."""
    console.open("live", size=LIVE)
    console.write("#watch-subscriber", "reader 7")
    console.click("#watch-start")
    console.when(lambda: len(console.all("#stream li")) > 8, "some notes")
    console.write(
        "#publish-event", json.dumps({"title": "The Sea and the Stone", "genre": "crime", "price": 12.5}, indent=1)
    )
    console.click("#publish-form button.main")
    console.when(lambda: console.text("#published"), "the receipt")
    time.sleep(1)
    console.driver.save_screenshot(str(folder / "console-live.png"))


def take_index(console: Console, folder: Path) -> None:
    """The index, after its plots have shown a minute."""
    console.open("index", size=INDEX)
    console.says("#index-facts", "×")
    time.sleep(60)
    console.driver.save_screenshot(str(folder / "console-index.png"))


def main(folder: Path, seconds: float) -> None:
    browser = found_browser()
    if browser is None:
        sys.exit(MISSING)
    chance = random.Random(7)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (home / "settings.toml").write_text(SETTINGS, encoding="utf-8")
        server = stack.enter_context(serving(home / "books", "--config", home / "settings.toml"))
        driver = stack.enter_context(browsing(browser))
        receiver = stack.enter_context(receiving())
        body = "\n".join(map(json.dumps, subscriptions(chance)))
        server.client.post("/v1/subscriptions", content=body, headers=NDJSON)
        server.subscribe("ann", "crime at sea", EXPRESSION)
        console = Console(driver, server.url)
        publish(server, chance, WARM_UP)
        console.open("overview", size=OVERVIEW)
        publishing = threading.Thread(target=publish, args=(server, chance, seconds + 90))
        publishing.start()
        time.sleep(seconds)
        driver.save_screenshot(str(folder / "console-overview.png"))
        console.look(TELEPHONE)
        time.sleep(1)
        driver.save_screenshot(str(folder / "console-narrow.png"))
        take_live(console, folder)
        take_index(console, folder)
        publishing.join()
        add_webhooks(server, receiver.url("/notes"))
        console.open("queues", size=QUEUES)
        console.says("#webhooks", "2 dead letters")
        console.click("#webhooks summary")
        console.says("#webhooks", "no connection")
        time.sleep(1)
        driver.save_screenshot(str(folder / "console-queues.png"))
        console.open("subscriptions/ann/crime%20at%20sea", size=EDITOR, dark=True)
        console.write("#subscriptions-search", "sea")
        console.write("#explain-event", '{"title": "The Sea and the Stone", "genre": "crime", "price": 12.5}')
        console.says("#explanation", "UNKNOWN")
        time.sleep(1)
        driver.save_screenshot(str(folder / "console-editor.png"))
    for picture in sorted(folder.glob("console-*.png")):
        print(f"{picture}: {picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS)
