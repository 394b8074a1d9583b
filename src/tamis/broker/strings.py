"""The strings of a column. Each has a code, and predicates are asked about each string once."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.broker.address_search import Addresses, in_networks, read_addresses
from tamis.broker.limits import USUAL_BROKER_LIMITS
from tamis.broker.string_search import bools, is_ascii, like, rlike
from tamis.encoding.dimensions.patterns import regex_matcher
from tamis.kernels.numbers import Bools, I32s
from tamis.language.expression import CasePredicate, Predicate
from tamis.language.like import LikePattern
from tamis.language.operators import LIKES, NULL_TESTS, Case, Operator

_COMPARISONS = {
    Operator.EQ: pc.equal,
    Operator.LT: pc.less,
    Operator.LE: pc.less_equal,
    Operator.GT: pc.greater,
    Operator.GE: pc.greater_equal,
}
"""Arrow compares the bytes of UTF-8. They have the order of the characters."""
_PORTION = 4096
"""Strings that become one array of Arrow. So the first search through 1,000,000 new strings finds them ready, 100 ms sooner."""
_FEW = 4096
"""Strings of which all are searched in a fraction of a millisecond."""
_IGNORES_CASE, _CODE = re.compile(r"\(\?[a-zA-Z-]*i"), re.compile(r"\\[x0-7]")
"""What begins a part of a regular expression that ignores case, and a character that is written as its code."""


class Strings:
    """Strings by code. New strings may repeat strings that came from a file, so a string may have several codes."""

    def __init__(
        self, texts: pa.Array | None = None, *, few_to_know: int = USUAL_BROKER_LIMITS.strings_to_know
    ) -> None:
        self._texts: pa.Array = pa.array([], pa.string()) if texts is None else texts
        self._first = len(self._texts)
        """How many strings came from a file."""
        self._codes: dict[str, int] = {}
        """A code of each string, but of many that came from a file."""
        if self._first <= few_to_know:
            self._codes = {text: code for code, text in enumerate(self._texts.to_pylist())}
        self._portions: list[pa.Array] = []
        """Later strings, which are not in `_texts` yet."""
        self._later: list[str] = []
        """The last strings, which are not in a portion yet."""
        self._count = self._first
        self._few_to_know = few_to_know
        self._cased: dict[Case, pa.Array] = {}
        self._addresses = Addresses.none()

    def __len__(self) -> int:
        return self._count

    def code(self, text: str) -> int:
        """The code of a string, which gets one if it has none."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = self._count
            self._count += 1
            self._later.append(text)
            if len(self._later) == _PORTION:
                self._settle()
        return code

    def _settle(self) -> None:
        self._portions.append(pa.array(self._later, pa.string()))
        self._later = []

    def codes_of(self, texts: Sequence[str]) -> list[int]:
        """As `code`, of many strings."""
        codes = list(map(self._codes.get, texts))
        return [self.code(text) if code is None else code for text, code in zip(texts, codes, strict=True)]

    def codes(self, texts: list[str]) -> list[int]:
        """All codes of some strings."""
        first = self._texts[: self._first]
        is_one = pc.equal(first, texts[0]) if len(texts) == 1 else pc.is_in(first, pa.array(texts, pa.string()))
        later = (self._codes.get(text, -1) for text in texts)
        return [*np.flatnonzero(bools(is_one)).tolist(), *(code for code in later if code >= self._first)]

    def texts(self) -> pa.Array:
        """The strings by code."""
        if self._later:
            self._settle()
        if self._portions:
            self._texts = pa.concat_arrays([self._texts, *self._portions])
            self._portions = []
        return self._texts

    def cased(self, case: Case) -> pa.Array:
        """The strings in lower or upper case, by code."""
        texts, known = self.texts(), self._cased.get(case, pa.array([], pa.string()))
        if len(known) < len(texts):
            known = self._cased[case] = pa.concat_arrays([known, _in_case(texts[len(known) :], case)])
        return known

    def addresses(self) -> Addresses:
        """The addresses that the strings are, by code."""
        texts, known = self.texts(), len(self._addresses.family)
        if known < len(texts):
            self._addresses = self._addresses.followed_by(read_addresses(texts[known:]))
        return self._addresses

    def kept(self, codes: I32s) -> Strings:
        """Some of the strings, with new codes from 0 on."""
        return Strings(self.texts().take(pa.array(codes)), few_to_know=self._few_to_know)


def _in_case(texts: pa.Array, case: Case) -> pa.Array:
    """Strings in a case as Python sees it. Arrow sees it differently, but not in ASCII."""
    if is_ascii(texts):
        return pc.ascii_lower(texts) if case is Case.LOWER else pc.ascii_upper(texts)
    return pa.array(map(case.change, texts.to_pylist()), pa.string())


def cost(predicate: Predicate, strings: Strings) -> int:
    """How long deciding a predicate about all strings takes, in steps: 0 is least."""
    is_one_look_up = predicate.operator in (Operator.EQ, Operator.IN) and not isinstance(predicate, CasePredicate)
    if is_one_look_up or predicate.operator in NULL_TESTS or len(strings) < _FEW:
        return 0
    if predicate.operator not in (Operator.RLIKE, Operator.NOT_RLIKE):
        return 1
    return 3 if _needs_own_search(str(predicate.values[0])) else 2


def satisfying(predicate: Predicate, literals: list[str], strings: Strings, codes: I32s | None = None) -> Bools:
    """Which strings satisfy a positive predicate: of all strings by code, or of those with some codes."""
    operator = predicate.operator
    if operator is Operator.IP_IN:
        addresses = strings.addresses()
        return in_networks(addresses if codes is None else addresses.take(codes), literals)
    texts = strings.texts()
    if operator is Operator.ILIKE:
        texts = strings.cased(Case.LOWER)
    elif isinstance(predicate, CasePredicate):
        texts = strings.cased(predicate.case)
    if codes is not None:
        texts = texts.take(pa.array(codes))
    if operator is Operator.RLIKE:
        return _rlike(texts, literals[0])
    if operator in LIKES:
        return like(texts, LikePattern.read(literals[0], predicate.escape, operator is Operator.ILIKE))
    if operator is Operator.IN:
        return bools(pc.is_in(texts, pa.array(literals, pa.string())))
    if operator is Operator.BETWEEN:
        return bools(pc.and_(pc.greater_equal(texts, literals[0]), pc.less_equal(texts, literals[1])))
    return bools(_COMPARISONS[operator](texts, literals[0]))


def _needs_own_search(pattern: str) -> bool:
    r"""Whether Arrow's RE2 and ours may find different matches of a pattern outside of ASCII.

    They may know different versions of Unicode. Its classes (\p) differ, and so do the cases of letters outside of ASCII.
    """
    if "\\p" in pattern or "\\P" in pattern:
        return True
    return _IGNORES_CASE.search(pattern) is not None and (not pattern.isascii() or _CODE.search(pattern) is not None)


def _rlike(texts: pa.Array, pattern: str) -> Bools:
    """Which strings contain a match of a regular expression."""
    is_ours = np.zeros(len(texts), np.bool_)
    if _needs_own_search(pattern):
        is_ours = ~bools(pc.string_is_ascii(texts))
    try:
        if not is_ours.any():
            return rlike(texts, pattern)
        found = np.zeros(len(texts), np.bool_)
        found[~is_ours] = rlike(texts.filter(pa.array(~is_ours)), pattern)
    except pa.ArrowInvalid:  # The pattern may be too long for Arrow.
        is_ours[:], found = True, np.zeros(len(texts), np.bool_)
    matches = regex_matcher([pattern])
    found[is_ours] = [bool(matches(text)) for text in texts.filter(pa.array(is_ours)).cast(pa.binary()).to_pylist()]
    return found
