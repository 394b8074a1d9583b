"""Where the expression of each slot can be read again: for `explain`, and for building anew.

Slots are given in blocks, one per call that adds; a block of a table keeps the table, not a million expressions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tamis.encoding.predicate_table import PredicateTable
from tamis.language.expression import Expression
from tamis.language.reading import to_expression


class Block(Protocol):
    """The expressions of some consecutive slots."""

    def __len__(self) -> int: ...

    def expression(self, row: int) -> Expression: ...

    def taken(self, rows: npt.NDArray[np.int64]) -> Block:
        """Some of the expressions, as a block of their own."""
        ...


class GivenExpressions:
    """Expressions as they were given: text stays text until it is asked for."""

    def __init__(self, given: Sequence[str | Expression]) -> None:
        self._given = list(given)

    def __len__(self) -> int:
        return len(self._given)

    def extend(self, others: GivenExpressions) -> None:
        self._given.extend(others._given)

    def taken(self, rows: npt.NDArray[np.int64]) -> GivenExpressions:
        return GivenExpressions([self._given[row] for row in rows.tolist()])

    def expression(self, row: int) -> Expression:
        return to_expression(self._given[row])


class TableRows:
    """Rows of a table in predicate form. The table stays whole for as long as one of its rows is needed."""

    def __init__(self, table: PredicateTable, rows: npt.NDArray[np.int64] | None = None) -> None:
        self._table = table
        self._rows = rows

    def __len__(self) -> int:
        return len(self._table) if self._rows is None else len(self._rows)

    def taken(self, rows: npt.NDArray[np.int64]) -> TableRows:
        return TableRows(self._table, rows if self._rows is None else self._rows[rows])

    def expression(self, row: int) -> Expression:
        return self._table.expression(row if self._rows is None else int(self._rows[row]))


class Sources:
    """The blocks in the order of their slots."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._first: list[int] = []
        self._slots = 0

    def add(self, block: Block) -> None:
        last = self._blocks[-1] if self._blocks else None
        if isinstance(block, GivenExpressions) and isinstance(last, GivenExpressions):
            last.extend(block)
        else:
            self._first.append(self._slots)
            self._blocks.append(block)
        self._slots += len(block)

    def compacted(self, slots: npt.NDArray[np.int64]) -> Sources:
        """The expressions of some ascending slots alone, in new slots of the same order."""
        compacted = Sources()
        bounds = np.searchsorted(slots, [*self._first, self._slots])
        for block, first, start, end in zip(self._blocks, self._first, bounds[:-1], bounds[1:], strict=True):
            if end > start:
                compacted.add(block.taken(slots[start:end] - first))
        return compacted

    def expression(self, slot: int) -> Expression:
        block = bisect_right(self._first, slot) - 1
        return self._blocks[block].expression(slot - self._first[block])
