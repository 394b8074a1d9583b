"""Adding what is right of a table, where `Matcher.add_table` adds all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tamis.errors import ExpressionError, OptionError, TableError

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.matcher.matcher import Matcher

Wrong = ExpressionError | TableError | OptionError
"""What can be wrong with a row whose id is right."""

# A matcher reads a table until the first wrong row. So many rows are tried at once, that few are read again for one.
_TOGETHER = 4096


def add_right_rows(matcher: Matcher, table: pa.Table) -> Iterator[tuple[int, Wrong]]:
    """Add the rows of a table that are right; the others, in order, and what is wrong with each.

    The table is one that `Matcher.add_table` takes, with ids that can be added. Parts that are refused are halved until a single
    row is.
    """
    try:
        matcher.add_table(table)
        return
    except (ExpressionError, TableError, OptionError):
        pass  # some row is wrong
    for start in range(0, len(table), _TOGETHER):
        yield from _halved(matcher, table.slice(start, _TOGETHER), start)


def _halved(matcher: Matcher, table: pa.Table, first: int) -> Iterator[tuple[int, Wrong]]:
    try:
        matcher.add_table(table)
    except (ExpressionError, TableError, OptionError) as error:
        half = len(table) // 2
        if half:
            yield from _halved(matcher, table.slice(0, half), first)
            yield from _halved(matcher, table.slice(half), first + half)
        else:
            yield first, error
