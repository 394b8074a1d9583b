"""Detection rules, which mostly look for text inside text: the engine, a scan, the reference evaluator, and DuckDB."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import tamis
from benchmarks.matching import Effort, Loaded, as_dicts, events_of
from tamis.experiments.timing import best_of, seconds_of
from tamis.language.engine_sql import to_sql
from tamis.language.evaluate import matches
from tamis.language.expression import Expression
from tamis.workload import Workload, preset

RULE_COUNT = 4_000
_REFERENCE_EVENTS = 1
_RULES_PER_QUERY = 100


def measure_rules(rules: int, seed: int, effort: Effort) -> dict[str, Any]:
    """All figures of `rules` detection rules. The reference evaluator and DuckDB must give the engine's answers."""
    config = preset("detection", subscriptions=rules, seed=seed)
    loaded = Loaded(config)
    texts = loaded.workload.subscriptions().column("expression").to_pylist()
    expressions = [tamis.parse(text) for text in texts]
    scan = tamis.Matcher(index="scan")
    scan.add_many(range(rules), expressions)
    events = effort.rule_events
    segments = loaded.engine.version.segments
    stats = loaded.matcher.stats()
    with loaded.learning_nothing():
        kinds = {kind: _measure_kind(loaded, scan, expressions, kind, events, effort) for kind in ("planted", "other")}
    return {
        "rules": rules,
        "events": events,
        "conjunctions": stats["conjunctions"],
        "load_seconds": loaded.load_seconds,
        "bytes_each": sum(segment.nbytes + segment.table_nbytes for segment in segments) / rules,
        "kinds": kinds,
    }


def _measure_kind(
    loaded: Loaded, scan: tamis.Matcher, expressions: list[Expression], kind: str, count: int, effort: Effort
) -> dict[str, Any]:
    events = events_of(loaded.workload, kind, count)
    batch = loaded.encoded(events)
    found = loaded.match(batch)
    counts = np.zeros(len(expressions), np.int64)
    answers = loaded.matcher.match_batch(events)
    np.add.at(counts, answers.column("subscription").to_numpy(), 1)
    dicts = list(as_dicts(events))
    each = 1e6 / count
    few = events.slice(0, min(count, 10 * effort.scan_events))
    return {
        "matches": float(found.counts.mean()),
        "candidates": found.work.candidates / count,
        "survivors": found.work.survivors / count,
        "compared": found.work.compared / count,
        "engine": best_of(lambda: loaded.match(batch), effort.passes, effort.budget) * each,
        "batch": best_of(lambda: loaded.matcher.match_batch(events, 1), effort.passes, effort.budget) * each,
        "dict": best_of(lambda: [loaded.matcher.match(event) for event in dicts], effort.passes, effort.budget) * each,
        "scan": best_of(lambda: scan.match_batch(few, 1), min(2, effort.passes), effort.budget) / len(few) * 1e6,
        "reference": _reference(loaded.matcher, expressions, dicts[:_REFERENCE_EVENTS]),
        "duckdb": _duckdb(loaded.workload, expressions, kind, counts, count),
    }


def _reference(matcher: tamis.Matcher, expressions: list[Expression], events: list[dict[str, Any]]) -> float:
    """Microseconds per event of the reference evaluator, rule by rule."""
    answers: list[list[int]] = []

    def ask(event: dict[str, Any]) -> None:
        answers.append([rule for rule, expression in enumerate(expressions) if matches(expression, event)])

    seconds = sum(seconds_of(partial(ask, event)) for event in events)
    if answers != [sorted(matcher.match(event), key=int) for event in events]:
        raise AssertionError("the reference evaluator answers otherwise")
    return seconds / len(events) * 1e6


def _duckdb(
    workload: Workload, expressions: list[Expression], kind: str, counts: npt.NDArray[np.int64], events: int
) -> float | None:
    """Microseconds per event of DuckDB with one thread. Each query counts the matches of many rules. None: DuckDB is missing."""
    try:
        import duckdb
    except ImportError:
        return None
    table = _wide_events(workload, kind, events)
    texts = [to_sql(expression, "duckdb") for expression in expressions]
    queries = [
        "SELECT " + ", ".join(f"count(*) FILTER (WHERE {text})" for text in texts[first : first + _RULES_PER_QUERY])
        for first in range(0, len(texts), _RULES_PER_QUERY)
    ]
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("arrow_events", table)
        connection.execute("CREATE TABLE events AS SELECT * FROM arrow_events")
        answers: list[int] = []

        def ask() -> None:
            for query in queries:
                row = connection.execute(f"{query} FROM events AS event").fetchone()
                answers.extend(row or ())

        seconds = seconds_of(ask)
    if answers != counts.tolist():
        raise AssertionError("DuckDB answers otherwise")
    return seconds / events * 1e6


def _wide_events(workload: Workload, kind: str, count: int) -> pa.Table:
    return workload.events(count, wide=True) if kind == "planted" else workload.other_events(count, wide=True)
