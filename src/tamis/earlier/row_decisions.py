"""The truths of rests for rows of a batch, many at once: joins are bound to columns here, and kernels decide them (`row_joins`).

    pairs of a rest and a row  --rests-->  programs, joins  --columns, summaries, chains-->  truths

Most rows of a batch have no candidates with joins. So only rows that ask have a place in the arrays here. Pairs that the kernels
cannot decide, such as those of rows with several values, have OPEN, and are decided one by one.

A fixed part of some 20 us for each column and 5 us for each join is behind a call, and 50 ns for each pair. Arrays of truths for
each join, which NumPy joined, took 300 us for each rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.earlier.block_summary import Line, summary_at
from tamis.earlier.chain_search import Test, packed_tests
from tamis.earlier.chunks import Chunk
from tamis.earlier.column import Column
from tamis.earlier.decisions import conditions_of
from tamis.earlier.key_ranges import DOMAINS, MISSING
from tamis.earlier.row_joins import (
    BEFORE,
    DECIDED,
    EQ,
    EVERY,
    FOUND,
    GE,
    GT,
    HELD,
    JOINS,
    LANE,
    LE,
    LT,
    NE,
    NEVER,
    NO_LANE,
    SOME,
    VALUES,
    WALK,
    Asked,
    Ends,
    run_programs,
    write_ends,
)
from tamis.earlier.row_programs import JOIN, OPEN, Program, program_of
from tamis.earlier.shelf import Window
from tamis.kernels.fields import packed_fields
from tamis.kernels.numbers import I8s, I64s
from tamis.kernels.packed import Packed, address_of
from tamis.language.expression import Expression
from tamis.language.joins import Exists, Quantified
from tamis.language.operators import MIRRORED, Operator, Quantifier

_ALIVE = np.zeros(0, np.uint8)
_CODES = {
    Operator.EQ: EQ,
    Operator.NE: NE,
    Operator.LT: LT,
    Operator.LE: LE,
    Operator.GT: GT,
    Operator.GE: GE,
}
_EQUALITIES = Operator.EQ, Operator.NE
_NEVER = NEVER, *[0] * (JOINS - 1)
"""The words of what no kernel decides."""


class RowDecisions:
    """The truths of rests for some rows of a batch, in ascending order.

    `firsts` are the positions of the first earlier event of each row. The batch lies in the log from position `base` on. The
    history has no gaps, and no row leaves before the last one has come.
    """

    def __init__(self, window: Window, chunk: Chunk, firsts: I64s, rows: I64s, base: int) -> None:
        self._window, self._log, self._chunk = window, window.log, chunk
        self._base, self._firsts, self._positions = base, firsts, base + rows
        self._apart: dict[str, Column] = {}
        """Attributes of the batch that the log has no column of."""
        self.decided = 0
        """The joins that were decided, each for each row."""
        self.held = 0
        """How many of these were TRUE."""

    def truths(self, rests: Sequence[Expression], which: I64s, rows: I64s) -> I8s:
        """The truths of pairs: the rests in some places, each for the row in a place here. Rows ascend."""
        programs = list(map(program_of, rests))
        joins = {
            join: place for place, join in enumerate(dict.fromkeys(join for each in programs for join in each.joins))
        }
        for join in joins:
            self._make_ready(join)
        steps, starts = _steps(programs, joins)
        binding = _Binding(self._window, self._firsts, self._positions)
        words = [word for join in joins for word in self._bound(join, binding)]
        decided = np.zeros(2, np.int64)
        asked = Asked(
            *binding.summaries(),
            joins=np.array(words, np.int64),
            tests=np.array(binding.tests, np.int64),
            steps=steps,
            firsts=self._firsts,
            positions=self._positions,
            truths=np.full(len(joins), OPEN, np.int8),
            rows=np.full(len(joins), -1),
            stack=np.empty(max(len(each.steps) for each in programs), np.int8),
            decided=decided,
        )
        out = np.empty(len(which), np.int8)
        run_programs(packed_fields(asked), starts, which, rows, out)
        self.decided += int(decided[DECIDED])
        self.held += int(decided[HELD])
        return out

    def _make_ready(self, join: Quantified | Exists) -> None:
        """Make the columns of a join. Asking for order may change the keys of strings, so it comes before any key is read."""
        if isinstance(join, Quantified):
            self._order(join.attribute, join.earlier, join.operator)
            return
        for each in join.joins:
            self._order(each.attribute, each.earlier, each.operator)
        for condition in conditions_of(join).ranges:
            self._log.column(condition.attribute).ranges(condition.ranges or {})

    def _order(self, attribute: str, earlier: str, operator: Operator) -> None:
        column = self._log.column(earlier)
        if operator not in _EQUALITIES and attribute == earlier:
            column.order_texts()

    def _bound(self, join: Quantified | Exists, binding: _Binding) -> Sequence[int]:
        """The words of a join, see `RowJoin`."""
        if isinstance(join, Quantified):
            kind = SOME if join.quantifier is Quantifier.ANY else EVERY
            return self._compared(kind, _Compared(join.attribute, join.operator, join.earlier), binding)
        conditions = conditions_of(join)
        if conditions.are_all and len(join.joins) == 1 and not join.conditions:
            [only] = join.joins
            return self._compared(FOUND, _Compared(only.attribute, MIRRORED[only.operator], only.earlier), binding)
        chain = next(
            (each for each in join.joins if each.operator is Operator.EQ and each.attribute == each.earlier), None
        )
        if chain is None or not conditions.are_all:
            return _NEVER
        first = len(binding.tests)
        for each in join.joins:
            if each is not chain:
                column = binding.earlier(self._log.column(each.earlier))
                binding.tests += column, self._own(each.attribute, binding), _CODES[each.operator]
        column = binding.earlier(self._log.column(chain.earlier), chained=True)
        tests = [condition.test(self._log.column(condition.attribute)) for condition in conditions.ranges]
        return WALK, column, column, EQ, first, len(binding.tests), *binding.conditions(tests), len(tests)

    def _compared(self, kind: int, compared: _Compared, binding: _Binding) -> Sequence[int]:
        """The words of a join with one comparison."""
        attribute, operator, earlier = compared
        chained = attribute == earlier and operator in _EQUALITIES
        column = binding.earlier(self._log.column(earlier), chained=chained)
        return kind, column, self._own(attribute, binding), _CODES[operator], 0, 0, *binding.conditions([]), 0

    def _own(self, attribute: str, binding: _Binding) -> int:
        """The place of the values that the new events have."""
        own = self._log.columns.get(attribute)
        if own is not None:
            return binding.place(own)
        own = self._apart.get(attribute)
        if own is None:
            own = self._apart[attribute] = Column(attribute)
            self._chunk.fill(own, np.arange(len(self._chunk)))
        return binding.place(own, self._base)


class _Compared(NamedTuple):
    """The comparison `attribute OPERATOR earlier`."""

    attribute: str
    operator: Operator
    earlier: str


class _Binding:
    """The columns that joins are bound to."""

    def __init__(self, window: Window, firsts: I64s, positions: I64s) -> None:
        self._window, self._firsts, self._positions = window, firsts, positions
        self.tests: list[int] = []
        """The words of all tests, see `RowTest`."""
        self._values: list[int] = []
        self._places: dict[Column, int] = {}
        self._lanes: list[int] = []
        self._lane_of: list[int] = []
        self._summarized: set[int] = set()
        self._chained: dict[int, I64s] = {}
        self._conditions: list[Packed] = []

    def place(self, column: Column, shift: int = 0) -> int:
        """The place of a column, whose first value is that of position `shift`."""
        place = self._places.get(column)
        if place is None:
            place = self._places[column] = len(self._places)
            self._values += *column.place, 0, 0, shift
            self._lane_of += [NO_LANE] * DOMAINS
        return place

    def earlier(self, column: Column, *, chained: bool = False) -> int:
        """The place of a column of the log, of which summaries are read, and chains of equal keys if they are asked for."""
        place = self.place(column)
        if chained and place not in self._chained:
            before = self._chained[place] = self._window.chains(column).follow(int(self._positions[-1]) + 1)
            self._values[place * VALUES + BEFORE : place * VALUES + BEFORE + 2] = address_of(before), len(before)
        if place not in self._summarized:
            self._summarized.add(place)
            line = Line(column.domains, column.keys, _ALIVE, int(self._firsts[-1]), int(self._positions[0]))
            core = self._window.index_of(column).core(line)
            for domain, is_seen in enumerate(column.seen.tolist()):
                if is_seen and domain != MISSING:
                    self._lane_of[place * DOMAINS + domain] = len(self._lanes) // LANE
                    self._lanes += *column.place, domain, *summary_at(core, domain)
        return place

    def conditions(self, tests: Sequence[Test]) -> tuple[int, int]:
        """The address and the length of packed tests, which are kept alive."""
        if not tests:
            return 0, 0
        packed = packed_tests(tests)
        self._conditions.append(packed)
        return address_of(packed), len(packed)

    def summaries(self) -> tuple[I64s, I64s, Ends]:
        """The packed columns, their lanes, and the summaries of all histories."""
        lanes, size = np.array(self._lanes, np.int64), len(self._lanes) // LANE * len(self._positions)
        ends = Ends(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64))
        write_ends(lanes, self._firsts, self._positions, *ends)
        return np.array(self._values, np.int64), np.array(self._lane_of, np.int64), ends


def _steps(programs: Sequence[Program], places: dict[Quantified | Exists, int]) -> tuple[I64s, I64s]:
    """The steps of all programs, with the places of joins, and where each program begins and the last one ends."""
    words: list[int] = []
    starts = [0]
    for steps, joins in programs:
        of_joins = [places[join] for join in joins]
        for action, of in steps:
            words += action, of_joins[of] if action == JOIN else of
        starts.append(len(words))
    return np.array(words, np.int64), np.array(starts, np.int64)
