"""The kernels that decide the joins of a batch: the summaries of all histories, and the programs of rests for (rest, row) pairs.

Each row has a history of its own: the events from a first position, which ascends with the rows, to the row itself.

    events      ... first of row 0 ... first of last row ... | row 0 ... last row
                [  old: leave in turn  ][       core         ][ rows: come in turn ]

So the lowest key of a row's history is the lowest of three keys: that of the old events from its first one on, that of the core,
and that of the rows before it. The first and the last are running minima, the first from the right. The same holds for the
highest key and for counts.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.earlier.chain_search import NO, YES, passes
from tamis.earlier.key_ranges import BOOLEAN, DOMAINS, LARGE, MISSING, NUMBER, ODD, TEXT
from tamis.earlier.row_programs import ALL_OF, ANY_OF, CONSTANT, FALSE, IS, JOIN, NOT, OPEN, TRUE, UNKNOWN, Step
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.fields import reader_of, word_of, words_in
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I8s, I64s
from tamis.kernels.packed import Packed

EQ, NE, LT, LE, GT, GE = range(6)
"""Operators of joins."""
SOME, EVERY, FOUND, WALK, NEVER = range(5)
"""Kinds of joins: ANY, ALL, EXISTS with one comparison, EXISTS by a walk of a chain, and what no kernel decides."""
NO_LANE = -1
_LONGEST = 4096
"""Events of a chain that are looked at."""


class Lane(NamedTuple):
    """One domain of one column, and the summary of its core. It has a place for each row in `Ends`."""

    domains: I8s
    keys: I64s
    domain: int
    events: int
    low: int
    high: int


class Ends(NamedTuple):
    """By lane and row: how many events, the lowest and the highest key."""

    counts: I64s
    lows: I64s
    highs: I64s


class Values(NamedTuple):
    """A column, and the event before each event with its key if somebody walks. Those of rows alone begin at position `shift`."""

    domains: I8s
    keys: I64s
    before: I64s
    shift: int


class RowJoin(NamedTuple):
    """A join that is bound to columns, by their places."""

    kind: int
    column: int
    own: int
    """The values of the new events."""
    operator: int
    first: int
    """For a walk: the words of its tests, which compare other attributes of an earlier event with those of the new one."""
    end: int
    conditions: Packed
    """The words of its conditions on earlier events alone, see `chain_search`."""
    condition_count: int


class RowTest(NamedTuple):
    """A comparison `earlier OPERATOR new` beside a walk."""

    column: int
    own: int
    operator: int


class Asked(NamedTuple):
    """What programs read, packed."""

    values: Packed
    lanes: I64s
    """The lane of each domain of each column, or NO_LANE."""
    ends: Ends
    joins: Packed
    tests: Packed
    steps: Packed
    firsts: I64s
    positions: I64s
    truths: I8s
    """By join: its truth for the row that was asked for last."""
    rows: I64s
    """By join: this row."""
    stack: I8s
    decided: I64s
    """How many joins were decided, and how many of them were TRUE."""


LANE, STEP, TEST, JOINS, VALUES = (words_in(each) for each in (Lane, Step, RowTest, RowJoin, Values))
BEFORE = word_of(Values, "before")
DECIDED, HELD = range(2)
_read_lane, _read_step, _read_test, _read_join = (reader_of(each) for each in (Lane, Step, RowTest, RowJoin))
_read_values, _read_asked = reader_of(Values), reader_of(Asked)


@lean_kernel
def write_ends(lanes: Packed, firsts: I64s, positions: I64s, counts: I64s, lows: I64s, highs: I64s) -> None:
    """Write the summaries of some histories for each lane, each from one of `firsts` to one of `positions`. Both ascend."""
    size = len(positions)
    for number in range(len(lanes) // LANE):
        lane, to = _read_lane(lanes[number * LANE :]), number * size
        count, low, high = lane.events, lane.low, lane.high
        at = positions[0]
        for row in range(size):
            while at < positions[row]:
                if lane.domains[at] == lane.domain:
                    count += 1
                    low, high = min(low, lane.keys[at]), max(high, lane.keys[at])
                at += 1
            counts[to + row], lows[to + row], highs[to + row] = count, low, high
        count, low, high = 0, KEY_MAX, KEY_MIN
        at = firsts[-1]
        for row in range(size - 1, -1, -1):
            while at > firsts[row]:
                at -= 1
                if lane.domains[at] == lane.domain:
                    count += 1
                    low, high = min(low, lane.keys[at]), max(high, lane.keys[at])
            counts[to + row] += count
            lows[to + row], highs[to + row] = min(lows[to + row], low), max(highs[to + row], high)


@inlined
def _count(asked: Asked, column: int, domain: int, row: int) -> int:
    lane = asked.lanes[column * DOMAINS + domain]
    if lane == NO_LANE:
        return 0
    count: int = asked.ends.counts[lane * len(asked.positions) + row]
    return count


@inlined
def _is_comparable(asked: Asked, column: int, operator: int, domain: int, is_same: bool) -> bool:
    """Whether a comparison of a value with a column can be decided here."""
    if domain in (ODD, LARGE):
        return False
    if domain == NUMBER:
        last = len(asked.positions) - 1
        return _count(asked, column, LARGE, 0) == 0 and _count(asked, column, LARGE, last) == 0
    return domain != TEXT or is_same  # Each column has keys of its own for strings.


@inlined
def _found(operator: int, low: int, high: int, key: int) -> tuple[bool, bool]:
    """Whether some key y from `low` to `high` satisfies `key OPERATOR y`, and whether some does not. Both ends are there."""
    if operator == LT:
        return high > key, low <= key
    if operator == LE:
        return high >= key, low < key
    if operator == GT:
        return low < key, high >= key
    if operator == GE:
        return low <= key, high > key
    other = low != key or high != key
    return other, other


@inlined
def _quantified(asked: Asked, join: RowJoin, row: int) -> int:
    position, is_equality = asked.positions[row], join.operator in (EQ, NE)
    column, own = _read_values(asked.values[join.column * VALUES :]), _read_values(asked.values[join.own * VALUES :])
    domain, key = own.domains[position - own.shift], own.keys[position - own.shift]
    is_same = join.column == join.own
    # Chains lead from an event to events with the same value of the same attribute.
    if not _is_comparable(asked, join.column, join.operator, domain, is_same) or (is_equality and not is_same):
        return OPEN
    yes = no = False
    compared = 0
    lane = asked.lanes[join.column * DOMAINS + domain]
    if domain != MISSING and lane != NO_LANE and (is_equality or domain != BOOLEAN):
        at = lane * len(asked.positions) + row
        compared = asked.ends.counts[at]
        if compared > 0:
            yes, no = _found(join.operator, asked.ends.lows[at], asked.ends.highs[at], key)
            if is_equality:
                equal = column.before[position] >= asked.firsts[row]
                if join.operator == EQ:
                    yes = equal
                else:
                    no = equal
    if join.kind != EVERY and yes:
        return TRUE
    if join.kind == EVERY and no:
        return FALSE
    odd = _count(asked, join.column, ODD, row)
    if odd > 0:
        return OPEN
    if join.kind != FOUND and compared < position - asked.firsts[row]:
        return UNKNOWN
    return TRUE if join.kind == EVERY else FALSE


@inlined
def _is_in(operator: int, earlier: int, key: int) -> bool:
    """Whether `earlier OPERATOR key` holds for two keys."""
    if operator == LT:
        return earlier < key
    if operator == LE:
        return earlier <= key
    if operator == GT:
        return earlier > key
    if operator == GE:
        return earlier >= key
    return (earlier == key) == (operator == EQ)


@inlined
def _compares(asked: Asked, join: RowJoin, row: int, at: int) -> int:
    """Whether the earlier event at a position satisfies all tests of a walk for a row."""
    found = YES
    for word in range(join.first, join.end, TEST):
        test = _read_test(asked.tests[word:])
        column, own = (
            _read_values(asked.values[test.column * VALUES :]),
            _read_values(asked.values[test.own * VALUES :]),
        )
        position = asked.positions[row] - own.shift
        domain, of = column.domains[at], own.domains[position]
        if domain == ODD:
            found = OPEN
        elif (
            domain == MISSING
            or domain != of
            or (domain == BOOLEAN and test.operator not in (EQ, NE))
            or not _is_in(test.operator, column.keys[at], own.keys[position])
        ):
            return NO
    return found


@inlined
def _walked(asked: Asked, join: RowJoin, row: int) -> int:
    """The truth of EXISTS, by a look at the events that have the same value as a row, the latest first."""
    position = asked.positions[row]
    column, own = _read_values(asked.values[join.column * VALUES :]), _read_values(asked.values[join.own * VALUES :])
    domain = own.domains[position - own.shift]
    if domain in (ODD, MISSING):
        return OPEN if domain == ODD else FALSE
    for word in range(join.first, join.end, TEST):
        test = _read_test(asked.tests[word:])
        beside = _read_values(asked.values[test.own * VALUES :])
        of = beside.domains[position - beside.shift]
        if of == MISSING:
            return FALSE
        if not _is_comparable(asked, test.column, test.operator, of, test.column == test.own):
            return OPEN
    at, left = column.before[position], _LONGEST
    # Events with several values of the attribute are in no chain.
    is_open = _count(asked, join.column, ODD, row) > 0
    while at >= asked.firsts[row]:
        if left == 0:
            return OPEN
        left -= 1
        found = _compares(asked, join, row, at)
        if found != NO and join.condition_count:
            constant = passes(join.conditions, join.condition_count, at)
            found = constant if found == YES or constant == NO else found
        if found == YES:
            return TRUE
        is_open |= found != NO
        at = column.before[at]
    return OPEN if is_open else FALSE


@inlined
def _truth(asked: Asked, number: int, row: int) -> int:
    """The truth of a join for a row, which is decided once."""
    if asked.rows[number] != row:
        join = _read_join(asked.joins[number * JOINS :])
        truth = OPEN
        if join.kind == WALK:
            truth = _walked(asked, join, row)
        elif join.kind != NEVER:
            truth = _quantified(asked, join, row)
        asked.rows[number], asked.truths[number] = row, truth
        asked.decided[DECIDED] += truth != OPEN
        asked.decided[HELD] += truth == TRUE
    known: int = asked.truths[number]
    return known


@inlined
def _joined(stack: I8s, first: int, end: int, decisive: int) -> int:
    """Truths under AND, where FALSE is decisive, or under OR, where TRUE is."""
    is_open, joined = False, TRUE - decisive
    for place in range(first, end):
        truth = stack[place]
        if truth == decisive:
            return decisive
        is_open |= truth == OPEN
        if truth == UNKNOWN:
            joined = UNKNOWN
    return OPEN if is_open else joined


@inlined
def _run(asked: Asked, start: int, end: int, row: int) -> int:
    """The truth that a program finds for a row."""
    stack, top = asked.stack, 0
    for word in range(start, end, STEP):
        action, of = _read_step(asked.steps[word:])
        truth = of
        if action == JOIN:
            truth = _truth(asked, of, row)
        elif action in (ALL_OF, ANY_OF):
            top -= of
            truth = _joined(stack, top, top + of, FALSE if action == ALL_OF else TRUE)
        elif action != CONSTANT:
            top -= 1
            truth = stack[top]
            if truth != OPEN and action == NOT:
                truth = TRUE - truth
            elif truth != OPEN and action == IS:
                truth = TRUE if (of >> truth) % 2 else FALSE
        stack[top] = truth
        top += 1
    last: int = stack[0]
    return last


@lean_kernel
def run_programs(given: Packed, starts: I64s, which: I64s, rows: I64s, out: I8s) -> None:
    """Write the truths of pairs of a program and a row. `starts` has the first word of each program, and the end."""
    asked = _read_asked(given)
    for pair in range(len(which)):
        number = which[pair]
        out[pair] = _run(asked, starts[number], starts[number + 1], rows[pair])
