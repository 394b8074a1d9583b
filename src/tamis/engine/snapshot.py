"""The engine's part of a snapshot: segments and rows as named arrays, and back.

    segments/0/table/start               the fields of tuples, joined by slashes; a number is an array of one
    segments/0/table/predicates/lo
    segments/0/body/entry
    delta/slot                           the rows of deltas

Arrays of segments are taken from the file as they are, without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

import numpy as np
import numpy.typing as npt

from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.programs import Programs
from tamis.engine.layout.forecast import Forecast
from tamis.engine.layout.segment_build import Body
from tamis.engine.limits import USUAL_LIMITS
from tamis.engine.matching.owners import Owners
from tamis.engine.rows import Rows, concatenated
from tamis.engine.segment import Segment, segments_of
from tamis.engine.version import Version
from tamis.kernels.numbers import Bools

Array = npt.NDArray[Any]

_SEGMENT = {"table": Conjunctions, "owners": Owners, "programs": Programs, "body": Body, "forecast": Forecast}
_DELTA = "delta"
_NAME_IN_FILES = {"key_numbers": "roll"}
"""Fields that have another name in files. A new name there would be a new version of the format."""


def frozen(version: Version, alive: Bools) -> tuple[tuple[Segment, ...], Rows | None]:
    """The segments of a version and the living rows of its deltas."""
    parts = [view.rows.taken(np.flatnonzero(alive[view.rows.slot])) for _, view in version.deltas]
    rows = concatenated(parts) if parts else None
    return version.segments, rows if rows is not None and rows.number else None


def arrays_of(segments: Sequence[Segment], rows: Rows | None) -> tuple[dict[str, Array], int]:
    """Segments and rows as named arrays, and the number of segments: many rows become one more segment."""
    if rows is not None and rows.number >= USUAL_LIMITS.delta_rows:
        segments, rows = [*segments, *segments_of(rows, None)], None
    arrays: dict[str, Array] = {}
    for number, segment in enumerate(segments):
        for part in _SEGMENT:
            arrays.update(_named(f"segments/{number}/{part}", getattr(segment, part)))
    if rows is not None:
        arrays.update(_named(_DELTA, rows))
    return arrays, len(segments)


def read_segment(number: int, array: Callable[[str], Array]) -> Segment:
    """A segment from its arrays. `array` gives an array by its name."""
    return Segment(*(_read(f"segments/{number}/{part}", kind, array) for part, kind in _SEGMENT.items()))


def read_rows(names: Sequence[str], array: Callable[[str], Array]) -> Rows | None:
    """The rows of the delta; None if there were none."""
    rows: Rows | None = _read(_DELTA, Rows, array) if f"{_DELTA}/slot" in names else None
    return rows


def _place(name: str, field: str) -> str:
    return f"{name}/{_NAME_IN_FILES.get(field, field)}"


def _named(name: str, nest: Any) -> dict[str, Array]:
    if isinstance(nest, np.ndarray):
        return {name: nest}
    if isinstance(nest, int):
        return {name: np.array([nest], np.int64)}
    arrays: dict[str, Array] = {}
    for field, part in zip(nest._fields, nest, strict=True):
        arrays.update(_named(_place(name, field), part))
    return arrays


def _read(name: str, kind: Any, array: Callable[[str], Array]) -> Any:
    fields: list[Any] = []
    for field, hint in get_type_hints(kind).items():
        place = _place(name, field)
        if hint is int:
            fields.append(int(array(place)[0]))
        else:
            fields.append(_read(place, hint, array) if hasattr(hint, "_fields") else array(place))
    return kind(*fields)
