"""The truth of a join for many rows of a batch at once.

Each row has a history of its own: the events from a first position, which ascends with the rows, to the row itself.

    events      ... first of row 0 ... first of last row ... | row 0 ... last row
                [  old: leave in turn  ][       core         ][ rows: come in turn ]

So the lowest key of a row's history is the lowest of three keys: that of the old events from its first one on, that of the core,
and that of the rows before it. The first and the last are running minima, the first from the right. The same holds for the
highest key and for counts. Keys that are equal form chains (`key_chains`), which answer `=`. Most rows of a batch have no
candidates with joins. So only rows that ask have a place in the arrays here.

Truths are numbers: 0 FALSE, 1 UNKNOWN, 2 TRUE. So AND is the minimum and OR the maximum. Rows that this module cannot decide,
such as rows with several values, have OPEN, and are decided one by one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tamis.earlier.block_summary import Ends, Line, ends_at, ends_of
from tamis.earlier.chain_search import NO, YES, RowTest, search_rows
from tamis.earlier.chunks import Chunk
from tamis.earlier.column import Column
from tamis.earlier.decisions import conditions_of
from tamis.earlier.key_chains import NOBODY
from tamis.earlier.key_ranges import BOOLEAN, DOMAINS, LARGE, MISSING, NUMBER, ODD, TEXT, TIME
from tamis.earlier.shelf import Window
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.numbers import Bools, I8s, I64s
from tamis.language.evaluate import Truth
from tamis.language.expression import And, Constant, Expression, Not, Or, TruthTest
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import MIRRORED, Operator, Quantifier

Truths = Any
"""An array of int8."""
FALSE, UNKNOWN, TRUE = range(3)
OPEN = 3
NO_COLUMN = -1
_TRUTHS: dict[Truth, int] = {False: FALSE, None: UNKNOWN, True: TRUE}
_ALIVE = np.zeros(0, np.uint8)
_DECIDABLE = (NUMBER, TEXT, TIME, BOOLEAN)


class _Own(NamedTuple):
    """The values of the rows themselves."""

    domains: I8s
    keys: I64s


class RowDecisions:
    """The truths of joins for some rows of a batch, in ascending order.

    `firsts` are the positions of the first earlier event of each row. The batch lies in the log from position `base` on. The
    history has no gaps, and no row leaves before the last one has come.
    """

    def __init__(self, window: Window, chunk: Chunk, firsts: I64s, rows: I64s, base: int) -> None:
        self._window, self._log, self._chunk = window, window.log, chunk
        self._firsts, self._rows, self._positions = firsts, rows, base + rows
        self._count = len(rows)
        self._sizes = self._positions - firsts
        self._nobody = ends_of(self._count)
        """The ends of a domain without events."""
        self._known: dict[Expression, Truths] = {}
        self.decided = 0
        """The joins that were decided, each for each row."""
        self.held = 0
        """How many of these were TRUE."""
        self._ends_of: dict[tuple[str, int, int], Ends] = {}
        self._cores: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
        self._owns: dict[tuple[str, int], _Own] = {}
        """By attribute, and the changes of its column in the log, or NO_COLUMN."""

    def truths(self, node: Expression, rows: I64s) -> Truths:
        """The truth of an expression for some rows, by their places here."""
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
        place = attribute, NO_COLUMN if column is None else column.changes
        own = self._owns.get(place)
        if own is None:
            part = self._positions
            if column is None:
                column = Column(attribute)
                self._chunk.fill(column, np.arange(len(self._chunk)))
                part = self._rows
            own = self._owns[place] = _Own(column.domains[part], column.keys[part])
        return own

    def _core(self, column: Column) -> list[tuple[int, int, int]]:
        place = column.attribute, column.changes
        core = self._cores.get(place)
        if core is None:
            index = self._window.index_of(column)
            index.follow(self._line(column))
            core = self._cores[place] = [index.summary(domain) for domain in range(DOMAINS)]
        return core

    def _ends(self, column: Column, domain: int) -> Ends:
        place = column.attribute, column.changes, domain
        known = self._ends_of.get(place)
        if known is not None:
            return known
        if not column.seen[domain]:
            return self._nobody
        core, ends = ends_of(1, *self._core(column)[domain]), ends_of(self._count)
        ends_at(self._line(column), domain, core, self._firsts, self._positions, ends)
        self._ends_of[place] = ends
        return ends

    def _line(self, column: Column) -> Line:
        """The core of all histories."""
        return Line(column.domains, column.keys, _ALIVE, int(self._firsts[-1]), int(self._positions[0]))

    def _latest(self, column: Column, rows: I64s) -> I64s:
        """The position of the latest earlier event with the same value of the same attribute as each row."""
        before = self._window.chains(column).follow(int(self._positions[-1]) + 1)
        return before[self._positions[rows]]

    # -- quantifiers

    def _comparable(self, column: Column, attribute: str, operator: Operator, rows: I64s) -> tuple[_Own, Bools]:
        """The values of rows, and whether their comparisons with a column can be decided here."""
        is_equality = operator in (Operator.EQ, Operator.NE)
        if attribute == column.attribute and not is_equality:
            column.order_texts()
        own = self._own(attribute)
        domains, keys = own.domains[rows], own.keys[rows]
        can = (domains != ODD) & (domains != LARGE)
        if self._ends(column, LARGE).counts[-1] or self._ends(column, LARGE).counts[0]:
            can &= domains != NUMBER
        if attribute != column.attribute:
            can &= domains != TEXT  # Each column has keys of its own for strings.
        return _Own(domains, keys), can

    def _quantified(self, join: Quantified, rows: I64s) -> Truths:
        column = self._log.column(join.earlier)
        (domains, keys), can = self._comparable(column, join.attribute, join.operator, rows)
        if join.operator in (Operator.EQ, Operator.NE) and join.attribute != column.attribute:
            return np.full(
                len(rows), OPEN
            )  # Chains lead from an event to events with the same value of the same attribute.
        yes, no = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
        compared = np.zeros(len(rows), np.int64)
        for domain in _DECIDABLE:
            of = domains == domain
            if not of.any() or (domain == BOOLEAN and join.operator not in (Operator.EQ, Operator.NE)):
                continue
            ends = self._ends(column, domain)
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
        tests = [condition.test(of) for of, condition in conditions]
        domains = self._own(chain.attribute).domains[rows]
        can = domains != ODD
        of_rows = []
        for each in others:
            of = self._log.column(each.earlier)
            own, is_fine = self._comparable(of, each.attribute, each.operator, rows)
            can &= is_fine
            of_rows.append(_row_test(of, own, each.operator))
        heads = np.where(can & (domains != MISSING), self._latest(column, rows), NOBODY)
        found = search_rows(self._window.chains(column).before, heads, self._firsts[rows], of_rows, tests)
        # Events with several values of the chained attribute are in no chain.
        doubtful = self._ends(column, ODD).counts[rows] > 0
        truths = np.where(found == YES, TRUE, np.where(doubtful | (found != NO), OPEN, FALSE))
        return np.where(can, truths, OPEN)


def _row_test(column: Column, own: _Own, operator: Operator) -> RowTest:
    """The keys y of earlier events for which `y OPERATOR own` holds."""
    domains, keys = own
    los, his = np.full(len(keys), KEY_MIN), np.full(len(keys), KEY_MAX)
    match operator:
        case Operator.LT:
            his = keys - 1
        case Operator.LE:
            his = keys
        case Operator.GT:
            los = keys + 1
        case Operator.GE:
            los = keys
        case _:
            los = his = keys
    if operator not in (Operator.EQ, Operator.NE):
        domains = np.where(domains == BOOLEAN, MISSING, domains).astype(np.int8)
    return RowTest(column, domains, los, his, operator is Operator.NE)


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
