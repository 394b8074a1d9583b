"""Which rows of a table are no events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import EventError, TableError
from tamis.language.schema import Schema
from tamis.matcher.matcher import Matcher
from tamis.matcher.reading import right_rows, wrong_rows

FAR = 10**18
"""Microseconds after 1970, in the year 33658."""


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_wrong_rows_are_those_that_a_matcher_refuses_one_by_one(share: float) -> None:
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
    wrong = wrong_rows(table, schema)
    assert set(wrong) == refused == set(np.flatnonzero(bad.any(1)).tolist())
    assert all("'at'" in reason or "UTF" in reason or "'n'" in reason for reason in wrong.values())
    right = right_rows(table, wrong)
    assert len(right) == size - len(wrong)
    assert len(matcher.match_batch(right)) == 2 * len(right)


def test_no_rows_are_right() -> None:
    assert wrong_rows(pa.table({"a": pa.array([], pa.int64())})) == {}
