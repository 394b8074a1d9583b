"""Each version of snapshots has a fixed set of arrays. A change of these arrays needs a new version."""

from __future__ import annotations

import re
from pathlib import Path

import tamis
from tamis.encoding.expressions.predicate_rows import OPERATORS
from tamis.matcher.snapshot import CONTENT_VERSION, HISTORY_VERSION
from tamis.storage import container
from tamis.workload import generate, preset

PINNED = Path(__file__).with_name("snapshot_layout.txt")
"""The version, the operators by their numbers, then the name of every array and the types of its elements; `*` is any number. A
new operator comes at the end and needs no new version."""

HINT = """The arrays of snapshots have changed, so older files cannot be read any more. Raise CONTENT_VERSION, or HISTORY_VERSION
for arrays of a history, in tamis.matcher.snapshot. Say so in docs/snapshot-format.md, and write this to
tests/matcher/snapshot_layout.txt:
"""


def saved(folder: Path) -> Path:
    """A matcher with a segment and a delta, ids, weights, expressions of all forms, and a sample of events."""
    matcher: tamis.Matcher[str] = tamis.Matcher()
    ids = [f"s{number}" for number in range(4200)]
    matcher.add_many(ids, [f"price < {number} AND genre = 'g{number % 9}'" for number in range(4200)])
    matcher.match_batch([{"price": number, "genre": "g1", "tag": ["a", "b"]} for number in range(50)])
    matcher.optimize()
    chain = " AND ".join(f"(a{number} = 1 OR b{number} > 2)" for number in range(8))
    matcher.add("program", chain)
    matcher.add("text", "title LIKE '%x%' OR tag = 'a' OR title RLIKE 'a+' OR ip_in(host, '10.0.0.0/8')", weight=2.0)
    path = folder / "layout.tamis"
    matcher.save(path)
    return path


def saved_table(folder: Path) -> Path:
    """A matcher with numbers as ids and a table of subscriptions, of which some were replaced."""
    matcher: tamis.Matcher[int] = tamis.Matcher()
    matcher.add_table(generate(preset("alerts", subscriptions=5000)).subscriptions())
    matcher.upsert(7, "price < 3")
    matcher.optimize()
    path = folder / "table.tamis"
    matcher.save(path)
    return path


def saved_history(folder: Path) -> Path:
    """A matcher with a history."""
    matcher: tamis.Matcher[str] = tamis.Matcher(history=tamis.History(rows=10))
    matcher.add("first", "price < 3 AND NOT EXISTS (SELECT 1 FROM history h WHERE h.author = author)")
    matcher.match({"price": 2, "author": "Verne"})
    path = folder / "history.tamis"
    matcher.save(path)
    return path


def test_the_layout_of_a_version(tmp_path: Path) -> None:
    arrays: dict[str, set[str]] = {}
    for opened in map(container.open, (saved(tmp_path), saved_table(tmp_path), saved_history(tmp_path))):
        for name in opened.names:
            arrays.setdefault(re.sub(r"/\d+/", "/*/", name), set()).add(str(opened.array(name).dtype))
    operators = f"operators {', '.join(OPERATORS)}"
    lines = [
        f"version {CONTENT_VERSION}, with a history {HISTORY_VERSION}",
        operators,
        *sorted(f"{name} {' or '.join(sorted(types))}" for name, types in arrays.items()),
    ]
    text = "\n".join(lines) + "\n"
    assert text == PINNED.read_text(), HINT + text
