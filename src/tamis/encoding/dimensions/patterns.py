"""Which of many substrings or regular expressions strings contain, found in few passes over them.

Patterns are numbered 0, 1, 2, ... in the order in which they are added; `hits` and `keys` give the numbers found. *Tiers* search
for them. The first search after a change makes a tier of the new patterns, which takes in its neighbours while they are not much
larger. So adding a pattern does not build everything again, and there are few tiers: one, if all patterns come before the first
search.

One thread at a time may add or forget patterns, while nobody searches. Any number of threads may search. A search that finds
patterns without a tier makes one and then replaces all tiers at once. Two such searches at the same time do the work twice.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Container

import numpy as np

from tamis.encoding.dimensions.automaton import build, search, search_one
from tamis.encoding.dimensions.regex_literals import needed, needed_in_any_case
from tamis.encoding.dimensions.texts import Texts
from tamis.kernels.kernel import kernel
from tamis.kernels.numbers import I64s
from tamis.kernels.ranges import grouped

Pairs = tuple[I64s, I64s]
"""Places of strings in their column and numbers of patterns in them, each pair once, in any order."""

# A tier is built again together with new patterns if it has at most this many times as many patterns as they are.
_GROWTH = 4
# The most patterns in a set of RE2, and its memory. RE2 reports no hit at all when it runs out of memory.
_LARGEST_SET = 128
_SET_MEMORY = 512 << 20


class Tier(ABC):
    """Some patterns by number, and what searches for them."""

    def __init__(self, members: dict[str, int]) -> None:
        self.members = members

    @abstractmethod
    def hits(self, text: str) -> list[int]:
        """The numbers of the members that a string contains, ascending."""

    @abstractmethod
    def search(self, texts: Texts) -> Pairs:
        """The same for every string of a column."""


class Patterns(ABC):
    """Patterns by number, and the tiers that search for them."""

    few: int
    """Most strings that are searched one by one, since a pass over a column takes some time before it starts."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._next = 0
        # The tiers, and the patterns in none of them: one reference, so that no reader sees the one without the other.
        self._state: tuple[tuple[Tier, ...], dict[str, int]] = ((), {})
        self.changed: Callable[[], None] = lambda: None
        """Called when keys of strings may have changed."""

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, pattern: object) -> bool:
        return pattern in self._numbers

    def number(self, pattern: str) -> int:
        """The number of a pattern that was added."""
        return self._numbers[pattern]

    def add(self, pattern: str) -> int:
        """The number of a pattern, a new one if it is new."""
        number = self._numbers.get(pattern)
        if number is None:
            # In this order no other pattern gets the number, even if this is interrupted.
            number = self._next
            self._next += 1
            _, waiting = self._state
            waiting[pattern] = number
            self._numbers[pattern] = number
            self.changed()
        return number

    def state(self) -> tuple[list[str], list[int]]:
        """The patterns; their numbers, and behind these the next free number: what `restore` takes."""
        return list(self._numbers), [*self._numbers.values(), self._next]

    def restore(self, patterns: list[str], numbers: list[int]) -> None:
        """Take over patterns with the numbers that they had."""
        *given, self._next = numbers
        self._numbers = dict(zip(patterns, given, strict=True))
        self._state = ((), dict(self._numbers))
        self.changed()

    def pattern(self, number: int) -> str:
        """The pattern that has a number."""
        return next(pattern for pattern, known in self._numbers.items() if known == number)

    def keeping(self, numbers: Container[int]) -> Callable[[], None]:
        """A function that forgets all patterns but those with these numbers. Numbers stay as they are."""
        kept = {pattern: number for pattern, number in self._numbers.items() if number in numbers}
        return lambda: self.restore(list(kept), [*kept.values(), self._next])

    def hits(self, text: str) -> list[int]:
        """The numbers of the patterns that a string contains, ascending."""
        tiers = self.tiers()
        if len(tiers) == 1:
            return tiers[0].hits(text)
        return sorted(itertools.chain.from_iterable(tier.hits(text) for tier in tiers))

    def keys(self, texts: Texts, lead: int) -> tuple[I64s, I64s]:
        """For each string `lead` and the numbers of the patterns in it, ascending; and how many keys each string has."""
        if len(texts) <= self.few:
            found = [[lead, *self.hits(text)] for text in texts.to_pylist()]
            counts = np.array([len(numbers) for numbers in found], np.int64)
            return np.array(list(itertools.chain.from_iterable(found)), np.int64), counts
        pairs = [tier.search(texts) for tier in self.tiers()]
        places = np.concatenate([places for places, _ in pairs]) if pairs else np.zeros(0, np.int64)
        numbers = np.concatenate([numbers for _, numbers in pairs]) if pairs else np.zeros(0, np.int64)
        order = grouped(numbers)
        counts = np.bincount(places, minlength=len(texts)) + 1
        keys = np.full(len(places) + len(texts), lead, np.int64)
        _place(places[order], numbers[order], np.cumsum(counts) - counts + 1, keys)
        return keys, counts

    def tiers(self) -> tuple[Tier, ...]:
        """The tiers that search for all patterns. Patterns without a tier get one first."""
        tiers, members = self._state
        if members:
            while tiers and len(tiers[-1].members) <= _GROWTH * len(members):
                members = tiers[-1].members | members
                tiers = tiers[:-1]
            tiers = (*tiers, self._tier(members))
            self._state = (tiers, {})
        return tiers

    @abstractmethod
    def _tier(self, members: dict[str, int]) -> Tier:
        """A tier of some patterns."""


class Needles(Patterns):
    """Substrings."""

    few = 8

    def _tier(self, members: dict[str, int]) -> Tier:
        return _NeedleTier(members)


class _NeedleTier(Tier):
    """Substrings in an automaton."""

    def __init__(self, members: dict[str, int]) -> None:
        super().__init__(members)
        self._automaton = build(list(members), list(members.values()))

    def hits(self, text: str) -> list[int]:
        return search_one(self._automaton, text)

    def search(self, texts: Texts) -> Pairs:
        return search(self._automaton, texts)


class Regexes(Patterns):
    """Regular expressions. `one_case`: the strings to search are all in lower case, or all in upper case."""

    few = 32

    def __init__(self, *, one_case: bool = False, largest_set: int = _LARGEST_SET) -> None:
        super().__init__()
        self._one_case, self._largest_set = one_case, largest_set

    def _tier(self, members: dict[str, int]) -> Tier:
        return _RegexTier(members, self._one_case, self._largest_set)


_Match = tuple[Callable[[bytes | memoryview], list[int] | None], list[int]]
"""A function from UTF-8 to the places of the expressions that match, and place -> number of the expression."""


class _RegexTier(Tier):
    """Regular expressions in RE2 sets. Each set is asked about few strings.

    Expressions with the same literals (see `regex_literals`) form a set. It is asked only about strings that contain one of the
    literals. The other expressions form sets by the length that a string must have. If all members are few, a single string is
    given to one set of all: that takes 2 us, as long as an automaton takes to find the literals.
    """

    def __init__(self, members: dict[str, int], one_case: bool, largest_set: int) -> None:
        super().__init__(members)
        self._all = _RegexSet(members, largest_set) if len(members) <= largest_set else None
        by_literals: dict[bool, dict[frozenset[str], dict[str, int]]] = {False: {}, True: {}}
        by_length: dict[int, list[tuple[int, str]]] = {}
        for pattern, number in members.items():
            need = needed(pattern) if one_case else needed_in_any_case(pattern)
            if need.literals:
                by_literals[need.lower].setdefault(need.literals, {})[pattern] = number
            else:
                by_length.setdefault(need.shortest.bit_length(), []).append((need.shortest, pattern))
        self._searched = [(lower, _LiteralSearch(sets, largest_set)) for lower, sets in by_literals.items() if sets]
        self._without_literals = [
            (min(part)[0], _RegexSet({pattern: members[pattern] for _, pattern in part}, largest_set))
            for part in by_length.values()
        ]

    def hits(self, text: str) -> list[int]:
        data = text.encode()
        if self._all is not None:
            return sorted(self._all.hits(data))
        asked = [regexes for shortest, regexes in self._without_literals if len(data) >= shortest]
        for lower, literals in self._searched:
            asked += literals.passed(text.lower() if lower else text)
        return sorted(itertools.chain.from_iterable(regexes.hits(data) for regexes in asked))

    def search(self, texts: Texts) -> Pairs:
        offsets, data = texts.buffers
        lengths, ends, letters = np.diff(offsets), offsets.tolist(), data.data
        asked = [(regexes, np.flatnonzero(lengths >= shortest)) for shortest, regexes in self._without_literals]
        for lower, literals in self._searched:
            asked += literals.passed_by(texts.lowered if lower else texts)
        found: list[tuple[int, int]] = []
        for regexes, places in asked:
            for match, numbers in regexes.compiled():
                for place in places.tolist():
                    hits = match(letters[ends[place] : ends[place + 1]])
                    if hits:
                        found += [(place, numbers[hit]) for hit in hits]
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]


class _LiteralSearch:
    """Lets strings through to the sets of expressions of which they contain a literal."""

    def __init__(self, sets: dict[frozenset[str], dict[str, int]], largest_set: int) -> None:
        self._sets = [_RegexSet(members, largest_set) for members in sets.values()]
        behind: dict[str, list[int]] = {}
        for number, literals in enumerate(sets):
            for literal in literals:
                behind.setdefault(literal, []).append(number)
        self._behind = list(behind.values())  # the sets behind each literal
        self._automaton = build(list(behind), range(len(behind)))

    def passed(self, text: str) -> list[_RegexSet]:
        """The sets to be asked about a string."""
        literals = search_one(self._automaton, text)
        return [self._sets[number] for number in {number for literal in literals for number in self._behind[literal]}]

    def passed_by(self, texts: Texts) -> list[tuple[_RegexSet, I64s]]:
        """The sets to be asked about some strings of a column, and the places of these strings."""
        places, literals = search(self._automaton, texts)
        order = grouped(literals)
        places, literals = places[order], literals[order]
        parts: dict[int, list[I64s]] = {}
        starts = np.flatnonzero(np.diff(literals, prepend=-1, append=-1)).tolist()
        for start, end in itertools.pairwise(starts):
            for number in self._behind[literals[start]]:
                parts.setdefault(number, []).append(places[start:end])
        return [(self._sets[number], np.unique(np.concatenate(part))) for number, part in parts.items()]


class _RegexSet:
    """Regular expressions that are searched for at once."""

    def __init__(self, members: dict[str, int], largest: int) -> None:
        self._members = members
        self._largest = largest
        self._compiled: list[_Match] | None = None

    def hits(self, data: bytes) -> list[int]:
        """The numbers of the expressions that match somewhere in UTF-8."""
        return [numbers[hit] for match, numbers in self.compiled() for hit in match(data) or ()]

    def compiled(self) -> list[_Match]:
        """The compiled sets, made at the first call."""
        if self._compiled is None:
            patterns = list(self._members)
            parts = [patterns[start : start + self._largest] for start in range(0, len(patterns), self._largest)]
            self._compiled = [(regex_matcher(part), [self._members[pattern] for pattern in part]) for part in parts]
        return self._compiled


def regex_matcher(patterns: list[str]) -> Callable[[bytes | memoryview], list[int] | None]:
    """A function that gives the places in the list of the expressions that match."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _SET_MEMORY
    regexes = re2.Set.SearchSet(options)
    for pattern in patterns:
        regexes.Add(pattern)
    regexes.Compile()
    match: Callable[[bytes | memoryview], list[int] | None] = regexes.Match
    return match


@kernel
def _place(places: I64s, numbers: I64s, free: I64s, keys: I64s) -> None:
    """Write the numbers of each string one after another, from its `free` place on."""
    for i in range(len(places)):
        keys[free[places[i]]] = numbers[i]
        free[places[i]] += 1
