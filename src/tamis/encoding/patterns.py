"""Which of many substrings or regular expressions a string contains, found in few passes over it.

Patterns are numbered 0, 1, 2, ... in the order of their arrival; `hits` gives the numbers found. The automata are made when
they are first needed after a change, in *tiers*: new patterns get one of their own, which swallows its neighbours while
they are not much larger. So adding a pattern does not mean building everything anew, and there are few tiers: one, when
all patterns come before the first search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container
from typing import Any

# A tier is built anew together with new ones while it has at most so many times their patterns.
_GROWTH = 4
# RE2 reports no hit at all when it runs out of memory, so its sets are kept far from that.
_LARGEST_SET = 128
_SET_MEMORY = 512 << 20


class Patterns(ABC):
    """Patterns by number, and the tiers that search for them."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._next = 0
        self._pending: dict[str, int] = {}
        self._tiers: list[tuple[dict[str, int], Any]] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, pattern: str) -> int:
        """The number of a pattern, a new one if it is new."""
        number = self._numbers.get(pattern)
        if number is None:
            number = self._numbers[pattern] = self._pending[pattern] = self._next
            self._next += 1
        return number

    def keep(self, numbers: Container[int]) -> None:
        """Forget all patterns but those of these numbers, which they keep."""
        self._numbers = {pattern: number for pattern, number in self._numbers.items() if number in numbers}
        self._pending = dict(self._numbers)
        self._tiers = []

    def hits(self, text: str) -> list[int]:
        """The numbers of the patterns that a text contains, ascending."""
        if self._pending:
            self._build()
        return sorted({number for members, built in self._tiers for number in self._search(members, built, text)})

    def _build(self) -> None:
        members, self._pending = self._pending, {}
        while self._tiers and len(self._tiers[-1][0]) <= _GROWTH * len(members):
            members = self._tiers.pop()[0] | members
        self._tiers.append((members, self._compiled(members)))

    @abstractmethod
    def _compiled(self, members: dict[str, int]) -> Any:
        """What searches for some patterns at once."""

    @abstractmethod
    def _search(self, members: dict[str, int], built: Any, text: str) -> list[int]:
        """The numbers of the members that a text contains; one may be named several times."""


class Needles(Patterns):
    """Substrings, found by an Aho-Corasick pass."""

    def _compiled(self, members: dict[str, int]) -> Any:
        import ahocorasick

        automaton = ahocorasick.Automaton()
        for needle, number in members.items():
            automaton.add_word(needle, number)
        automaton.make_automaton()
        return automaton

    def _search(self, members: dict[str, int], built: Any, text: str) -> list[int]:
        return [number for _, number in built.iter(text)]


class Regexes(Patterns):
    """Regular expressions, found by passes of RE2 sets."""

    def _compiled(self, members: dict[str, int]) -> Any:
        import re2

        options = re2.Options()
        options.log_errors = False
        options.max_mem = _SET_MEMORY
        patterns, numbers = list(members), list(members.values())
        built = []
        for start in range(0, len(patterns), _LARGEST_SET):
            regexes = re2.Set.SearchSet(options)
            for pattern in patterns[start : start + _LARGEST_SET]:
                regexes.Add(pattern)
            regexes.Compile()
            built.append((regexes, numbers[start : start + _LARGEST_SET]))
        return built

    def _search(self, members: dict[str, int], built: Any, text: str) -> list[int]:
        data = text.encode()
        return [numbers[hit] for regexes, numbers in built for hit in regexes.Match(data) or ()]
