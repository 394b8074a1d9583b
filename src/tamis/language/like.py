"""LIKE patterns, read once into what they ask for.

A pattern is a sequence of texts and wildcards. Its *shape* says what can serve it:

    abc         EXACT       equality                 %abc%    CONTAINS    a search for a substring
    abc%        PREFIX      an interval of strings   a%b_c    GENERAL     a regular expression
    %abc        SUFFIX      the same, read backwards     %    ANYTHING    the value is a string
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tamis.errors import LiteralError, shortened
from tamis.language.values import is_well_formed

ANY_RUN = "%"
ANY_ONE = "_"


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
        run: list[str] = []

        def close_run() -> None:
            if run:
                text = "".join(run)
                parts.append(text.lower() if fold else text)
                run.clear()

        position = 0
        while position < len(pattern):
            symbol = pattern[position]
            if symbol == escape:
                position += 1
                if position == len(pattern) or pattern[position] not in (ANY_RUN, ANY_ONE, escape):
                    raise LiteralError(
                        f"in LIKE {shortened(pattern)} the escape {shortened(escape)} must come before %, _ or itself "
                        f"(character {position})"
                    )
                run.append(pattern[position])
            elif symbol == ANY_RUN:
                close_run()
                if not parts or parts[-1] != Wildcard(ANY_RUN):
                    parts.append(Wildcard(ANY_RUN))
            elif symbol == ANY_ONE:
                close_run()
                parts.append(Wildcard(ANY_ONE))
            else:
                run.append(symbol)
            position += 1
        close_run()
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
        """Whether the pattern takes all symbols: greedy with one step back, which is enough for ``%``.

        A wildcard among the symbols is taken by the same wildcard or by ``%``.
        """
        # `star` remembers the last % and `resume` where its run ends.
        tokens = self.tokens()
        at = position = 0
        star, resume = -1, 0
        while position < len(symbols):
            token = tokens[at] if at < len(tokens) else None
            symbol = symbols[position]
            if token == Wildcard(ANY_RUN):
                star, resume = at, position
                at += 1
            elif token is not None and (
                token == symbol or (token == Wildcard(ANY_ONE) and symbol != Wildcard(ANY_RUN))
            ):
                at += 1
                position += 1
            elif star >= 0:
                resume += 1
                at, position = star + 1, resume
            else:
                return False
        return all(token == Wildcard(ANY_RUN) for token in tokens[at:])

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
