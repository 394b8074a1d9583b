"""Small pieces of work that use every kernel once, so that all are compiled. `tamis warmup` runs each in a process of its own.

``python -m tamis.matcher.exercises NAME`` does one of them.
"""

from __future__ import annotations

import datetime
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.language.values import Interval
from tamis.matcher.load import load
from tamis.matcher.matcher import Matcher
from tamis.papers.registry import ENGINE, indexes

_MANY = 5000
"""Enough subscriptions to be a segment."""
_TIME = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
_TEXTS = [
    "price < {n} AND genre = 'g{n}'",
    "price BETWEEN {n} AND {n}.5 AND NOT sold",
    "title LIKE '%word{n}%' AND price > 1",
    "title LIKE 'word{n}%' OR title LIKE '%word{n}' OR tags IN ('a{n}', 'b')",
    "title ILIKE '%Word{n}%'",
    "title RLIKE 'wo+rd{n}x?' AND genre <> 'h'",
    "at >= TIMESTAMP '2026-01-01 00:00:00' AND price IS NOT NULL AND weight IS NULL",
    " AND ".join(f"(x{i} = {{n}} OR y{i} = {i})" for i in range(7)),
]
_EVENT: dict[str, Any] = {
    "price": 10.5, "genre": "g3", "title": "a word7 of mine", "tags": ["a1", "b"], "sold": False, "at": _TIME, "a": 1, "d": 3,
}  # fmt: skip


def _added(count: int, texts: list[str] = _TEXTS) -> Matcher:
    matcher = Matcher()
    matcher.add_many(
        range(count), [texts[n % len(texts)].format(n=n) for n in range(count)], [float(n) for n in range(count)]
    )
    return matcher


def _table(rows: int) -> pa.Table:
    return pa.table(
        {
            "price": [float(n) for n in range(rows)],
            "a": list(range(rows)),
            "genre": [f"g{n % 9}" for n in range(rows)],
            "title": pa.array([f"a word{n % 9} of mine" for n in range(rows)]).dictionary_encode(),
            "tags": [["a1", f"b{n}"] for n in range(rows)],
            "sold": [n % 2 == 0 for n in range(rows)],
            "at": pa.array([_TIME] * rows, pa.timestamp("us", "UTC")),
        }
    )


def _match(matcher: Matcher) -> None:
    """Match in every way."""
    for event in (_EVENT, {"price": Interval(1, 20), "a": [1, 2, 3]}, {"a": 1, "price": 2.5}, {"a": 2, "price": 2.5}):
        matcher.match(event)
        matcher.match(event, k=2)
    for threads in (1, 2):
        matcher.match_batch(_table(3000), threads=threads)
        matcher.match_batch([_EVENT] * 20, threads=threads, k=3)
    matcher.count_batch(pa.table({"price": [1.0, 2.0], "a": pa.array([1, None], pa.int32())}))
    line = b'{"a": 1, "price": 12345.678901234567, "title": "x\\ty\\u00e4", "user": {"tags": ["a1", true, 1.5]}, "a b": null}'
    matcher.match_json_batch([line, line, b"{}"])
    pairs = pa.array([[{"attribute": "a", "value": 1.0}]] * 3)
    matcher.match_batch(pa.table({"event": pairs}))
    matcher.match_batch(pa.table({"event": pa.array([[("a", 1.0)]] * 3, pa.map_(pa.string(), pa.float64()))}))


def _change(matcher: Matcher) -> None:
    """Change one by one, and match in between."""
    for n in range(40):
        matcher.add(1_000_000 + n, f"price < {n} AND a = 1")
        matcher.match({"a": 1, "price": 2.5})
    for n in range(20):
        matcher.remove(1_000_000 + n)
        matcher.replace(1_000_020 + n, f"price < {n} AND title LIKE '%x{n}%'")
    matcher.match(_EVENT)


def single_events() -> None:
    """A few subscriptions, which need no segment."""
    matcher = _added(40)
    _match(matcher)
    _change(matcher)
    matcher.explain(1, _EVENT)


def segments() -> None:
    """Many subscriptions, in segments that are built, merged and planned again."""
    matcher = _added(_MANY)
    _match(matcher)
    _change(matcher)
    matcher.observe(_table(2000))
    matcher.add_many(range(_MANY, 2 * _MANY), [f"price < {n} AND a = {n % 50}" for n in range(_MANY)])
    matcher.optimize()
    _match(matcher)
    matcher.stats()


def ranges() -> None:
    """Subscriptions that are found by their bounds, or by two values at once."""
    matcher = _added(_MANY, ["price < {n}", "price > {n} AND a < {n}", "price BETWEEN 1 AND {n} AND a > {n} AND b < 3"])
    _match(matcher)
    pairs = Matcher()
    pairs.observe([{"a": n % 7, "b": n % 5} for n in range(2000)])
    pairs.add_many(range(_MANY), [f"a = {n % 7} AND b = {n % 5} AND c{n % 9} < {n}" for n in range(_MANY)])
    pairs.match_batch([{"a": 1, "b": 2, "c1": 5}] * 20)
    pairs.match({"a": 1, "b": [2, 3], "c1": 5})


def tables() -> None:
    """Subscriptions that come as a table of predicates."""
    predicates = [
        [
            {"attribute": "price", "operator": "<", "values": [float(n)]},
            {"attribute": "a", "operator": "in", "values": [1.0, float(n)]},
        ]
        for n in range(_MANY)
    ]
    matcher = Matcher()
    matcher.add_table(pa.table({"id": [f"s{n}" for n in range(_MANY)], "predicates": predicates}))
    matcher.match_batch(_table(3000))
    matcher.match_batch(_table(100), k=2)
    matcher.remove("s1")
    matcher.match(_EVENT)


def snapshots() -> None:
    """A matcher that is saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "matcher.tamis"
        _added(_MANY).save(path)
        loaded = load(path)
        _match(loaded)
        _change(loaded)
        loaded.save(path)


EXERCISES: dict[str, Callable[[], None]] = {
    work.__name__: work for work in (segments, tables, single_events, ranges, snapshots)
}
"""Name -> work. The longest come first, so that processes end together."""


def index_exercises() -> list[str]:
    """The names of exercises for the indexes of the papers."""
    return [f"index:{name}" for name in indexes() if name != ENGINE]


def _use_index(name: str) -> None:
    matcher = Matcher(index=name)
    texts = ["price < {n} AND a = {n}", "price BETWEEN {n} AND {n}.5 AND b <> 2", "genre = 'g{n}' AND a IN (1, 2, {n})"]
    matcher.add_many(range(300), [texts[n % 3].format(n=n % 20) for n in range(300)])
    matcher.match(_EVENT)
    matcher.match_batch(_table(50))
    matcher.remove(1)
    matcher.add(1, "price > 2 AND a = 3")
    matcher.match({"a": [1, 2], "price": 3})


def exercise(name: str) -> None:
    """Do one of `EXERCISES` or `index_exercises`."""
    kind, _, index = name.partition(":")
    if kind == "index":
        _use_index(index)
    else:
        EXERCISES[name]()


if __name__ == "__main__":
    exercise(sys.argv[1])
