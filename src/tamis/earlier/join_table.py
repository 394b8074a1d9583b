"""The joins of subscriptions, and which of them hold for an event.

An expression has up to three parts. An event satisfies it if it satisfies the *constant part* and the *rest*, or else *always*:

    price < 20 AND author = ANY (...)       constant  price < 20              rest  author = ANY (...)
    price < 20 OR author = ANY (...)        constant  price < 20              always  author = ANY (...)
    author = ANY (...)                                                        always  author = ANY (...)

The constant part has TRUE in place of every join, so an index may look for it. `always` is what no constant part precedes. The
table decides it for every event, and knows the slots that it would satisfy (the paper's profile vector). So expressions of joins
alone are no candidates of every event.

The table has each distinct rest once, with a number, and the number of each slot's rest. For an event, each distinct rest is
decided once, and so is each distinct join, however many subscriptions share it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress
from typing import NamedTuple

import numpy as np

from tamis.earlier.decisions import Decisions
from tamis.earlier.marks import marked_places, without_places
from tamis.earlier.prefilter import NO_NEED, PreFilter
from tamis.earlier.retained import Retained
from tamis.earlier.shelf import Events
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.language.evaluate import Truth, asked_of_history, combined, evaluate_flat
from tamis.language.event import FlatEvent
from tamis.language.expression import FALSE, TRUE, And, Expression, Not, Or, Predicate, TruthTest, all_of, any_of
from tamis.language.joins import Exists, Quantified
from tamis.language.normal import to_nnf
from tamis.language.operators import Operator

NO_REST = -1
_FEW_SLOTS = 8
"""So few slots are looked up in Python. An array of them takes as long as eight."""
JOINS_ONLY = "joins only"
_NEVER = Predicate(JOINS_ONLY, Operator.EQ, ["never"])
"""The constant part of an expression that has only `always`. An index has a row for it, so that its slot is not given to another
subscription while an event is matched. An event that satisfies it finds the rest FALSE."""


class Split(NamedTuple):
    """The parts of an expression. The rest is None if the constant part decides, `always` if nothing lacks a constant part."""

    constant: Expression
    rest: Expression | None
    always: Expression | None = None


def split(expression: Expression) -> Split:
    """An expression as its parts."""
    normal = to_nnf(expression)
    if not normal.needs_history():
        return Split(normal, None)
    if isinstance(normal, Or):
        constants = {operand: to_nnf(_constant(operand)) for operand in normal.operands}
        always = [operand for operand in normal.operands if constants[operand] == TRUE]
        found = [operand for operand in normal.operands if constants[operand] != TRUE]
        if always:
            if not found:
                return Split(_NEVER, FALSE, normal)
            constant, rest, _ = split(any_of(*found))
            return Split(constant, rest, any_of(*always))
    constant = to_nnf(_constant(normal))
    if constant == TRUE:
        return Split(_NEVER, FALSE, normal)
    operands = normal.operands if isinstance(normal, And) else (normal,)
    rest = all_of(*(operand for operand in operands if operand.needs_history()))
    return Split(constant, rest)


def necessary(expression: Expression) -> Expression:
    """What an event must satisfy of an expression, whatever its history is."""
    parts = split(expression)
    return parts.constant if parts.always is None else TRUE


def _constant(node: Expression) -> Expression:
    """An expression in NNF with TRUE in place of its joins. NNF has NOT at the leaves only, so the result can only gain truth."""
    if not node.needs_history():
        return node
    if isinstance(node, And):
        return all_of(*map(_constant, node.operands))
    if isinstance(node, Or):
        return any_of(*map(_constant, node.operands))
    return TRUE  # a join, its negation, or a test of it


class EventJoins:
    """The truths of joins for one event and its history. Each distinct join is decided once."""

    def __init__(self, event: FlatEvent, events: Events) -> None:
        self._event = event
        self._decisions = Decisions(event, events)
        self.truths: dict[Expression, Truth] = {}

    def truth(self, node: Expression) -> Truth:
        """The truth of an expression, as the reference evaluator defines it."""
        if isinstance(node, Quantified | Exists):
            known = self.truths.get(node, self)
            if known is self:
                known = self.truths[node] = self._decisions.truth(node)
            return known  # type: ignore[return-value]
        if isinstance(node, And | Or | Not | TruthTest):
            return combined(node, self.truth)
        return evaluate_flat(node, self._event)


class _Rest(NamedTuple):
    expression: Expression
    attributes: frozenset[str]
    """The attributes that it asks about, of the new event and of earlier ones."""
    earlier: frozenset[str]


def joined_slots(slots: I32s, gone: Sequence[int] | I64s, more: Sequence[I32s]) -> I32s:
    """Slots without those at some places, which ascend, and with more of them."""
    if len(gone):
        slots = without_places(slots, np.asarray(gone, np.int64))
    if not more:
        return slots
    # A slot may have both parts.
    return np.unique(np.concatenate([slots, *more])) if len(slots) else np.concatenate(more)


class Always(NamedTuple):
    """What is decided for every event, and the slots that it satisfies."""

    expression: Expression
    slots: I32s
    need: int = NO_NEED
    """The number of what it needs of the retained events."""


class Moment(NamedTuple):
    """The retained events, and the events that are compared with them now."""

    retained: Retained
    is_plain: Callable[[Collection[str]], bool]
    """Whether these events have at most one value of some attributes."""
    until: int | None = None
    """For a batch: the number behind its last event."""


class JoinTable:
    """The rests of slots. One thread changes it at a time, while another one decides."""

    def __init__(self, prefilter: PreFilter | None = None) -> None:
        self.prefilter = PreFilter() if prefilter is None else prefilter
        self._lock = threading.RLock()
        self._rests: dict[int, _Rest] = {}
        self._numbers: dict[Expression, int] = {}
        self._owners: dict[int, int] = {}
        """The number of slots that have a rest."""
        self._next = 0
        self._of_slot = GrowingArray(np.int32)
        """The number of the rest of each slot, or NO_REST."""
        self._number_of: dict[int, int] = {}
        """The same for the slots that have a rest. To read a few numbers here takes less time than from the array."""
        self.marks = np.zeros(0, np.uint8)
        """A bit for each of these slots. This array may be replaced when it grows."""
        self._profiles: dict[int, set[int]] = {}
        """The slots of each rest that is decided for every event."""
        self._always_of: dict[int, int] = {}
        self._needs: dict[int, int] = {}
        """The need of each of these rests."""
        self._shown: tuple[Always, ...] | None = ()
        self._needs_of_shown: tuple[Sequence[Always], I32s] = (), np.zeros(0, np.int32)
        self._asked: frozenset[str] | None = frozenset()
        self.changes = 0
        """Changes of what is decided for every event, twice. Odd while such a change goes on."""
        self.gone: set[int] = set()
        """Slots that were removed. An event that is being matched may still need their rests."""
        self.decided = 0
        """How many joins were decided, for all events."""
        self.held = 0
        """How many of them were TRUE."""

    def __len__(self) -> int:
        """The number of distinct rests."""
        return len(self._rests)

    def put(self, slots: I32s, splits: Mapping[int, Split]) -> None:
        """Note the rests of new slots, by their place among the slots, before events can find them."""
        with self._lock:
            if len(slots):
                self._grow(int(slots.max()) + 1)
            if not splits and not self.gone:
                return
            size = (int(slots.max(initial=0)) >> 3) + 1
            if size > len(self.marks):
                self.marks = np.append(self.marks, np.zeros(max(size, 2 * len(self.marks)) - len(self.marks), np.uint8))
            for place, slot in enumerate(slots.tolist()):
                self.gone.discard(slot)
                self._let_go(slot)
                parts = splits.get(place)
                if parts is not None and parts.rest is not None:
                    self._of_slot.view()[slot] = self._number_of[slot] = self._number(parts.rest)
                    self.marks[slot >> 3] |= 1 << (slot & 7)
                    self.prefilter.put(slot, parts.rest, parts.constant)

    def show(self, slots: I32s, splits: Mapping[int, Split]) -> None:
        """Note what is decided for every event, after the slots got their ids."""
        if not any(parts.always is not None for parts in splits.values()):
            return
        with self._lock:
            for place, slot in enumerate(slots.tolist()):
                parts = splits.get(place)
                if parts is not None and parts.always is not None:
                    number = self._number(parts.always)
                    self._always_of[slot] = number
                    if number not in self._needs:
                        self._needs[number] = self.prefilter.number(parts.always)
                    self._profiles.setdefault(number, set()).add(slot)
            self._shown = None

    def remove(self, slot: int) -> None:
        """Note that a slot was removed."""
        if slot in self._number_of or slot in self._always_of:
            self.gone.add(slot)
        if slot in self._always_of:
            self._shown = None

    @contextmanager
    def shifting(self, concerned: bool) -> Iterator[None]:
        """Change the index and this table. If what is decided for every event is concerned, this must look like one change."""
        self.changes += concerned
        try:
            yield
        finally:
            self.changes += concerned

    def has_always(self, slots: Iterable[int]) -> bool:
        """Whether something is decided for every event on behalf of one of these slots."""
        return not self._always_of.keys().isdisjoint(slots)

    def tidy(self) -> bool:
        """Forget the slots that were removed, while no event is matched; returns whether rests went with them."""
        before = len(self._rests)
        while self.gone:
            with self._lock:
                if self.gone:
                    self._let_go(self.gone.pop())
        return len(self._rests) < before

    def _number(self, rest: Expression) -> int:
        number = self._numbers.get(rest)
        if number is None:
            number, self._next = self._next, self._next + 1
            earlier = frozenset(asked_of_history(rest))
            self._rests[number] = _Rest(rest, rest.attributes() | earlier, earlier)
            self._numbers[rest] = number
            self._owners[number] = 0
            self._asked = None
        self._owners[number] += 1
        return number

    def _let_go(self, slot: int) -> None:
        if slot in self._number_of:
            self.prefilter.drop(slot)
            number = self._number_of.pop(slot)
            self.marks[slot >> 3] &= ~(1 << (slot & 7)) & 0xFF
            self._of_slot.view()[slot] = NO_REST
            self._disown(number)
        always = self._always_of.pop(slot, None)
        if always is not None:
            self._profiles[always].remove(slot)
            if not self._profiles[always]:
                del self._profiles[always]
                self.prefilter.disown(self._needs.pop(always))
            self._shown = None
            self._disown(always)

    def _disown(self, number: int) -> None:
        self._owners[number] -= 1
        if not self._owners[number]:
            del self._owners[number], self._numbers[self._rests.pop(number).expression]
            self._asked = None

    def parts(self, slots: I32s) -> dict[int, Split]:
        """The parts of those slots that have some here, by place, as `put` and `show` take them, without constant parts."""
        with self._lock:
            found = {}
            for place, (slot, number) in enumerate(zip(slots.tolist(), self.numbers(slots).tolist(), strict=True)):
                always = self._always_of.get(slot, NO_REST)
                if number != NO_REST or always != NO_REST:
                    found[place] = Split(TRUE, self._expression(number), self._expression(always))
            return found

    def _expression(self, number: int) -> Expression | None:
        return None if number == NO_REST else self._rests[number].expression

    def expressions(self, numbers: I32s) -> set[Expression]:
        """The rests with some numbers."""
        with self._lock:
            return {self._rests[number].expression for number in set(numbers.tolist())}

    def attributes(self) -> frozenset[str]:
        """The attributes that some rest asks about."""
        asked = self._asked
        if asked is None:
            with self._lock:
                asked = self._asked = frozenset(name for rest in self._rests.values() for name in rest.attributes)
        return asked

    def earlier(self) -> Collection[str]:
        """The attributes of earlier events that some rest asks about."""
        with self._lock:
            return {name for rest in self._rests.values() for name in rest.earlier}

    def joins(self) -> int:
        """The number of distinct joins."""
        with self._lock:
            return len({node for rest in self._rests.values() for node in rest.expression.walk() if node.is_join})

    # -- deciding

    def always(self) -> tuple[Always, ...]:
        """What is to be decided for every event."""
        shown = self._shown
        if shown is None:
            with self._lock:
                profiles = {number: sorted(slots - self.gone) for number, slots in self._profiles.items()}
                shown = self._shown = tuple(
                    Always(self._rests[number].expression, np.array(slots, np.int32), self._needs[number])
                    for number, slots in profiles.items()
                    if slots
                )
        return shown

    def screened(self, slots: I32s, always: Sequence[Always], moment: Moment) -> tuple[Bools | None, Sequence[Always]]:
        """Which slots the pre-filter does not skip, and what it leaves of `always`. None if it skips no slot."""
        needs = self.prefilter.needs_of(slots)
        if always:
            needs = np.concatenate([needs, self._needs_of(always)])
        passing = self.prefilter.passing(needs, *moment)
        if passing is None:
            return None, always
        kept, of_always = passing[: len(slots)], passing[len(slots) :]
        return None if kept.all() else kept, tuple(compress(always, of_always))

    def skipped(self, retained: Retained) -> int:
        """How many slots the pre-filter skips at present: those of which no part has what it needs."""
        with self._lock:
            slots, always = np.array(sorted(self._number_of), np.int32), self.always()
            needs = self.prefilter.needs_of(slots)
            is_never = self.numbers(slots) == self._numbers.get(FALSE, NO_REST)
            lack = set(slots[is_never | ~self.prefilter.present(needs, retained)].tolist())
            found = lack - self._always_of.keys() - set(slots[is_never].tolist())
            for each, has in zip(always, self.prefilter.present(self._needs_of(always), retained), strict=True):
                if not has:
                    found |= lack.intersection(each.slots.tolist())
            return len(found)

    def _needs_of(self, always: Sequence[Always]) -> I32s:
        known = self._needs_of_shown
        if known[0] is not always:
            known = self._needs_of_shown = always, np.array([each.need for each in always], np.int32)
        return known[1]

    def numbers(self, slots: I32s) -> I32s:
        """The number of the rest of each slot, or NO_REST."""
        try:
            return self._of_slot.view().take(slots)
        except IndexError:  # Slots of subscriptions that came alone, without joins.
            with self._lock:
                self._grow(int(slots.max()) + 1)
            return self._of_slot.view().take(slots)

    def with_rest(self, slots: I32s) -> tuple[I64s, I32s]:
        """The places of those slots that have a rest, and the numbers of their rests."""
        places = marked_places(slots, self.marks)
        return places, self.numbers(slots[places])

    def _grow(self, slots: int) -> None:
        self._of_slot.grow(max(slots - len(self._of_slot), 0), fill=NO_REST)

    def satisfied(self, slots: I32s, event: FlatEvent, events: Events, always: Iterable[Always] = ()) -> I32s:
        """The slots that an event satisfies, among slots whose constant part it satisfies, and among those of `always`."""
        places, joins = marked_places(slots, self.marks), EventJoins(event, events)
        gone = places[self.failing(slots[places].tolist(), joins)]
        more = [each.slots for each in always if joins.truth(each.expression) is True]
        self.note(joins)
        return joined_slots(slots, gone, more)

    def failing(self, slots: Sequence[int], joins: EventJoins, kept: Bools | None = None) -> list[int]:
        """The places of the slots whose rest does not hold, or which are not `kept`."""
        if len(slots) == 1 and kept is None:
            rest = self._rests.get(self._number_of.get(slots[0], NO_REST))
            return [] if rest is None or joins.truth(rest.expression) is True else [0]
        if len(slots) > _FEW_SLOTS:
            numbers: list[int] = self.numbers(np.array(slots, np.int32)).tolist()
        else:
            numbers = [self._number_of.get(slot, NO_REST) for slot in slots]
        asked = set(numbers if kept is None else compress(numbers, kept))
        holds = {number: number == NO_REST or joins.truth(self._rests[number].expression) is True for number in asked}
        return [
            place
            for place, number in enumerate(numbers)
            if not holds.get(number) or (kept is not None and not kept[place])
        ]

    def asked_by(self, slots: Sequence[int]) -> frozenset[str]:
        """The attributes that the rests of some slots ask about, and perhaps others."""
        number = self._number_of.get(slots[0], NO_REST) if len(slots) == 1 else NO_REST
        return self.attributes() if number == NO_REST else self._rests[number].attributes

    def note(self, joins: EventJoins) -> None:
        """Count the joins that were decided for an event."""
        self.decided += len(joins.truths)
        self.held += list(joins.truths.values()).count(True)

    def need(self, slot: int) -> list[int]:
        """The numbers of the needs of a slot: of its rest if there is one, and of what is decided for every event."""
        with self._lock:
            found = []
            if slot in self._number_of and self._expression(int(self._of_slot.view()[slot])) != FALSE:
                found.append(int(self.prefilter.needs_of(np.array([slot], np.int32))[0]))
            if slot in self._always_of:
                found.append(self._needs[self._always_of[slot]])
            return found

    def rest(self, number: int) -> Expression:
        """The rest with a number."""
        return self._rests[number].expression

    def holds(self, numbers: list[int], joins: EventJoins) -> list[bool]:
        """Whether the rests with these numbers hold."""
        if len(numbers) == 1:
            return [joins.truth(self._rests[numbers[0]].expression) is True]
        truths = {number: joins.truth(self._rests[number].expression) is True for number in set(numbers)}
        return [truths[number] for number in numbers]
