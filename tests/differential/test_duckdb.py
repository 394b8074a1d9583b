"""The evaluator and the matcher against DuckDB."""

from __future__ import annotations

from collections.abc import Callable

import duckdb

from tests.differential.comparison import batches, compare
from tests.differential.engines import DuckDB


def test_the_same_decisions(soak: bool, cases: Callable[[int], int]) -> None:
    with duckdb.connect() as connection:
        decisions = compare(DuckDB(connection), batches(12, soak=soak))
    assert decisions.total() >= cases(20_000)
    assert all(decisions[truth] >= decisions.total() / 5 for truth in (True, False, None)), decisions
