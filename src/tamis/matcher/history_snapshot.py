"""What a matcher with a history has in its file beside the rest.

    history/events           the retained events in order of arrival: a column of JSON text (`tamis.earlier.flat_text`)
    history/rests            each distinct expression of the join table: a column of SQL text
    history/slot             the slots that have some
    history/rest, always     the place of each slot's rest and of what is decided for every event, -1 if there is none

The options, the largest time seen and the other figures are in the meta data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.earlier.flat_text import flat_text, read_flat
from tamis.earlier.history import History, history_of, options_of
from tamis.earlier.join_table import NO_REST, Split
from tamis.earlier.retained import RetainedContents
from tamis.errors import SnapshotError, TamisError
from tamis.language.expression import TRUE, Expression
from tamis.language.reading import to_expression
from tamis.language.values import Kind
from tamis.storage.container import Container
from tamis.storage.layout import Json
from tamis.storage.tables import COLUMN, to_bytes


class HistoryContents(NamedTuple):
    """The part of a store's contents that has to do with earlier events."""

    history: History
    retained: RetainedContents
    parts: Mapping[int, Split]
    """By slot. The index has the constant parts."""


def history_arrays(contents: HistoryContents) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a history."""
    places: dict[Expression, int] = {}

    def place_of(expression: Expression | None) -> int:
        return NO_REST if expression is None else places.setdefault(expression, len(places))

    parts = contents.parts.values()
    rest, always = [place_of(each.rest) for each in parts], [place_of(each.always) for each in parts]
    texts = [flat_text(event) for event in contents.retained.events]
    return {
        "history/events": to_bytes(pa.array(texts, pa.large_string())),
        "history/rests": to_bytes(pa.array(map(str, places), pa.large_string())),
        "history/slot": np.array(list(contents.parts), np.int32),
        "history/rest": np.array(rest, np.int32),
        "history/always": np.array(always, np.int32),
    }


def history_meta(contents: HistoryContents) -> dict[str, Json]:
    """The meta data of a history."""
    retained = contents.retained
    return {
        "options": options_of(contents.history),
        "newest": retained.newest,
        "kind": retained.kind,
        "left_out": retained.left_out,
    }


def read_history(opened: Container) -> HistoryContents | None:
    """The history in a file; None if there is none.

    Raises
    ------
    SnapshotError
    """
    meta = opened.meta.get("history")
    if meta is None:
        return None
    try:
        events = [read_flat(text) for text in _texts(opened, "history/events")]
        texts: list[Expression] = list(map(to_expression, _texts(opened, "history/rests")))
        known = {NO_REST: None, **dict(enumerate(texts))}
        slots, rest, always = (opened.array(f"history/{name}").tolist() for name in ("slot", "rest", "always"))
        kind = None if meta["kind"] is None else Kind(meta["kind"])
        retained = RetainedContents(events, meta["newest"], kind, meta["left_out"])
        parts = {slot: Split(TRUE, known[r], known[a]) for slot, r, a in zip(slots, rest, always, strict=True)}
        return HistoryContents(history_of(meta["options"]), retained, parts)
    except SnapshotError:
        raise
    except (LookupError, TypeError, ValueError, TamisError) as error:
        raise SnapshotError(f"has a history that cannot be read ({error}): build it again", path=opened.path) from None


def _texts(opened: Container, name: str) -> list[str]:
    texts: list[str] = opened.table(name)[COLUMN].to_pylist()
    return texts
