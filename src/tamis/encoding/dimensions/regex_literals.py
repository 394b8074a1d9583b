r"""What a regular expression cannot match without: strings of which one is in every text that it matches.

    \A.*\\cmd\.exe.*\z          \cmd.exe
    (foo|bar+)\d                foo, bar
    (?i)https?://               http://, https://, ſ        in the lower case of the text
    [0-9]{8,}                   nothing, but eight characters

Tamis searches for such a *literal* first, and asks RE2 only about the texts that contain it. So a literal must never be wrong,
and may always be missing: an expression that is not understood has none. The syntax is RE2's, of expressions that RE2 has
accepted.

Case. A literal holds for the text as it is, or for its ``str.lower()``. Then only ASCII counts, because outside of ASCII folding
and lower case differ. When RE2 ignores case, it takes two other characters for ASCII letters: K (the sign for kelvin, whose lower
case is k) and ſ (the long s, whose lower case is itself). A text with one of these is always tried.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LONG_S = "ſ"
# The length of the shortest literal that is looked for. Shorter ones are in too many texts.
_SHORTEST = 3
_MOST_LITERALS = 16
_LONGEST = 256
_LARGEST_CLASS = 8
_DEEPEST = 50

_REPETITION = re.compile(r"(?:[*+?]|\{([0-9]+)(,([0-9]*))?\})\??")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]*))?([:)])")
_NAMED = re.compile(r"\(\?P?<\w+>")
_HEX = re.compile(r"x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_PROPERTY = re.compile(r"[pP](?:\{[^}]*\}|[A-Za-z])")
_POSIX = re.compile(r"\[:\^?\w+:\]")
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Needed(NamedTuple):
    """What a text must have to match: one of the literals, if there are any, and `shortest` characters or more."""

    literals: frozenset[str]
    lower: bool
    """Whether the literals are in the lower case of the text."""
    shortest: int


def needed(pattern: str, *, lower: bool = False, shortest: int = _SHORTEST) -> Needed:
    r"""What an expression asks of a text, or of its lower case. All literals have at least `shortest` characters.

    >>> sorted(needed(r"\A.*(net|tel)work\d*\.exe\z").literals)
    ['network', 'telwork']
    >>> needed(r"(?i)\bRun(dll)?32\b", lower=True).shortest
    5
    """
    parser = _Parser(pattern, lower)
    try:
        part = parser.whole()
    except _NotUnderstoodError:
        part = _ANYTHING
    literals = part.some or frozenset()
    if literals and min(map(len, literals)) < shortest:
        literals = frozenset()
    return Needed(literals | {_LONG_S} if literals and parser.met_s else literals, lower, part.shortest)


def needed_in_any_case(pattern: str, *, shortest: int = _SHORTEST) -> Needed:
    """What an expression asks of a text or of its lower case, whichever has the longer literals.

    Lower case, if they are as long: most expressions that ignore case leave no choice, and one pass then serves all.
    """

    def length(need: Needed) -> int:
        return min(map(len, need.literals - {_LONG_S}), default=0)

    return max((needed(pattern, lower=lower, shortest=shortest) for lower in (True, False)), key=length)


class _NotUnderstoodError(Exception):
    """The expression is none that this module reads."""


class _Part(NamedTuple):
    """What is known of a part: all the strings it matches, if they are few; strings of which one is in each match; a length."""

    exact: frozenset[str] | None
    some: frozenset[str] | None
    shortest: int


_EMPTY = _Part(frozenset({""}), None, 0)
_ANY_CHARACTER = _Part(None, None, 1)
_ANYTHING = _Part(None, None, 0)


def _exactly(strings: frozenset[str]) -> _Part:
    return _Part(strings, _worth(strings), min(map(len, strings)))


def _worth(strings: frozenset[str] | None) -> frozenset[str] | None:
    """Strings, if they are few enough to be looked for."""
    return strings if strings and len(strings) <= _MOST_LITERALS else None


def _better(left: frozenset[str] | None, right: frozenset[str] | None) -> frozenset[str] | None:
    """The one of two sets that fewer texts are expected to have."""
    if left is None or right is None:
        return left or right
    return max(left, right, key=lambda strings: (min(map(len, strings)), -len(strings)))


class _Sequence:
    """Parts one after another. `run` are the strings that the last of them match together, as long as that is known."""

    def __init__(self) -> None:
        self._run = frozenset({""})
        self._is_exact = True
        self._some: frozenset[str] | None = None
        self._shortest = 0

    def add(self, part: _Part) -> None:
        self._shortest += part.shortest
        if part.exact is not None:
            joined = frozenset(left + right for left in self._run for right in part.exact)
            if len(joined) <= _MOST_LITERALS and max(map(len, joined)) <= _LONGEST:
                self._run = joined
                return
        self._some = _better(_better(self._some, _worth(self._run)), part.some)
        self._run = frozenset({""}) if part.exact is None else part.exact
        self._is_exact = False

    def part(self) -> _Part:
        some = _better(self._some, _worth(self._run))
        return _Part(self._run if self._is_exact else None, some, self._shortest)


def _one_of(branches: list[_Part]) -> _Part:
    """An alternation."""
    if len(branches) == 1:
        return branches[0]
    shortest = min(branch.shortest for branch in branches)
    sets = [branch.exact for branch in branches if branch.exact is not None]
    exact: frozenset[str] | None = frozenset().union(*sets)
    if len(sets) < len(branches) or len(exact or ()) > _MOST_LITERALS:
        exact = None
    sets = [branch.some for branch in branches if branch.some is not None]
    some = _worth(frozenset().union(*sets)) if len(sets) == len(branches) else None
    return _Part(exact, some, shortest)


def _joined(parts: list[_Part]) -> _Part:
    sequence = _Sequence()
    for part in parts:
        sequence.add(part)
    return sequence.part()


def _repeated(part: _Part, least: int, most: int | None) -> list[_Part]:
    """A part several times: those times that are certain, and what may come behind them."""
    if least == 0:
        return [_exactly(part.exact | {""}) if most == 1 and part.exact is not None else _ANYTHING]
    times = min(least, _LONGEST)
    if times == most:
        return [part] * times
    return [*[part] * times, _Part(None, None, (least - times) * part.shortest)]


class _Parser:
    """Reads an expression from left to right. `met_s`: somewhere an s stands for ſ too."""

    def __init__(self, pattern: str, lower: bool) -> None:
        self._pattern = pattern
        self._lower = lower
        self._at = 0
        self._depth = 0
        self._ignores_case = False
        self.met_s = False

    def whole(self) -> _Part:
        part = self._alternation()
        if self._at < len(self._pattern):
            raise _NotUnderstoodError  # a parenthesis that closes nothing
        return part

    def _is_next(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _take(self) -> str:
        if self._at >= len(self._pattern):
            raise _NotUnderstoodError
        self._at += 1
        return self._pattern[self._at - 1]

    def _taken(self, form: re.Pattern[str]) -> re.Match[str] | None:
        match = form.match(self._pattern, self._at)
        if match is not None:
            self._at = match.end()
        return match

    def _alternation(self) -> _Part:
        """Up to the end, or to the parenthesis that closes the group."""
        branches = [_Sequence()]
        while self._at < len(self._pattern) and not self._is_next(")"):
            if self._is_next("|"):
                self._at += 1
                branches.append(_Sequence())
                continue
            parts = [self._atom(branches[-1])]
            while (match := self._taken(_REPETITION)) is not None:
                parts = _repeated(_joined(parts), *_bounds(match))
            for part in parts:
                branches[-1].add(part)
        return _one_of([branch.part() for branch in branches])

    def _atom(self, sequence: _Sequence) -> _Part:
        """What a repetition may follow. Of a quotation this is its last character; those before go to the sequence."""
        if self._is_next("\\Q"):
            end = self._pattern.find("\\E", self._at)
            quoted = self._pattern[self._at + 2 : end if end >= 0 else None]
            if not quoted:
                raise _NotUnderstoodError
            self._at = end + 2 if end >= 0 else len(self._pattern)
            for character in quoted[:-1]:
                sequence.add(self._characters({character}))
            return self._characters({quoted[-1]})
        if self._is_next("("):
            return self._group()
        character = self._take()
        if character in "^$":
            return _EMPTY
        if character == ".":
            return _ANY_CHARACTER
        if character == "[":
            return self._class()
        if character in "*+?":
            raise _NotUnderstoodError
        return self._escape() if character == "\\" else self._characters({character})

    def _group(self) -> _Part:
        before = self._ignores_case
        if (flags := self._taken(_FLAGS)) is not None:
            on, off, end = flags.groups()
            self._ignores_case = (before or "i" in on) and "i" not in (off or "")
            if end == ")":
                if _REPETITION.match(self._pattern, self._at):
                    raise _NotUnderstoodError  # RE2 repeats what stands before the flags
                return _EMPTY
        elif self._taken(_NAMED) is None:
            self._at += 1
            if self._is_next("?"):
                raise _NotUnderstoodError
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotUnderstoodError
        part = self._alternation()
        if self._take() != ")":
            raise _NotUnderstoodError
        self._depth -= 1
        self._ignores_case = before
        return part

    def _escape(self) -> _Part:
        """Behind a backslash."""
        if self._taken(_PROPERTY) is not None:
            return _ANY_CHARACTER
        if self._pattern[self._at : self._at + 1] in set("AzbB"):
            self._at += 1
            return _EMPTY
        if self._pattern[self._at : self._at + 1] in set("dDsSwWC"):
            self._at += 1
            return _ANY_CHARACTER
        return self._characters({self._escaped_character()})

    def _escaped_character(self) -> str:
        """A character that is written with a backslash, which is read already."""
        if (match := self._taken(_HEX)) is not None:
            return _character(int(match[1] or match[2], 16))
        if (match := self._taken(_OCTAL)) is not None:
            return _character(int(match[0], 8))
        character = self._take()
        if character in _CONTROLS:
            return _CONTROLS[character]
        if not character.isascii() or character.isalnum() or character == "_":
            raise _NotUnderstoodError
        return character

    def _class(self) -> _Part:
        """Behind an opening bracket."""
        negated = self._is_next("^")
        self._at += negated
        characters: set[str] | None = set()
        first = True
        while first or not self._is_next("]"):
            first = False
            some = self._class_item()
            characters = characters | some if characters is not None and some is not None else None
            if characters is not None and len(characters) > _LARGEST_CLASS:
                characters = None
        self._at += 1
        return _ANY_CHARACTER if negated or not characters else self._characters(characters)

    def _class_item(self) -> set[str] | None:
        """A character or a range of a class; None where these are many."""
        if self._is_next("[:"):
            if self._taken(_POSIX) is None:
                raise _NotUnderstoodError
            return None
        low = self._class_character()
        if low is None:
            return None
        if not self._is_next("-") or self._is_next("-]"):
            return {low}
        self._at += 1
        high = self._class_character()
        if high is None:
            raise _NotUnderstoodError
        few = ord(high) - ord(low) < _LARGEST_CLASS
        return set(map(chr, range(ord(low), ord(high) + 1))) if few else None

    def _class_character(self) -> str | None:
        character = self._take()
        if character != "\\":
            return character
        if self._taken(_PROPERTY) is not None:
            return None
        if self._pattern[self._at : self._at + 1] in set("dDsSwW"):
            self._at += 1
            return None
        return self._escaped_character()

    def _characters(self, characters: set[str]) -> _Part:
        """One of some characters, in the case that literals are looked for."""
        if not self._lower:
            cased = any(character.isalpha() or not character.isascii() for character in characters)
            return _ANY_CHARACTER if self._ignores_case and cased else _exactly(frozenset(characters))
        if not all(map(str.isascii, characters)):
            return _ANY_CHARACTER
        folded = frozenset(map(str.lower, characters))
        self.met_s |= self._ignores_case and "s" in folded
        return _exactly(folded)


def _bounds(repetition: re.Match[str]) -> tuple[int, int | None]:
    """How often at least and at most."""
    symbol = repetition[0][0]
    if symbol != "{":
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[symbol]
    least = int(repetition[1])
    if repetition[2] is None:
        return least, least
    return least, int(repetition[3]) if repetition[3] else None


def _character(point: int) -> str:
    if point > 0x10FFFF or 0xD800 <= point < 0xE000:
        raise _NotUnderstoodError
    return chr(point)
