"""New subscriptions meet stored events: processor time, by the form of events and of expressions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np

import tamis
from tamis.broker.valid_events import ValidEvents
from tamis.language.event import FlatEvent, flatten

Figures = dict[str, Any]

_SHOP = (
    "genre = 'genre7' AND price < 20",
    "genre = 'genre7' AND price < 20 AND year > 1990",
    "author = 'author 77'",
    "price < 50 AND year > 1950 AND genre <> 'genre1'",
    "NOT (genre = 'genre7' AND price < 20)",
    "NOT price < 50",
    "year IS DISTINCT FROM 1999",
    "genre = 'genre7' OR price < 20 OR year IS NULL",
    "title LIKE '%977%'",
    "title LIKE '%977%' AND price < 3",
    "title NOT ILIKE '%THE 97%' AND price < 50",
    "title LIKE '%9_7%'",
    "title RLIKE '9[0-9]7$'",
    "title RLIKE '(?i)THE 9[0-9]7'",
    "ip_in(address, '10.64.0.0/10') AND price < 50",
)
_LISTS = (
    "price < 20",
    "tags = 'tag7'",
    "tags <> 'tag7' AND price < 20",
    "tags = 'tag7' AND tags LIKE '%8' AND price < 50",
    "ports.number = 22 AND NOT ports.open",
    "id = 1152921504606846999",
    "id > 1152921504607346976 AND price < 20",
    "span < 5",
    "title RLIKE '9[0-9]7$'",
    "title RLIKE '(?i)THE 9[0-9]7'",
    "title RLIKE '[á-ú] (the|a) 9[0-9]7'",
    "title LIKE '%9_7%'",
)


def shop_events(number: int) -> Iterator[FlatEvent]:
    """Events with one plain value for each attribute, in their normal form."""
    random = np.random.default_rng(1)
    columns = (random.uniform(0, 100, number).round(2), random.integers(1900, 2026, number))
    codes = (random.integers(0, 50, number), random.integers(0, 100_000, number))
    rows = zip(*(column.tolist() for column in (*columns, *codes)), strict=True)
    for place, (price, year, genre, author) in enumerate(rows, 1):
        event = {"price": price, "year": year, "genre": f"genre{genre}", "author": f"author {author}"}
        address = f"10.{place % 251}.{place // 251 % 251}.{place // 251**2}"
        yield flatten({**event, "title": f"title {place} of the {place % 977}", "address": address})


def list_events(number: int) -> Iterator[FlatEvent]:
    """Events with lists, lists of objects, integers that no double holds, intervals, and titles outside of ASCII, in their normal
    form: flattening them would take most of the time."""
    random = np.random.default_rng(1)
    prices, tags = random.uniform(0, 100, number).round(2), random.integers(0, 50, (number, 3))
    ports, sizes = random.integers(1, 1000, (number, 2)), random.integers(1, 4, number)
    rows = zip(*(column.tolist() for column in (prices, tags, ports, sizes)), strict=True)
    spans = [tamis.Interval(low, low + 5) for low in range(100)]
    for place, (price, three, (one, other), size) in enumerate(rows, 1):
        yield {
            "price": (price,),
            "tags": tuple(f"tag{tag}" for tag in three[:size]),
            "ports.number": (one, other),
            "ports.open": (place % 2 == 0,),
            "id": (2**60 + place,),
            "span": (spans[place % len(spans)],),
            "title": (f"título {place} épico the {place % 977}",),
        }


EVENTS: dict[str, tuple[Callable[[int], Iterator[FlatEvent]], tuple[str, ...]]] = {
    "plain": (shop_events, _SHOP),
    "lists": (list_events, _LISTS),
}
"""By the form of the events: the events, and expressions about them."""


def meetings(number: int, turns: int) -> list[Figures]:
    """A new subscription meets stored events: processor time, of the first subscription and of the others."""
    return [
        figure for form, (events, texts) in EVENTS.items() for figure in meetings_of(form, events(number), texts, turns)
    ]


def meetings_of(form: str, events: Iterator[FlatEvent], texts: tuple[str, ...], turns: int) -> Iterator[Figures]:
    valid = ValidEvents()
    for number, event in enumerate(events, 1):
        valid.add(number, event, 1)
    for text in texts:
        expression, taken = tamis.parse(text), []
        for _ in range(turns + 1):
            start = time.process_time()
            found = valid.meet({1: expression}, 0)[1]
            taken.append(time.process_time() - start)
        yield {
            "events": form,
            "text": text,
            "found": len(found),
            "milliseconds": 1000 * median(taken[1:]),
            "first_milliseconds": 1000 * taken[0],
        }
