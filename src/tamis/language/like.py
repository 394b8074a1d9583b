"""LIKE patterns, read once into what they ask for.

A pattern is a sequence of texts and wildcards. Its *shape* says what can serve it:

    abc         EXACT       equality                 %abc%    CONTAINS    a search for a substring
    abc%        PREFIX      an interval of strings   a%b_c    GENERAL     a regular expression
    %abc        SUFFIX      the same, read backwards     %    ANYTHING    the value is a string
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tamis.errors import LiteralError, shortened
from tamis.language.values import is_well_formed

ANY_RUN = "%"
ANY_ONE = "_"
_KEPT = 256
"""Symbols of a text whose places are kept as bits, while a pattern is read."""


class LikeShape(StrEnum):
    EXACT = "exact"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTAINS = "contains"
    ANYTHING = "anything"
    GENERAL = "general"


@dataclass(frozen=True, slots=True)
class Wildcard:
    """``%`` (any run of characters, also none) or ``_`` (exactly one character)."""

    symbol: str


_ANY = Wildcard(ANY_RUN)


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A LIKE pattern as parts: literal strings and wildcards, no two literals or two ``%`` in a row.

    `literal` is all its literal text: of a pattern that is not general, the one run it asks for.
    """

    parts: tuple[str | Wildcard, ...]
    shape: LikeShape
    literal: str

    @staticmethod
    @functools.lru_cache(maxsize=4096)
    def read(pattern: str, escape: str | None = None, fold: bool = False) -> LikePattern:
        """Read a pattern; with `fold`, literals go through ``str.lower()``, as ILIKE asks.

        Raises
        ------
        LiteralError
            When the escape is not one character, or stands before anything but ``%``, ``_`` or itself.
        """
        if escape is not None:
            check_character(escape)
        parts: list[str | Wildcard] = []
        if escape is None or escape not in pattern:
            middle = pattern.strip(ANY_RUN)
            if ANY_ONE not in middle and ANY_RUN not in middle:  # as nearly all patterns
                if pattern[:1] == ANY_RUN:
                    parts.append(_ANY)
                if middle:
                    parts.append(middle.lower() if fold else middle)
                    if pattern[-1] == ANY_RUN:
                        parts.append(_ANY)
                return LikePattern._of(parts)
        run: list[str] = []
        symbols = iter(re.split(f"([%_{re.escape(escape or '')}])", pattern))
        at = 0
        for text in symbols:
            run.append(text)
            at, symbol = at + len(text), next(symbols, "")
            if symbol == escape:
                between, symbol = next(symbols), next(symbols, "")
                if between or not symbol:
                    raise LiteralError(
                        f"in LIKE {shortened(pattern)} the escape {shortened(escape)} must come before %, _ or itself "
                        f"(character {at + 1})"
                    )
                run.append(symbol)
                at += 2
                continue
            if any(run):
                literal = "".join(run)
                parts.append(literal.lower() if fold else literal)
            run.clear()
            if symbol == ANY_ONE or (symbol == ANY_RUN and (not parts or parts[-1] != _ANY)):
                parts.append(Wildcard(symbol))
            at += 1
        return LikePattern._of(parts)

    @staticmethod
    def _of(parts: list[str | Wildcard]) -> LikePattern:
        return LikePattern(tuple(parts), _shape(parts), "".join(part for part in parts if isinstance(part, str)))

    def matches(self, text: str) -> bool:
        """Whether the pattern matches the whole text."""
        return self._takes(text)

    def covers(self, other: LikePattern) -> bool:
        """Whether every text that the other pattern matches is matched by this one. May be False where that is so."""
        # Each run of this pattern must be in a run of the other one: a quick test that refuses most.
        runs = all(part in other.literal for part in self.parts if isinstance(part, str))
        return runs and self._takes(other.tokens())

    def tokens(self) -> list[str | Wildcard]:
        """The characters and wildcards, one by one."""
        tokens: list[str | Wildcard] = []
        for part in self.parts:
            tokens.extend(part) if isinstance(part, str) else tokens.append(part)
        return tokens

    def _takes(self, symbols: Sequence[str | Wildcard]) -> bool:
        """Whether the pattern takes all symbols. A wildcard among the symbols is taken by the same wildcard or by ``%``.

        The tokens are read once. Bit n of `ends` says whether the tokens so far take exactly the first n symbols. So a long
        pattern and a long text take no more than their lengths times each other in bits, also if ``%`` could end at many places.
        """
        places: dict[str | Wildcard, list[int]] = {}
        for place, symbol in enumerate(symbols):
            places.setdefault(symbol, []).append(place)

        @functools.lru_cache(_KEPT)
        def bits(token: str | Wildcard) -> int:
            return _bits(places.get(token, []))

        every = (1 << len(symbols)) - 1
        single = every & ~bits(Wildcard(ANY_RUN))
        ends = 1
        for token in self.tokens():
            if token == Wildcard(ANY_RUN):
                lowest = ends & -ends
                ends = ((every << 1) | 1) & -lowest
            else:
                ends = (ends & (single if token == Wildcard(ANY_ONE) else bits(token))) << 1
            if not ends:
                return False
        return bool(ends >> len(symbols))

    def to_regex(self) -> str:
        """The same pattern for RE2, anchored at both ends."""
        import re2

        pieces = []
        for part in self.parts:
            if isinstance(part, str):
                pieces.append(re2.escape(part))
            else:
                pieces.append(".*" if part.symbol == ANY_RUN else ".")
        return r"(?s)\A" + "".join(pieces) + r"\z"


def _bits(places: Sequence[int]) -> int:
    """The number whose bits are set at these places, which ascend."""
    found = bytearray(places[-1] // 8 + 1 if places else 0)
    for place in places:
        found[place // 8] |= 1 << place % 8
    return int.from_bytes(found, "little")


def check_character(escape: object) -> None:
    """An escape is one character."""
    if not isinstance(escape, str) or len(escape) != 1 or not is_well_formed(escape):
        raise LiteralError(f"ESCAPE takes one character, not {shortened(escape)}")


def _shape(parts: list[str | Wildcard]) -> LikeShape:
    match parts:
        case [] | [str()]:
            return LikeShape.EXACT
        case [Wildcard("%")]:
            return LikeShape.ANYTHING
        case [str(), Wildcard("%")]:
            return LikeShape.PREFIX
        case [Wildcard("%"), str()]:
            return LikeShape.SUFFIX
        case [Wildcard("%"), str(), Wildcard("%")]:
            return LikeShape.CONTAINS
    return LikeShape.GENERAL
