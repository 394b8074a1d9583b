"""The rows of a table that satisfy an expression, and rows as JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.cli.event_filter import EventFilter
from tamis.encoding.columns import Odd
from tamis.encoding.events.asked import Asked
from tamis.encoding.events.event_table import checked_columns
from tamis.errors import EventError
from tamis.language.event import FlatEvent
from tamis.language.values import Kind

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - timestamps without a zone are UTC


class Decided(NamedTuple):
    """A row, whether it matches, and the problem if the row is wrong."""

    row: int
    matches: bool
    problem: str | None = None


def decided(table: pa.Table, event_filter: EventFilter) -> Iterator[Decided]:
    """The decision for each row.

    Raises
    ------
    TableError
        If the table does not hold events.
    """
    events, problems = _flat_events(table, event_filter)
    for row, event in enumerate(events):
        problem, matches = problems.get(row), False
        if problem is None:
            try:
                matches = event_filter.matches_flat(event)
            except EventError as error:
                problem = str(error)
        yield Decided(row, matches, problem)


def json_lines(table: pa.Table) -> Iterator[bytes]:
    """The rows as JSON objects."""
    for row in table.to_pylist(maps_as_pydicts="lossy"):
        try:
            text = json.dumps(row, ensure_ascii=False, allow_nan=False, default=_text)
        except ValueError:
            text = json.dumps(_without_nan(row), ensure_ascii=False, default=_text)
        yield text.encode()


def _flat_events(table: pa.Table, event_filter: EventFilter) -> tuple[list[FlatEvent], dict[int, str]]:
    """The rows in their normal form, with the attributes that are asked about, and the problems of wrong rows."""
    events: list[FlatEvent] = [{} for _ in range(len(table))]
    problems: dict[int, str] = {}
    for column in checked_columns(table, Asked.names(event_filter.attributes), None):
        if isinstance(column, Odd):
            column.note(problems)
            continue
        values = column.values.to_pylist() if isinstance(column.values, pa.Array) else column.values.tolist()
        if column.kind is Kind.TIMESTAMP:
            values = [_EPOCH + timedelta(microseconds=value) for value in values]
        for row, value in zip(column.rows.tolist(), values, strict=True):
            event = events[row]
            event[column.attribute] = (*event.get(column.attribute, ()), value)
    return events, problems


def _text(value: Any) -> Any:
    """A value that JSON cannot represent: times as ISO 8601, bytes as base64, others as Python writes them."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


def _without_nan(value: Any) -> Any:
    """The value with null in place of NaN and infinity, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
