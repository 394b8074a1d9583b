"""The truth of a join for many rows of a batch at once.

Each row has a history of its own: the events from a first position, which ascends with the rows, to the row itself.

    events      ... first of row 0 ... first of last row ... | row 0 ... last row
                [  old: leave in turn  ][       core         ][ rows: come in turn ]

So the lowest key of a row's history is the lowest of three: of the old events from its first one on (a running minimum from the
right), of the core, and of the rows before it (a running minimum). The same holds for the highest key and for counts. Keys that
are equal form chains (`key_chains`), which answer `=`.

Truths are numbers: 0 FALSE, 1 UNKNOWN, 2 TRUE. So AND is the minimum and OR the maximum. Rows that this module cannot decide,
such as rows with several values, have OPEN, and are decided one by one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tamis.earlier.attribute_index import holds
from tamis.earlier.block_summary import Ends, Line, ends_of, join_ends, running_ends
from tamis.earlier.chunks import Chunk
from tamis.earlier.column import Column
from tamis.earlier.decisions import conditions_of
from tamis.earlier.key_chains import walked
from tamis.earlier.key_ranges import BOOLEAN, LARGE, MISSING, NUMBER, ODD, SPACES, TEXT, TIME
from tamis.earlier.shelf import Window
from tamis.kernels.numbers import Bools, I64s
from tamis.language.evaluate import Truth
from tamis.language.expression import And, Constant, Expression, Not, Or, TruthTest
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import MIRRORED, Operator, Quantifier

Truths = Any
"""An array of int8."""
FALSE, UNKNOWN, TRUE = range(3)
OPEN = 3
_TRUTHS: dict[Truth, int] = {False: FALSE, None: UNKNOWN, True: TRUE}
_ALIVE = np.zeros(0, np.uint8)
_DECIDABLE = (NUMBER, TEXT, TIME, BOOLEAN)


class _Own(NamedTuple):
    """The values of the rows themselves."""

    spaces: Any
    keys: I64s


class RowDecisions:
    """The truths of joins for the rows of a batch. `firsts` are the positions of the first earlier event of each row.

    The rows lie in the log from position `base` on. The history has no gaps, and no row leaves before the last one has come.
    """

    def __init__(self, window: Window, chunk: Chunk, firsts: I64s, base: int, row: int) -> None:
        self._window, self._log, self._chunk = window, window.log, chunk
        self._firsts, self._base, self._row = firsts, base, row
        """The row of the chunk that is the first one here."""
        self._count = len(firsts)
        self._sizes = np.arange(base, base + self._count) - firsts
        self._nobody = ends_of(self._count)
        """The ends of a space without events."""
        self._known: dict[Expression, Truths] = {}
        self.decided = 0
        """The joins that were decided, each for each row."""
        self.held = 0
        """How many of these were TRUE."""
        self._ends_of: dict[tuple[str, int, int], Ends] = {}
        self._cores: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        self._owns: dict[tuple[str, bool], _Own] = {}
        """By attribute, and whether the log has a column of it."""

    def truths(self, node: Expression, rows: I64s) -> Truths:
        """The truth of an expression for some rows."""
        match node:
            case Quantified() | Exists():
                known = self._known.get(node)
                if known is None:
                    known = self._known[node] = np.full(self._count, OPEN + 1, np.int8)
                missing = rows[known[rows] == OPEN + 1]
                if len(missing):
                    known[missing] = (
                        self._quantified(node, missing) if isinstance(node, Quantified) else self._exists(node, missing)
                    )
                    self.decided += int(np.count_nonzero(known[missing] != OPEN))
                    self.held += int(np.count_nonzero(known[missing] == TRUE))
                return known[rows]
            case And():
                return self._joined(node, rows, np.minimum, FALSE)
            case Or():
                return self._joined(node, rows, np.maximum, TRUE)
            case Not():
                truths = self.truths(node.operand, rows)
                return np.where(truths == OPEN, OPEN, TRUE - truths).astype(np.int8)
            case TruthTest():
                truths = self.truths(node.operand, rows)
                accepted = np.isin(truths, [_TRUTHS[truth] for truth in node.accepted])
                return np.where(truths == OPEN, OPEN, np.where(accepted, TRUE, FALSE)).astype(np.int8)
            case Constant():
                return np.full(len(rows), TRUE if node.value else FALSE, np.int8)
        return np.full(len(rows), OPEN, np.int8)

    def _joined(self, node: And | Or, rows: I64s, join: Callable[..., Any], decisive: int) -> Truths:
        parts = [self.truths(operand, rows) for operand in node.operands]
        is_open = functools.reduce(np.logical_or, [part == OPEN for part in parts])
        decided = functools.reduce(np.logical_or, [part == decisive for part in parts])
        joined = functools.reduce(join, [np.where(part == OPEN, decisive, part) for part in parts])
        return np.where(is_open & ~decided, OPEN, joined).astype(np.int8)

    # -- the parts of histories

    def _own(self, attribute: str) -> _Own:
        """The values of an attribute in the rows. A column of its own gives other keys to strings."""
        column = self._log.columns.get(attribute)
        own = self._owns.get((attribute, column is not None))
        if own is None:
            part = slice(self._base, self._base + self._count)
            if column is None:
                column = Column(attribute)
                self._chunk.fill(column, np.arange(len(self._chunk)))
                part = slice(self._row, self._row + self._count)
            own = self._owns[attribute, attribute in self._log.columns] = _Own(column.spaces[part], column.keys[part])
        return own

    def _core(self, column: Column) -> list[tuple[int, int, int]]:
        place = column.attribute, column.changes
        core = self._cores.get(place)
        if core is None:
            index = self._window.index_of(column)
            index.follow(Line(column.spaces, column.keys, _ALIVE, int(self._firsts[-1]), self._base))
            core = self._cores[place] = [index.summary(space) for space in range(SPACES)]
        return core

    def _ends(self, column: Column, space: int) -> Ends:
        place = column.attribute, column.changes, space
        known = self._ends_of.get(place)
        if known is not None:
            return known
        if not column.seen[space]:
            return self._nobody
        count, low, high = self._core(column)[space]
        first, base = self._firsts, self._base
        start = int(first[0])
        old, own = slice(start, int(first[-1])), slice(base, base + self._count - 1)
        ends, of_old = ends_of(self._count), ends_of(int(first[-1]) - start + 1)
        running_ends(column.spaces[own], column.keys[own], space, ends_of(1, count, low, high), ends)
        if len(of_old.counts) > 1:
            running_ends(column.spaces[old][::-1].copy(), column.keys[old][::-1].copy(), space, ends_of(1), of_old)
            join_ends(ends, of_old, first - start)
        self._ends_of[place] = ends
        return ends

    def _latest(self, column: Column, rows: I64s) -> I64s:
        """The position of the latest earlier event with the same value of the same attribute as each row."""
        chains = self._window.chains(column)
        before = chains.follow(self._base + self._count)
        return before[self._base + rows]

    # -- quantifiers

    def _comparable(self, column: Column, attribute: str, operator: Operator, rows: I64s) -> tuple[_Own, Bools]:
        """The values of rows, and whether their comparisons with a column can be decided here."""
        is_equality = operator in (Operator.EQ, Operator.NE)
        if attribute == column.attribute and not is_equality:
            column.order_texts()
        own = self._own(attribute)
        spaces, keys = own.spaces[rows], own.keys[rows]
        can = (spaces != ODD) & (spaces != LARGE)
        if self._ends(column, LARGE).counts[-1] or self._ends(column, LARGE).counts[0]:
            can &= spaces != NUMBER
        if attribute != column.attribute:
            can &= spaces != TEXT  # Each column has keys of its own for strings.
        return _Own(spaces, keys), can

    def _quantified(self, join: Quantified, rows: I64s) -> Truths:
        column = self._log.column(join.earlier)
        (spaces, keys), can = self._comparable(column, join.attribute, join.operator, rows)
        if join.operator in (Operator.EQ, Operator.NE) and join.attribute != column.attribute:
            return np.full(
                len(rows), OPEN
            )  # Chains lead from an event to events with the same value of the same attribute.
        yes, no = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
        compared = np.zeros(len(rows), np.int64)
        for space in _DECIDABLE:
            of = spaces == space
            if not of.any() or (space == BOOLEAN and join.operator not in (Operator.EQ, Operator.NE)):
                continue
            ends = self._ends(column, space)
            counts, low, high, key = ends.counts[rows], ends.lows[rows], ends.highs[rows], keys
            some, others = _found(join.operator, low, high, key)
            if join.operator in (Operator.EQ, Operator.NE):
                equal = self._latest(column, rows) >= self._firsts[rows]
                some, others = (equal, others) if join.operator is Operator.EQ else (some, equal)
            yes |= of & (counts > 0) & some
            no |= of & (counts > 0) & others
            compared += np.where(of, counts, 0)
        odd = self._ends(column, ODD).counts[rows]
        unknown = compared + odd < self._sizes[rows]
        is_any = join.quantifier is Quantifier.ANY
        sure, against = (TRUE, FALSE) if is_any else (FALSE, TRUE)
        decisive = yes if is_any else no
        truths = np.where(decisive, sure, np.where(odd > 0, OPEN, np.where(unknown, UNKNOWN, against)))
        return np.where(can, truths, OPEN)

    # -- EXISTS

    def _exists(self, join: Exists, rows: I64s) -> Truths:
        conditions = conditions_of(join)
        if not conditions.are_all:
            return np.full(len(rows), OPEN)
        if len(join.joins) == 1 and not join.conditions:
            [only] = join.joins
            some = Quantified(only.attribute, MIRRORED[only.operator], Quantifier.ANY, only.earlier)
            truths = self.truths(some, rows)
            return np.where(truths == UNKNOWN, FALSE, truths)
        chained = [each for each in join.joins if each.operator is Operator.EQ and each.attribute == each.earlier]
        if not chained:
            return np.full(len(rows), OPEN)
        return self._walked(join, chained[0], rows)

    def _walked(self, join: Exists, chain: Join, rows: I64s) -> Truths:
        """The truths of EXISTS, by a look at the events that have the same value as a row."""
        column = self._log.column(chain.earlier)
        others = [each for each in join.joins if each is not chain]
        # Asking for order may change the keys of strings, so it comes first.
        for each in others:
            if each.operator not in (Operator.EQ, Operator.NE) and each.attribute == each.earlier:
                self._log.column(each.earlier).order_texts()
        conditions = [(self._log.column(each.attribute), each) for each in conditions_of(join).ranges]
        for of, condition in conditions:
            of.ranges(condition.ranges or {})
        ranges = [
            (of, None if each.ranges is None else of.ranges(each.ranges), each.negated) for of, each in conditions
        ]
        spaces = self._own(chain.attribute).spaces[rows]
        can = spaces != ODD
        compared = []
        for each in others:
            of = self._log.column(each.earlier)
            own, is_fine = self._comparable(of, each.attribute, each.operator, rows)
            can &= is_fine
            compared.append((of, own, each.operator))
        heads = np.where(spaces == MISSING, -1, self._latest(column, rows))
        positions, owners = walked(self._window.chains(column).before, heads, self._firsts[rows])
        fits = np.ones(len(positions), np.bool_)
        odd = np.zeros(len(positions), np.bool_)
        for of, own, operator in compared:
            earlier, new = of.keys[positions], own.keys[owners]
            of_space = of.spaces[positions]
            same = (of_space == own.spaces[owners]) & (of_space != MISSING)
            if operator not in (Operator.EQ, Operator.NE):
                same &= of_space != BOOLEAN
            fits &= (same & _compare(operator, earlier, new)) | (of_space == ODD)
            odd |= of_space == ODD
        for of, keys, negated in ranges:
            of_space = of.spaces[positions]
            is_odd = (of_space == ODD) & (keys is not None)
            fits &= _within(of, positions, keys, negated) | is_odd
            odd |= is_odd
        # Events with several values of the chained attribute are in no chain.
        has_odd = self._ends(column, ODD).counts[rows] > 0
        found, doubtful = np.zeros(len(rows), np.bool_), has_odd
        found[owners[fits & ~odd]] = True
        doubtful[owners[fits & odd]] = True
        truths = np.where(found, TRUE, np.where(doubtful, OPEN, FALSE))
        return np.where(can, truths, OPEN)


def _found(operator: Operator, low: I64s, high: I64s, key: I64s) -> tuple[Bools, Bools]:
    """Whether some key y from `low` to `high` satisfies `key OPERATOR y`, and whether some does not. Both ends are there.

    For `=`, the second answer counts; for `<>`, the first.
    """
    match operator:
        case Operator.LT:
            return high > key, low <= key
        case Operator.LE:
            return high >= key, low < key
        case Operator.GT:
            return low < key, high >= key
        case Operator.GE:
            return low <= key, high > key
    other = (low != key) | (high != key)
    return other, other


def _compare(operator: Operator, left: I64s, right: I64s) -> Bools:
    compared: Bools = _COMPARISONS[operator](left, right)
    return compared


_COMPARISONS: dict[Operator, Any] = {
    Operator.EQ: np.equal,
    Operator.NE: np.not_equal,
    Operator.LT: np.less,
    Operator.LE: np.less_equal,
    Operator.GT: np.greater,
    Operator.GE: np.greater_equal,
}


def _within(column: Column, positions: I64s, wanted: Any, negated: bool) -> Bools:
    """Whether events satisfy a condition. `wanted` is None for IS NULL and IS NOT NULL."""
    if wanted is None:
        is_null: Bools = column.spaces[positions] == MISSING
        return ~is_null if negated else is_null
    return holds(column, positions, wanted, negated=negated)[0]
