"""Which rows of a table are wrong events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.encoding.events.asked import Asked
from tamis.errors import EventError, TableError
from tamis.language.schema import Schema
from tamis.matcher.event_input import right_rows, wrong_rows
from tamis.matcher.matcher import Matcher

FAR = 10**18
"""Microseconds after 1970, in the year 33658."""


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_wrong_rows_are_the_rows_that_a_matcher_refuses(share: float) -> None:
    random = np.random.default_rng(round(100 * share))
    size = 150
    bad = random.random((size, 3)) < share
    texts = pa.array([b"\xff" if wrong else b"ok" for wrong in bad[:, 1]], pa.binary())
    table = pa.table(
        {
            "at": pa.array(np.where(bad[:, 0], FAR, 0), pa.timestamp("us")),
            "text": pa.Array.from_buffers(pa.string(), size, texts.buffers()),
            "n": pa.array([[1, 2] if wrong else [1] for wrong in bad[:, 2]]),
        }
    )
    schema = Schema.of({"n": "number"})
    matcher = Matcher(schema={"n": "number", "text": "string", "at": "timestamp"})
    matcher.add_table(pa.table({"id": [1, 2], "expression": ["n = 1 AND text = 'ok'", "at < DATE '2000-01-01'"]}))
    refused = set()
    for row in range(size):
        try:
            matcher.match_batch(table.slice(row, 1))
        except (EventError, TableError):
            refused.add(row)
    wrong = wrong_rows(table, schema=schema)
    assert set(wrong) == refused == set(np.flatnonzero(bad.any(1)).tolist())
    assert all("'at'" in reason or "UTF" in reason or "'n'" in reason for reason in wrong.values())
    right = right_rows(table, wrong)
    assert len(right) == size - len(wrong)
    assert len(matcher.match_batch(right)) == 2 * len(right)


def forms(texts: pa.Array) -> dict[str, pa.Table]:
    """A string in each row, in all forms of events."""
    rows = np.arange(len(texts) + 1)
    names = pa.array(["text"] * len(texts))
    entries = pa.StructArray.from_arrays([names, texts], ["attribute", "value"])
    return {
        "column": pa.table({"text": texts, "n": range(len(texts))}),
        "struct": pa.table({"a": pa.StructArray.from_arrays([texts], ["b"]), "n": range(len(texts))}),
        "array": pa.table({"text": pa.ListArray.from_arrays(rows, texts), "n": range(len(texts))}),
        "map": pa.table({"event": pa.MapArray.from_arrays(rows, names, texts)}),
        "list": pa.table({"event": pa.ListArray.from_arrays(rows, entries)}),
    }


@pytest.mark.parametrize("form", ["column", "struct", "array", "map", "list"])
def test_a_string_that_is_not_utf8_makes_its_own_row_wrong_and_no_other(form: str) -> None:
    raw = pa.array([b"\xc3\x28" if row in (3, 70) else b"ok" for row in range(100)], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 100, raw.buffers())
    attribute = "a.b" if form == "struct" else "text"
    told = f"attribute '{attribute}': a string is not UTF-8"
    table = forms(texts)[form]
    assert wrong_rows(table) == {3: told, 70: told}
    assert wrong_rows(table.slice(2, 10)) == {1: told}
    assert wrong_rows(table.slice(4, 60)) == {}


def test_rows_with_several_errors_have_the_first() -> None:
    times = pa.array([FAR if row % 2 else 0 for row in range(1000)], pa.timestamp("us"))
    numbers = pa.array([[1, 2] if row % 3 == 0 else [1] for row in range(1000)])
    wrong = wrong_rows(pa.table({"at": times, "n": numbers}), schema=Schema.of({"n": "number"}))
    assert list(wrong) == [row for row in range(1000) if row % 2 or row % 3 == 0]
    assert {wrong[row] for row in (1, 3)} == {"attribute 'at': a timestamp is not within the years 1 to 9999"}
    assert wrong[6] == "attribute 'n': found several values, but the schema declares one"


def test_attributes_without_predicates_make_no_row_wrong() -> None:
    table = pa.table({"at": pa.array([FAR], pa.timestamp("us")), "raw": [b"x"], "o": [{"t": [b"x"], "n": 1}]})
    assert wrong_rows(table, Asked.names(["n", "o.n", "o", "raw.x"])) == {}
    for name in ("at", "raw", "o.t"):
        assert wrong_rows(table, Asked.names([name]))[0].startswith(f"attribute '{name}': ")


def test_a_table_without_rows_has_no_wrong_rows() -> None:
    assert wrong_rows(pa.table({"a": pa.array([], pa.int64())})) == {}
