"""Where the expression of each slot can be read again: for `explain`, and for building anew.

A call that adds many adds a block; a block of a table keeps the table, not a million expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tamis.encoding.growing import GrowingArray
from tamis.encoding.predicate_table import PredicateTable
from tamis.language.expression import Expression
from tamis.language.reading import to_expression

_ALONE = -1


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
    """Expressions by slot: those that came in a block by block and row, those that came alone as they are."""

    def __init__(self) -> None:
        self._alone: dict[int, str | Expression] = {}
        self._blocks: dict[int, Block] = {}
        self._alive: dict[int, int] = {}
        self._next = 0
        self._block = GrowingArray(np.int32)
        self._row = GrowingArray(np.int32)

    def add(self, block: Block, slots: npt.NDArray[Any]) -> None:
        if len(slots) == 0:
            return
        missing = max(int(slots.max()) + 1 - len(self._block), 0)
        self._block.grow(missing, fill=_ALONE)
        self._row.grow(missing)
        self._block.view()[slots] = self._next
        self._row.view()[slots] = np.arange(len(slots))
        self._blocks[self._next] = block
        self._alive[self._next] = len(slots)
        self._next += 1

    def add_one(self, given: str | Expression, slot: int) -> None:
        self._alone[slot] = given

    def remove(self, slot: int) -> None:
        """Forget an expression; a block goes with the last of its expressions."""
        if self._alone.pop(slot, None) is not None:
            return
        block = int(self._block.view()[slot])
        self._block.view()[slot] = _ALONE
        self._alive[block] -= 1
        if self._alive[block] == 0:
            del self._alive[block], self._blocks[block]

    def expression(self, slot: int) -> Expression:
        alone = self._alone.get(slot)
        if alone is not None:
            return to_expression(alone)
        return self._blocks[int(self._block.view()[slot])].expression(int(self._row.view()[slot]))

    def compacted(self, live: npt.NDArray[np.int64]) -> Sources:
        """The expressions of some slots alone, in new slots of the same order."""
        compacted = Sources()
        for new, old in enumerate(live.tolist()):
            if old in self._alone:
                compacted._alone[new] = self._alone[old]
        in_blocks = np.flatnonzero([old not in self._alone for old in live.tolist()])
        blocks = self._block.view()[live[in_blocks]]
        for number in np.unique(blocks).tolist():
            new = in_blocks[blocks == number]
            rows = self._row.view()[live[new]].astype(np.int64)
            compacted.add(self._blocks[number].taken(rows), new)
        return compacted
