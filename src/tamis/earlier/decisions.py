"""The truth of joins for one event and its history.

A quantifier with one comparison is answered by an index. EXISTS with an equality walks the events with this value
(`chain_search`). Without one, or with too many events, it begins with the index that finds the fewest, and checks the other
comparisons in the columns of these events. The reference evaluator decides what is left: odd events,
and conditions that are no ranges, such as LIKE.

Measured alternative: a document vector (a bitmap of pyroaring) for each comparison, then AND. See `benchmarks.history`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tamis.earlier.attribute_index import AttributeIndex, Wanted, holds
from tamis.earlier.chain_search import IS_NOT_NULL, IS_NULL, NO, OPEN, YES, Sought, Test, search
from tamis.earlier.column import Column
from tamis.earlier.key_ranges import MISSING, ODD, Range, RangesByKind, key_of, satisfying
from tamis.earlier.shelf import Events
from tamis.kernels.numbers import Bools, I64s
from tamis.language.evaluate import Truth, conjunction, disjunction, evaluate_flat
from tamis.language.event import FlatEvent
from tamis.language.expression import Predicate
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import MIRRORED, Operator, Quantifier
from tamis.language.values import kind_of

_AT_ONCE = 64
"""Events that are given to the evaluator together."""
_FEW = 256
"""So few events are held against all comparisons. No other index counts its events."""
_ONE_BY_ONE = 4
"""So few events are held against comparisons one by one."""
_ANY_VALUE: Wanted = {}


class Condition(NamedTuple):
    """What a predicate asks of an earlier event, as far as ranges say it. `ranges` is None for IS NULL and IS NOT NULL."""

    attribute: str
    ranges: RangesByKind | None
    negated: bool

    def test(self, column: Column) -> Test:
        """The same in the keys of a column."""
        if self.ranges is None:
            return Test(column, IS_NOT_NULL if self.negated else IS_NULL, False)
        return Test(column, column.ranges(self.ranges), self.negated)


class Conditions(NamedTuple):
    """The conditions of an EXISTS: those that ranges decide, and whether there are others."""

    ranges: tuple[Condition, ...]
    are_all: bool


class _Test(NamedTuple):
    """A comparison of EXISTS for one event. `wanted` is None for IS NULL and IS NOT NULL."""

    column: Column
    wanted: Wanted | None
    negated: bool

    def holds(self, positions: I64s) -> tuple[Bools, Bools]:
        """Whether each event satisfies it, and whether it is odd."""
        if self.wanted is not None:
            return holds(self.column, positions, self.wanted, negated=self.negated)
        is_null = self.column.domains[positions] == MISSING
        return (~is_null if self.negated else is_null), np.zeros(len(positions), np.bool_)

    def holds_at(self, position: int) -> bool | None:
        """The same for one event; None if it is odd."""
        domain = int(self.column.domains[position])
        if self.wanted is None:
            return (domain == MISSING) is not self.negated
        if domain == ODD:
            return None
        ranges = self.wanted.get(domain)
        if ranges is None:
            return False
        key = int(self.column.keys[position])
        return any(lo <= key <= hi for lo, hi in ranges) is not self.negated


class Decisions:
    """The truths of joins for one event."""

    def __init__(self, event: FlatEvent, events: Events) -> None:
        self._event, self._events = event, events
        self._indexes: dict[str, tuple[AttributeIndex, int]] = {}
        self._wanted: dict[tuple[str, Operator, str], tuple[Wanted, int, int]] = {}
        """With the changes and the number of events of the column."""

    def truth(self, join: Quantified | Exists) -> Truth:
        """The truth of a join."""
        if isinstance(join, Quantified):
            if not len(self._events):
                return join.quantifier is Quantifier.ALL
            return self._quantified(join) if self._event.get(join.attribute) else None
        has_all = all(self._event.get(each.attribute) for each in join.joins)
        return has_all and len(self._events) > 0 and self._exists(join)

    def _index(self, column: Column) -> AttributeIndex:
        """The index of an attribute. To be asked for after the ranges, which may change the keys of strings."""
        known = self._indexes.get(column.attribute)
        if known is None or known[1] != column.changes:
            known = self._indexes[column.attribute] = self._events.index(column.attribute), column.changes
        return known[0]

    def _ranges(self, column: Column, attribute: str, operator: Operator) -> Wanted:
        """The keys y in a column for which `attribute OPERATOR y` holds. The operator is positive."""
        place = attribute, operator, column.attribute
        known = self._wanted.get(place)
        if known is None or known[1] != column.changes or known[2] != column.count:
            values = self._event.get(attribute, ())
            found = column.range_of_one(values[0], operator) if len(values) == 1 else None
            wanted = column.ranges(satisfying(values, operator)) if found is None else {found[0]: [found[1]]}
            known = self._wanted[place] = wanted, column.changes, column.count
        return known[0]

    def _quantified(self, join: Quantified) -> Truth:
        log, negated, is_any = self._events.log, join.operator is Operator.NE, join.quantifier is Quantifier.ANY
        operator = Operator.EQ if negated else join.operator
        known, values = log.columns.get(join.earlier), self._event[join.attribute]
        if known is not None and len(values) == 1:
            found = known.range_of_one(values[0], operator)
            if found is not None and self._events.shows(known, *found, is_any is not negated):
                return is_any
        column = log.column(join.earlier)
        wanted = self._ranges(column, join.attribute, operator)
        index = self._index(column)
        plain = index.truth(join.quantifier, wanted, negated=negated)
        if not index.counts[ODD] or plain is is_any:
            return plain
        numbers = self._events.log.numbers(self._events.log_positions(index.odd())).tolist()
        odd = evaluate_flat(join, self._event, [{join.earlier: column.odd[number]} for number in numbers])
        return disjunction((plain, odd)) if is_any else conjunction((plain, odd))

    def _some_other(self, join: Exists, test: _Test, wanted: Wanted) -> bool:
        """Whether some event has a value that is not wanted."""
        index = self._index(test.column)
        if index.truth(Quantifier.ANY, wanted, negated=True):
            return True
        odd = self._events.log_positions(index.odd()) if index.counts[ODD] else _NOTHING
        return len(odd) > 0 and evaluate_flat(join, self._event, self._events.log.events(odd)) is True

    def _tests(self, join: Exists, conditions: Conditions) -> list[_Test]:
        """The comparisons. Reading one of them may change the keys of strings, which makes the keys of others worthless."""
        while True:
            tests, changes = [], []
            for test in self._read(join, conditions):
                tests.append(test)
                changes.append(test.column.changes)
            if changes == [test.column.changes for test in tests]:
                return tests

    def _read(self, join: Exists, conditions: Conditions) -> Iterator[_Test]:
        column = self._events.log.column
        for each in join.joins:
            negated = each.operator is Operator.NE
            of = column(each.earlier)
            yield _Test(of, self._ranges(of, each.attribute, _mirrored(each)), negated)
        for condition in conditions.ranges:
            of = column(condition.attribute)
            yield _Test(of, None if condition.ranges is None else of.ranges(condition.ranges), condition.negated)

    def _exists(self, join: Exists) -> bool:
        conditions = conditions_of(join)
        known = self._as_known(join, conditions) if conditions.are_all else OPEN
        if known != OPEN:
            return known == YES
        tests = self._tests(join, conditions)
        if len(tests) == 1 and conditions.are_all and tests[0].negated and tests[0].wanted is not None:
            return self._some_other(join, tests[0], tests[0].wanted)
        found = self._in_chain(tests) if conditions.are_all else OPEN
        if found != OPEN:
            return found == YES
        best, positions = self.candidates(tests, enough=len(tests) == 1 and conditions.are_all)
        if positions is None:
            return True
        if not len(positions):
            return False
        positions = self._events.log_positions(positions)
        if len(positions) <= _ONE_BY_ONE and conditions.are_all:
            truths = [[test.holds_at(position) for test in tests] for position in positions.tolist()]
            if any(all(truth) for truth in truths):
                return True
            return self._evaluated(join, positions[[False not in truth for truth in truths]])
        doubtful = np.full(len(positions), not conditions.are_all)
        for test in tests:
            satisfied, odd = test.holds(positions)
            if test is not best or odd.any():
                kept = satisfied | odd
                positions, doubtful = positions[kept], (doubtful | odd)[kept]
        return not doubtful.all() or self._evaluated(join, positions)

    def _as_known(self, join: Exists, conditions: Conditions) -> int:
        """Whether some event satisfies EXISTS, by the columns and chains as they are. They may lack the latest events.

        Reading what a few events have takes longer than a walk. So most events read nothing.
        """
        columns = self._events.log.columns
        sought: tuple[Join, Column, int, int] | None = None
        tests: list[Test] = []
        for each in join.joins:
            column, values = columns.get(each.earlier), self._event[each.attribute]
            found = None if column is None or len(values) > 1 else column.range_of_one(values[0], _mirrored(each))
            if column is None or found is None:
                return OPEN
            domain, (lo, hi) = found
            if sought is None and each.operator is Operator.EQ:
                if lo != hi:  # No event had it.
                    return OPEN
                sought = each, column, domain, lo
            else:
                tests.append(Test(column, {domain: [(lo, hi)]}, each.operator is Operator.NE))
        chained = None if sought is None else self._events.chained_before(sought[1])
        if sought is None or chained is None:
            return OPEN
        for condition in conditions.ranges:
            of = columns.get(condition.attribute)
            if of is None or not of.has_order_for(condition.ranges):
                return OPEN
            tests.append(condition.test(of))
        chains, first, end = chained
        end = min([end, *(test.column.count for test in tests)])
        asked, column, domain, key = sought
        found_before = search(chains, Sought(domain, key, first, end), tests)
        if found_before == NO and (
            column.odd or self._events.log.may_have(asked.earlier, self._event[asked.attribute][0], end)
        ):
            return OPEN
        return found_before

    def _in_chain(self, tests: list[_Test]) -> int:
        """Whether some event satisfies all tests, if one of them asks for a single key; OPEN if this does not decide."""
        others: list[Test] = []
        sought: tuple[Column, int, int] | None = None
        for test in tests:
            column, wanted, negated = test
            if wanted is None:
                others.append(Test(column, IS_NOT_NULL if negated else IS_NULL, False))
                continue
            if sought is None and not negated and not column.odd and len(wanted) == 1:
                [(domain, ranges)] = wanted.items()
                if len(ranges) == 1 and ranges[0][0] >= ranges[0][1]:
                    if ranges[0][0] > ranges[0][1]:
                        return NO
                    sought = column, domain, ranges[0][0]
                    continue
            others.append(Test(column, wanted, negated))
        chained = None if sought is None else self._events.chained(sought[0])
        if sought is None or chained is None:
            return OPEN
        chains, first, end = chained
        return search(chains, Sought(*sought[1:], first, end), others)

    def _evaluated(self, join: Exists, positions: I64s) -> bool:
        """Whether the evaluator finds that some of these events satisfies EXISTS."""
        positions = np.unique(positions)
        return any(
            evaluate_flat(join, self._event, self._events.log.events(positions[at : at + _AT_ONCE]))
            for at in range(0, len(positions), _AT_ONCE)
        )

    def candidates(self, tests: list[_Test], *, enough: bool = False) -> tuple[_Test | None, I64s | None]:
        """The test that is true of the fewest events, and the positions of these and of odd events.

        None instead of positions: the test is true of some event, and this is `enough` to know.
        """
        best: tuple[int, _Test, AttributeIndex] | None = None
        # Single keys first: they are looked up. If they find few events, nobody counts the events of longer ranges.
        for test in sorted(tests, key=_is_long):
            if best is not None and best[0] <= _FEW and _is_long(test):
                break
            if test.wanted is None or test.negated:
                continue
            index = self._index(test.column)
            if enough and any(index.has(domain, *each) for domain, ranges in test.wanted.items() for each in ranges):
                return test, None
            few = None if _is_long(test) else index.few(test.wanted, _FEW)
            if few is not None:
                return test, few
            count = index.count(test.wanted) if len(tests) > 1 or not enough else index.counts[ODD]
            if best is None or count < best[0]:
                best = count, test, index
            if count == 0:
                break
        if best is None:
            return None, self._all()
        return best[1], best[2].candidates(best[1].wanted or _ANY_VALUE) if best[0] else _NOTHING

    def _all(self) -> I64s:
        """The positions of all events."""
        return self._events.positions()


_NOTHING = np.zeros(0, np.int64)


def _is_long(test: _Test) -> bool:
    """Whether a test asks for more than some single keys."""
    return test.wanted is None or any(lo < hi for ranges in test.wanted.values() for lo, hi in ranges)


def _mirrored(join: Join) -> Operator:
    return Operator.EQ if join.operator is Operator.NE else MIRRORED[join.operator]


@functools.lru_cache(maxsize=1 << 16)
def conditions_of(join: Exists) -> Conditions:
    """What EXISTS asks of earlier events alone."""
    read = [_condition(each) for each in join.conditions]
    return Conditions(tuple(each for each in read if each is not None), None not in read)


def _condition(predicate: Predicate) -> Condition | None:
    """What a predicate asks of an earlier event; None if ranges do not say it."""
    if type(predicate) is not Predicate:  # lower(a) and upper(a)
        return None
    name, values = predicate.attribute, predicate.values
    match predicate.operator:
        case Operator.IS_NULL | Operator.IS_NOT_NULL:
            return Condition(name, None, predicate.operator is Operator.IS_NOT_NULL)
        case Operator.EQ | Operator.NE | Operator.IN:
            return Condition(name, satisfying(values, Operator.EQ), predicate.operator is Operator.NE)
        case Operator.NOT_IN if len(set(map(kind_of, values))) == 1:
            return Condition(name, satisfying(values, Operator.EQ), negated=True)
        case Operator.LT | Operator.LE | Operator.GT | Operator.GE:
            return Condition(name, satisfying(values, MIRRORED[predicate.operator]), negated=False)
        case Operator.BETWEEN | Operator.NOT_BETWEEN:
            lo, hi = values
            kind = kind_of(lo)
            assert kind is not None
            ranges = {kind: [Range(key_of(lo), key_of(hi))]}
            return Condition(name, ranges, predicate.operator is Operator.NOT_BETWEEN)
    return None
