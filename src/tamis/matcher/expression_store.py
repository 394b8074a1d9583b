"""The expression of each slot, for `explain`, pickling and snapshots.

A call that adds many adds a block. A block of a table keeps the table, not a million expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.expressions.kept_predicates import KeptPredicates
from tamis.encoding.expressions.predicate_table import PredicateTable
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import I32s, I64s
from tamis.language.expression import Expression
from tamis.language.reading import to_expression

_ALONE = -1


class ExpressionBlock(Protocol):
    """The expressions of some consecutive slots."""

    def __len__(self) -> int: ...

    def expression(self, row: int) -> Expression: ...

    def taken(self, rows: I64s) -> ExpressionBlock:
        """Some of the expressions, as a block of their own."""
        ...


class GivenExpressions:
    """Expressions as they were given. A text is parsed when somebody asks for its expression."""

    def __init__(self, given: Sequence[str | Expression]) -> None:
        self._given = list(given)

    def __len__(self) -> int:
        return len(self._given)

    def taken(self, rows: I64s) -> GivenExpressions:
        return GivenExpressions([self._given[row] for row in rows.tolist()])

    def expression(self, row: int) -> Expression:
        return to_expression(self._given[row])

    def texts(self, rows: npt.NDArray[Any]) -> pa.Array:
        """The SQL text of some rows."""
        return sql_texts([self._given[row] for row in rows.tolist()])


class TableRows:
    """Rows of a table in predicate form. The whole table stays while one of its rows is needed."""

    def __init__(self, table: KeptPredicates | PredicateTable, rows: I64s | None = None) -> None:
        self.table = table
        self._rows = rows

    def __len__(self) -> int:
        return len(self.table) if self._rows is None else len(self._rows)

    def taken(self, rows: I64s) -> TableRows:
        return TableRows(self.table, rows if self._rows is None else self._rows[rows])

    def expression(self, row: int) -> Expression:
        return self.table.expression(row if self._rows is None else int(self._rows[row]))

    def columns(self) -> PredicateTable:
        """The whole table in columns."""
        return self.table.part(0, len(self.table)) if isinstance(self.table, KeptPredicates) else self.table

    def in_table(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The places of some rows in the table."""
        return rows if self._rows is None else self._rows[rows]


class TextColumn:
    """Expressions as a column of SQL text."""

    def __init__(self, column: pa.Array) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def taken(self, rows: I64s) -> TextColumn:
        return TextColumn(self.texts(rows))

    def expression(self, row: int) -> Expression:
        return to_expression(self._column[row].as_py())

    def texts(self, rows: npt.NDArray[Any]) -> pa.Array:
        """The SQL text of some rows."""
        return self._column.take(pa.array(rows))


class ClosedBlock:
    """A block of a snapshot. It is opened when somebody first asks for one of its expressions."""

    def __init__(self, open: Callable[[], ExpressionBlock]) -> None:
        self._open = open

    @cached_property
    def opened(self) -> ExpressionBlock:
        return self._open()

    def __len__(self) -> int:
        return len(self.opened)

    def taken(self, rows: I64s) -> ExpressionBlock:
        return self.opened.taken(rows)

    def expression(self, row: int) -> Expression:
        return self.opened.expression(row)


def sql_texts(given: Sequence[str | Expression]) -> pa.Array:
    """Expressions as a column of SQL text."""
    texts = [each if isinstance(each, str) else str(each) for each in given]
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError:
        # A comment may have lone surrogates. An expression that was read has none.
        return pa.array([str(to_expression(text)) for text in texts], pa.large_string())


class LaidOut(NamedTuple):
    """Expressions by slot s: row `row[s]` of the texts if `block[s]` is 0, of table n if it is n + 1, none if it is -1."""

    block: I32s
    row: I32s
    texts: pa.Array
    tables: list[PredicateTable]


class Sources:
    """Expressions by slot. An expression of a block has the number of the block and a row there."""

    def __init__(self) -> None:
        self._alone: dict[int, str | Expression] = {}
        self._blocks: dict[int, ExpressionBlock] = {}
        self._alive: dict[int, int] = {}
        self._next = 0
        self._block = GrowingArray(np.int32)
        self._row = GrowingArray(np.int32)

    def add(self, block: ExpressionBlock, slots: npt.NDArray[Any]) -> None:
        if len(slots) == 0:
            return
        needed = int(slots.max()) + 1
        self._row.grow(max(needed - len(self._row), 0))
        self._block.grow(max(needed - len(self._block), 0), fill=_ALONE)
        # In this order: after an interrupt, `remove` takes back what is there.
        self._blocks[self._next] = block
        self._alive[self._next] = len(slots)
        self._row.view()[slots] = np.arange(len(slots))
        self._block.view()[slots] = self._next
        self._next += 1

    def add_one(self, given: str | Expression, slot: int) -> None:
        self._alone[slot] = given

    def remove(self, slot: int) -> None:
        """Forget an expression, if it is there. A block goes with its last expression."""
        if self._alone.pop(slot, None) is not None or slot >= len(self._block):
            return
        block = self._block.data.item(slot)
        if block == _ALONE:
            return
        self._block.data[slot] = _ALONE
        self._alive[block] -= 1
        if self._alive[block] == 0:
            del self._alive[block], self._blocks[block]

    def expression(self, slot: int) -> Expression:
        alone = self._alone.get(slot)
        if alone is not None:
            return to_expression(alone)
        return self._blocks[int(self._block.view()[slot])].expression(int(self._row.view()[slot]))

    def copied(self) -> Sources:
        """A copy that does not change with this one."""
        copied = Sources()
        copied._alone, copied._blocks, copied._alive = dict(self._alone), dict(self._blocks), dict(self._alive)
        copied._next = self._next
        copied._block.extend(self._block.view())
        copied._row.extend(self._row.view())
        return copied

    def laid_out(self, slots: int) -> LaidOut:
        """The expressions of the first `slots` slots, as a snapshot has them."""
        block, row = np.full(slots, _ALONE, np.int32), np.zeros(slots, np.int32)
        texts = [sql_texts(list(self._alone.values()))]
        tables: list[PredicateTable] = []
        numbers: dict[int, int] = {}
        filled = len(self._alone)
        alone = np.fromiter(self._alone, np.int64, filled)
        block[alone], row[alone] = 0, np.arange(filled)
        blocks = self._block.view()
        order = np.argsort(blocks, kind="stable")[np.count_nonzero(blocks == _ALONE) :]
        for some in np.split(order, np.flatnonzero(np.diff(blocks[order])) + 1) if len(order) else []:
            source = self._blocks[int(blocks[some[0]])]
            source = source.opened if isinstance(source, ClosedBlock) else source
            rows = self._row.view()[some]
            if isinstance(source, TableRows):
                if id(source.table) not in numbers:
                    tables.append(source.columns())
                    numbers[id(source.table)] = len(tables)
                block[some], row[some] = numbers[id(source.table)], source.in_table(rows)
            else:
                assert isinstance(source, GivenExpressions | TextColumn)
                texts.append(source.texts(rows))
                block[some], row[some] = 0, np.arange(filled, filled + len(some))
                filled += len(some)
        return LaidOut(block, row, pa.concat_arrays(texts), tables)

    def restore(self, block: I32s, row: I32s, blocks: Sequence[ExpressionBlock]) -> None:
        """Take over expressions that were laid out. There are none yet."""
        self._block.extend(block)
        self._row.extend(row)
        counts = np.bincount(block[block != _ALONE], minlength=len(blocks)).tolist()
        self._alive = {number: count for number, count in enumerate(counts) if count}
        self._blocks = {number: blocks[number] for number in self._alive}
        self._next = len(blocks)

    def compacted(self, live: I64s) -> Sources:
        """Only the expressions of some slots, in new slots of the same order."""
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
