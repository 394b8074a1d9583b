"""The search for wider subscriptions: a matcher finds candidates, and each is verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tamis.kernels.numbers import I64s
from tamis.language.implication import Clause, Form, Implications
from tamis.matcher.covering.corners import CornerEvent, Corners, add_literals
from tamis.matcher.covering.widths import Widths
from tamis.matcher.matcher import Matcher

_AT_ONCE = 20_000
"""Forms that are added, and events that are matched, at a time. It bounds the memory of a step."""

_ROUNDS = (8, 128)
"""Candidates in each round, in addition to the pairs asked for. A later round has only the forms that need more."""


class Search:
    """Searches among distinct forms, which are known by their numbers.

    Attributes
    ----------
    wider : dict
        For each form the forms that it implies, widest first, at most `most` of them.
    same : list of pairs
        Forms that imply each other, though they are written differently.
    unfinished : list
        Forms with more candidates than the last round looks at.
    """

    def __init__(self, forms: Sequence[Form], implications: Implications, most: int) -> None:
        self._forms = forms
        self._implications = implications
        self._most = most
        self._widths = Widths(forms)
        self._corners = Corners(implications)
        self.wider: dict[int, list[int]] = {}
        self.same: list[tuple[int, int]] = []
        self.unfinished: list[int] = []

    def run(self) -> None:
        matcher: Matcher[int] = Matcher()
        for numbers in _pieces(range(len(self._forms))):
            forms = [self._forms[number] for number in numbers]
            expressions = map(self._corners.expression, forms)
            matcher.add_many(numbers, expressions, map(self._widths.of, forms))
        patterns: Matcher[int] = Matcher()
        literals = self._corners.patterns()
        patterns.add_many(literals.keys(), literals.values())
        left: Sequence[int] = range(len(self._forms))
        for more in _ROUNDS:
            left = [number for numbers in _pieces(left) for number in self._searched(numbers, matcher, patterns, more)]
        self.unfinished = list(left)

    def _searched(
        self, numbers: Sequence[int], matcher: Matcher[int], patterns: Matcher[int], more: int
    ) -> Iterator[int]:
        """Search for some forms; yields the forms that have more candidates."""
        # One clause is enough, since a wider form covers each. A narrow clause has few candidates.
        clauses = [self._narrowest(self._forms[number]) for number in numbers]
        events = self._events(clauses, patterns)
        limit = self._most + more
        for number, found in zip(numbers, _by_event(matcher.match_batch(events, k=limit), len(events)), strict=True):
            self._verify(number, found)
            if len(found) == limit and len(self.wider.get(number, ())) < self._most:
                yield number

    def _narrowest(self, form: Form) -> Clause:
        return form[0] if len(form) == 1 else min(form, key=self._widths.of_clause)

    def _events(self, clauses: list[Clause], patterns: Matcher[int]) -> list[CornerEvent]:
        events = list(map(self._corners.event, clauses))
        if len(patterns):
            strings = list(map(self._corners.strings, clauses))
            for event, numbers in zip(events, _by_event(patterns.match_batch(strings), len(events)), strict=True):
                if len(numbers):
                    add_literals(event, numbers.tolist())
        return events

    def _verify(self, number: int, candidates: I64s) -> None:
        """Keep the candidates that a form implies. They come widest first."""
        form = self._forms[number]
        wider: list[int] = []
        for candidate in candidates.tolist():
            other = self._forms[candidate]
            if candidate == number or not self._implications.implies(form, other):
                continue
            if self._implications.implies(other, form):
                self.same.append((number, candidate))
                continue
            wider.append(candidate)
            if len(wider) == self._most:
                break
        if wider:
            self.wider[number] = wider


def _pieces(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    return (numbers[start : start + _AT_ONCE] for start in range(0, len(numbers), _AT_ONCE))


def _by_event(table: pa.Table, events: int) -> list[I64s]:
    """The matches of each event, in the order of the table."""
    event = table.column("event").to_numpy()
    found = table.column("subscription").to_numpy()
    order = np.argsort(event, kind="stable")
    return np.split(found[order], np.searchsorted(event[order], np.arange(1, events)))
