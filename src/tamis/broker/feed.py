"""The change feed as Arrow batches, for another process than the one that writes, such as a job of Spark.

It reads the tables alone: no lock, no matcher and no queues.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from tamis.broker.checking import ensure_sound
from tamis.broker.folder import TABLES, Folder
from tamis.broker.limits import USUAL_BROKER_LIMITS
from tamis.broker.tables import Tables

_MOMENT = pa.timestamp("us", "UTC")
FEED = pa.schema(
    {
        "number": pa.int64(),
        "change": pa.string(),
        "id": pa.int64(),
        "subscriber": pa.string(),
        "name": pa.string(),
        "expression": pa.string(),
        "weight": pa.float64(),
        "valid_from": _MOMENT,
        "valid_until": _MOMENT,
    }
)
"""The columns of the feed: the fields of `Change`."""

_SQL = """
    SELECT change, iif(removed OR paused, 'removed', 'added'), number, who, name, expression, weight, valid_from, valid_until
    FROM subscriptions JOIN (SELECT number AS own, name AS who FROM subscribers) ON own = subscriber
    WHERE change > ? AND change <= ? ORDER BY change
"""


class ChangeFeed:
    """The changes of the subscriptions in the folder of a broker.

    Raises
    ------
    BrokerError
        The folder has no broker.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        folder = Folder(path, read_only=True)
        self._tables = Tables(str(folder / TABLES), read_only=True)
        ensure_sound(self._tables, folder, "full")

    def last(self) -> int:
        """The number of the last change; 0 if there is none."""
        return self._tables.last("subscriptions", "change")

    def between(
        self, after: int, last: int, rows_at_once: int = USUAL_BROKER_LIMITS.rows_at_once
    ) -> Iterator[pa.RecordBatch]:
        """The subscriptions whose last change comes after one number and not after another, in order of the changes."""
        found = self._tables.rows(_SQL, (after, last))
        while rows := list(islice(found, rows_at_once)):
            yield pa.record_batch(_columns(rows), schema=FEED)

    def close(self) -> None:
        self._tables.close()


def _columns(rows: list[tuple[Any, ...]]) -> list[pa.Array]:
    columns = zip(*rows, strict=True)
    return [
        pa.array(values, pa.int64()).cast(field.type) if field.type == _MOMENT else pa.array(values, field.type)
        for field, values in zip(FEED, columns, strict=True)
    ]
