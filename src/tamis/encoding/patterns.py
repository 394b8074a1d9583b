"""Which of many substrings or regular expressions a string contains, found in one pass over it.

Both classes number their patterns 0, 1, 2, ... in the order of their arrival; `hits` gives the numbers found. The
automaton is made when it is first needed after a change.
"""

from __future__ import annotations

from typing import Any

# RE2 builds one automaton for a whole set. Smaller sets keep the cost of adding a pattern bounded (only the last set is
# compiled again) and stay far from the memory limit, at which RE2 would report no hit at all.
_SET_SIZE = 128
_SET_MEMORY = 512 << 20


class Needles:
    """Substrings, found by one Aho-Corasick pass."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._automaton: Any = None

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, needle: str) -> int:
        number = self._numbers.get(needle)
        if number is None:
            number = self._numbers[needle] = len(self._numbers)
            self._automaton = None
        return number

    def hits(self, text: str) -> list[int]:
        if self._automaton is None:
            self._automaton = self._build()
        return sorted({number for _, number in self._automaton.iter(text)})

    def _build(self) -> Any:
        import ahocorasick

        automaton = ahocorasick.Automaton()
        for needle, number in self._numbers.items():
            automaton.add_word(needle, number)
        automaton.make_automaton()
        return automaton


class Regexes:
    """Regular expressions, found by one pass of an RE2 set."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._sets: list[Any] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, pattern: str) -> int:
        number = self._numbers.get(pattern)
        if number is None:
            number = self._numbers[pattern] = len(self._numbers)
            # The set that the pattern falls in, if it is there, is compiled anew.
            del self._sets[number // _SET_SIZE :]
        return number

    def hits(self, text: str) -> list[int]:
        if len(self._sets) * _SET_SIZE < len(self._numbers):
            self._build()
        data = text.encode()
        found: list[int] = []
        for number, patterns in enumerate(self._sets):
            hits = patterns.Match(data)
            if hits:
                found += [number * _SET_SIZE + hit for hit in sorted(hits)]
        return found

    def _build(self) -> None:
        import re2

        options = re2.Options()
        options.log_errors = False
        options.max_mem = _SET_MEMORY
        patterns = list(self._numbers)
        for start in range(len(self._sets) * _SET_SIZE, len(patterns), _SET_SIZE):
            built = re2.Set.SearchSet(options)
            for pattern in patterns[start : start + _SET_SIZE]:
                built.Add(pattern)
            built.Compile()
            self._sets.append(built)
