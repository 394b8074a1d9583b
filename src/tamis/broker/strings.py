"""The strings of a column. Each has a code, and predicates are asked about each string once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.broker.address_search import Addresses, in_networks, read_addresses
from tamis.broker.limits import USUAL_BROKER_LIMITS
from tamis.broker.string_search import bools, is_ascii, like, rlike
from tamis.kernels.numbers import Bools, I32s
from tamis.language.expression import CasePredicate, Predicate
from tamis.language.like import LikePattern
from tamis.language.operators import Case, Operator

_COMPARISONS = {
    Operator.EQ: pc.equal,
    Operator.LT: pc.less,
    Operator.LE: pc.less_equal,
    Operator.GT: pc.greater,
    Operator.GE: pc.greater_equal,
}
"""Arrow compares the bytes of UTF-8. They have the order of the characters."""


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
        self._later: list[str] = []
        """The last strings. They are not in `_texts` yet."""
        self._few_to_know = few_to_know
        self._cased: dict[Case, pa.Array] = {}
        self._addresses = Addresses.none()

    def __len__(self) -> int:
        return len(self._texts) + len(self._later)

    def code(self, text: str) -> int:
        """The code of a string, which gets one if it has none."""
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self._texts) + len(self._later)
            self._later.append(text)
        return code

    def codes(self, texts: list[str]) -> list[int]:
        """All codes of some strings."""
        first = self._texts[: self._first]
        is_one = pc.equal(first, texts[0]) if len(texts) == 1 else pc.is_in(first, pa.array(texts, pa.string()))
        later = (self._codes.get(text, -1) for text in texts)
        return [*np.flatnonzero(bools(is_one)).tolist(), *(code for code in later if code >= self._first)]

    def texts(self) -> pa.Array:
        """The strings by code."""
        if self._later:
            self._texts = pa.concat_arrays([self._texts, pa.array(self._later, pa.string())])
            self._later = []
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


def satisfying(predicate: Predicate, literals: list[str], strings: Strings) -> Bools | None:
    """Which strings satisfy a positive predicate, by code; None if this cannot say."""
    operator = predicate.operator
    if operator is Operator.IP_IN:
        return in_networks(strings.addresses(), literals)
    if operator is Operator.ILIKE:
        return _like(strings.cased(Case.LOWER), LikePattern.read(literals[0], predicate.escape, True))
    if operator is Operator.RLIKE:
        return _rlike(strings.texts(), literals[0])
    texts = strings.cased(predicate.case) if isinstance(predicate, CasePredicate) else strings.texts()
    if operator is Operator.LIKE:
        return _like(texts, LikePattern.read(literals[0], predicate.escape))
    if operator is Operator.IN:
        return bools(pc.is_in(texts, pa.array(literals, pa.string())))
    if operator is Operator.BETWEEN:
        return bools(pc.and_(pc.greater_equal(texts, literals[0]), pc.less_equal(texts, literals[1])))
    compare = _COMPARISONS.get(operator)
    return None if compare is None else bools(compare(texts, literals[0]))


def _like(texts: pa.Array, pattern: LikePattern) -> Bools | None:
    try:
        return like(texts, pattern)
    except pa.ArrowInvalid:
        return None


def _rlike(texts: pa.Array, pattern: str) -> Bools | None:
    """As `re2`, if Arrow's RE2 agrees with ours. They may know different versions of Unicode: classes and cases differ."""
    needs_unicode = "(?" in pattern or "\\p" in pattern or "\\P" in pattern
    if needs_unicode and not is_ascii(texts):
        return None
    try:
        return rlike(texts, pattern)
    except pa.ArrowInvalid:
        return None


def in_codes(values: I32s, codes: list[int]) -> Bools:
    """Which values are among some codes."""
    if len(codes) > 1:
        return np.isin(values, np.array(codes, np.int32))
    return np.equal(values, codes[0] if codes else -1)
