"""One script of calls, for a broker and for both clients. It records all answers and all errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

import tamis

Answer = tuple[str, Any]
NOON = dt.datetime(2026, 11, 18, 12, tzinfo=dt.UTC)
LATER = dt.datetime(2199, 1, 1, tzinfo=dt.UTC)
ODD = "a/b %?&#.é\N{SNOWMAN}"
EVERYTHING = {
    "at": NOON.replace(tzinfo=None),
    "zoned": dt.datetime(2026, 11, 18, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    "day": dt.date(2026, 11, 18),
    "price": Decimal("9.90"),
    "age": tamis.Interval(20, 30),
    "raw": b"\x00\xff",
    "id": UUID(int=7),
    "nan": float("inf"),
    "pair": (1, 2),
    "tags": {"x", "y"},
    "tagged": {"$date": "my own"},
    "nested": {"list": [1, {"deep": None}], "text": 'é"\n\N{SNOWMAN}'},
    "big": 2**70,
    "kind": "everything",
}

STEPS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("subscriptions", (), {}),
    ("subscribe", ("ann", "crime", "price < 20 AND genre = 'crime'"), {}),
    ("subscribe", ("ann", "built", tamis.attr("price") < 5), {"weight": 2.5}),
    ("subscribe", ("ann", "json", [["genre", "in", ["poetry", "drama"]]]), {"valid_until": LATER}),
    ("subscribe", ("ann", "crime"), {"weight": 3}),
    ("subscribe", ("ann", "json"), {"valid_until": None, "valid_from": dt.datetime(2020, 1, 1)}),
    ("subscribe", ("ann", "new"), {}),
    ("subscribe", ("ann", "bad", "price <"), {}),
    ("subscribe", ("ann", "bad", "genre = 'x' AND\n  price << 3"), {}),
    ("subscribe", ("ann", "bad", "x = ANY (SELECT y FROM history)"), {}),
    ("subscribe", ("ann", "bad", [["price", "<", float("nan")]]), {}),
    ("subscribe", ("ann", "bad", "x = 1"), {"weight": "heavy"}),
    ("subscribe", ("ann", "bad", "x = 1"), {"valid_from": LATER, "valid_until": NOON}),
    ("subscribe", ("ann", "bad", "x = 1"), {"valid_from": "tomorrow"}),
    ("subscribe", ("", "bad", "x = 1"), {}),
    ("subscribe", (7, "bad", "x = 1"), {}),
    ("subscribe", (ODD, ODD, "kind = 'everything'"), {}),
    ("subscribe", ("..", ".", "kind = 'everything'"), {}),
    ("subscribe_many", ([{"subscriber": "bob", "name": str(n), "expression": f"n = {n}"} for n in range(50)],), {}),
    ("subscribe_many", ([],), {}),
    ("subscribe_many", ([{"subscriber": "bob", "name": "1", "weight": 9.0}],), {}),
    ("subscribe_many", ([{"subscriber": "bob", "name": "x", "expression": "a <"}],), {}),
    (
        "subscribe_many",
        (
            [
                {"subscriber": "a", "name": "x", "expression": "a <"},
                {"subscriber": "b", "name": "x", "expression": "a = 1"},
            ],
        ),
        {},
    ),
    ("subscribe_many", ([{"subscriber": "bob", "name": "x"}],), {}),
    ("subscribe_many", ([{"subscriber": "bob", "name": "x", "expresion": "a = 1"}],), {}),
    ("subscribe_many", ([{"subscriber": "b", "name": "x", "expression": "a = 1"}] * 2,), {}),
    ("subscribe_many", (["bob"],), {}),
    ("subscribe_many", (pa.table({"subscriber": ["tab"], "name": ["le"], "expression": ["n > 45"]}),), {}),
    ("subscriptions", ("ann",), {}),
    ("subscriptions", (ODD,), {}),
    ("subscriptions", (), {}),
    ("subscriptions", ("nobody",), {}),
    ("subscription", ("ann", "crime"), {}),
    ("subscription", ("ann", "never"), {}),
    ("publish", ({"genre": "crime", "price": 3},), {}),
    ("publish", ({"genre": "crime", "price": 4},), {"key": "order-17"}),
    ("publish", ({"genre": "crime", "price": 4},), {"key": "order-17"}),
    ("publish", ({"genre": "crime", "price": 4},), {"key": "clé \N{SNOWMAN}"}),
    ("publish", ({"genre": "crime", "price": 4},), {"key": "clé \N{SNOWMAN}"}),
    ("publish", ({"genre": "crime", "price": 1},), {"k": 1}),
    ("publish", ({"genre": "crime", "price": 1},), {"k": -1}),
    ("publish", ({"genre": "crime", "price": 1},), {"key": ""}),
    ("publish", ({"genre": "poetry", "price": 90},), {"valid_until": LATER}),
    ("publish", (EVERYTHING,), {}),
    ("publish", ({"price": b"bytes"},), {}),
    ("publish", ({"price": object()},), {}),
    ("publish", ({1: 2},), {}),
    ("publish", ("text",), {}),
    ("publish_many", ([{"n": n} for n in range(60)],), {}),
    ("publish_many", ([{"n": 1}, {"n": 2}],), {"keys": ["a", None], "valid_until": [LATER, None]}),
    ("publish_many", ([{"n": 1}, {"n": 3}],), {"keys": ["a", "b"]}),
    ("publish_many", ([{"n": 1}],), {"keys": ["a", "b"]}),
    ("publish_many", ([{"n": b"wrong"}],), {}),
    ("publish_many", ([{"n": object()}],), {}),
    ("publish_many", ([{"n": b"wrong"}, {"n": 7}],), {}),
    ("publish_many", ([{"n": object()}, {"n": 1}],), {}),
    ("publish_many", ([],), {}),
    ("publish_many", ({"n": 1},), {}),
    ("publish_many", (pa.table({"n": [1, None, 49], "genre": ["crime", "drama", None]}),), {"k": 3}),
    ("would_match", ({"n": 1},), {}),
    ("would_match", ({"n": 1000},), {}),
    ("attributes", (), {}),
    ("notifications", ("ann",), {}),
    ("notifications", ("ann", 2), {}),
    ("notifications", (ODD,), {}),
    ("notifications", ("..",), {}),
    ("notifications", ("bob",), {"after": 0}),
    ("notifications", ("nobody",), {}),
    ("notifications", ("ann", -1), {}),
    ("acknowledge", ("ann", 2), {}),
    ("acknowledge", ("ann", 1), {}),
    ("acknowledge", ("ann", 99), {}),
    ("acknowledge", ("nobody", 1), {}),
    ("notifications", ("ann",), {}),
    ("subscriber", ("ann",), {}),
    ("subscriber", ("nobody",), {}),
    ("pause", ("ann", "crime"), {}),
    ("pause", ("ann", "crime"), {}),
    ("publish", ({"genre": "crime", "price": 10},), {}),
    ("resume", ("ann", "crime"), {}),
    ("resume", ("ann", "never"), {}),
    ("unsubscribe", ("ann", "built"), {}),
    ("unsubscribe", ("ann", "built"), {}),
    ("explain", ("ann", "crime", 1), {}),
    ("explain", ("ann", "crime", 6), {}),
    ("explain", ("ann", "crime", 10_000), {}),
    ("explain", ("ann", "never", 1), {}),
    ("event", (1,), {}),
    ("event", (10_000,), {}),
    ("replay", ("price > 3",), {}),
    ("replay", (tamis.attr("price") > 3,), {"after": 3}),
    ("replay", ("price >",), {}),
    ("changes", (), {}),
    ("changes", (40,), {}),
    ("changes", (), {"limit": 3}),
    ("changes", (), {"limit": 0}),
    ("changes", (), {"limit": -1}),
    ("numbered", ("ann", "crime"), {}),
    ("numbered", ("ann", "nothing"), {}),
    ("find_subscriptions", (), {"limit": 2}),
    ("find_subscriptions", ("CRIME",), {"after": 1}),
    ("find_subscriptions", (), {"subscriber": "ann", "limit": 1}),
    ("find_subscriptions", (), {"subscriber": "nobody"}),
    ("find_subscriptions", (), {"limit": 0}),
    ("find_subscriptions", (), {"limit": 10_001}),
    ("find_subscriptions", (), {"after": "x"}),
    ("find_subscribers", (), {}),
    ("find_subscribers", ("B",), {"limit": 1}),
    ("find_subscribers", (), {"after": -1}),
    ("acknowledge_many", ({"ann": 1, "bob": 1},), {}),
    ("acknowledge_many", ({"ann": 1, "nobody": 1},), {}),
    ("acknowledge_many", ({"ann": "x"},), {}),
    ("covering", (), {}),
    ("covering", (), {"most": 1, "one_value": True}),
    ("retain", (), {"max_notes": 10}),
    ("notifications", ("bob", 1), {}),
    ("notifications", ("bob", 0), {}),
    ("retain", (), {"max_notes": "many"}),
    ("retain", (), {"max_age": dt.timedelta(days=30), "when_full": "refuse publish"}),
    ("acknowledge", ("bob", 60), {}),
    ("publish_many", ([{"n": 1}] * 12,), {}),
    ("stats", (), {}),
    ("brief", (), {}),
    ("counts", (), {}),
    ("names", (1,), {}),
    ("names", (10_000,), {}),
    ("names", (0,), {}),
    ("names", ("x",), {}),
    ("deepest", (), {}),
    ("deepest", (1,), {}),
    ("cost", (10_000,), {}),
    ("costs", (0,), {}),
    ("remove_subscriber", ("bob",), {}),
    ("remove_subscriber", ("bob",), {}),
    ("compact", (), {}),
]
"""Method, arguments, words. Nothing depends on the clock."""

_LISTS = ("notifications", "subscriptions", "replay", "changes")
_FIGURES = ("subscribers", "subscriptions", "active", "events", "last_event", "last_change", "notes", "retention")


async def answers(call: Callable[[str, tuple[Any, ...], dict[str, Any]], Awaitable[Any]]) -> list[Answer]:
    """What comes of all steps. `call` calls a method and returns the answer, lists as lists."""
    found: list[Answer] = []
    for method, arguments, words in STEPS:
        try:
            found.append((method, plain(method, await call(method, arguments, words))))
        except tamis.TamisError as error:
            found.append((method, described(error)))
    return found


def plain(method: str, answer: Any) -> Any:
    """An answer that can be compared."""
    if method == "publish":
        return (type(answer), answer.sequence, sorted(answer.matches))
    if method == "publish_many":
        return [plain("publish", each) for each in answer]
    if method in ("stats", "brief"):
        return {name: answer.get(name) for name in _FIGURES}
    if method == "event":
        return answer._replace(published=type(answer.published))
    return answer


def described(error: tamis.TamisError) -> dict[str, Any]:
    """An error that can be compared: its class, its text, and its attributes."""
    names = ("position", "line", "column", "reason", "hint", "text", "row", "attribute", "first", "after", "subscriber")
    more = ("identifier", "subscription")
    return {
        "class": type(error),
        "text": str(error),
        **{name: getattr(error, name) for name in (*names, *more) if hasattr(error, name)},
    }
