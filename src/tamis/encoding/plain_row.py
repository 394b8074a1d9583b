"""One plain conjunction to keys, where nothing new is needed for it: its dimensions are there, and its constants are known.

Most subscriptions that come one by one are like this, and what surrounds the encoding of many would cost more than encoding one.
Everything else is for the compiler: so this may say no, but what it encodes is what the compiler would have made of it. Most of
the time goes into collecting the parts of an expression, which `prepare` does beforehand.

    words     code  code  code  | count  count  count  | literal  literal  literal  literal
                 of each predicate |    of its literals   |    all literals
    code      dimension . operator . scalar . none . number
"""

from __future__ import annotations

import functools
import itertools
import operator
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.compile import Compiler, facet_of
from tamis.encoding.conjunctions import Conjunctions, sort_predicates
from tamis.encoding.dimensions import Dimension, Facet, StringDimension
from tamis.encoding.kernel import lean_kernel
from tamis.encoding.keys import code_of_bits, is_labelled, is_small
from tamis.encoding.predicate_encoding import WHOLE, judge_rows, plain_intervals
from tamis.encoding.predicate_rows import OPERATOR_CODE
from tamis.encoding.predicates import Predicates
from tamis.language.expression import And, Expression, Predicate
from tamis.language.operators import NULL_TESTS, PATTERNS, POSITIVE, Operator
from tamis.language.reading import to_expression
from tamis.language.values import Scalar

_NUMBER, _NONE, _SCALAR = 1, 2, 4
_OPERATOR, _DIMENSION = 3, 8
"""Where the parts of a code begin, in bits."""
_OPERATORS = (1 << (_DIMENSION - _OPERATOR)) - 1
_MOST_WORDS = 256
"""Longer rows are for the compiler."""
_SCRATCH = 14
"""So many rows of scratch space are needed."""
DIMENSION, MODE, START, LO, HI, ORDER = range(6)
"""The rows in which `plain_conjunction` leaves columns of predicates, and their order."""
_PLAIN = frozenset({int, float})
_CODES = {
    each: (OPERATOR_CODE[POSITIVE.get(each, each)] << _OPERATOR) + _NONE * (each in POSITIVE)
    for each in Operator
    if each not in PATTERNS | NULL_TESTS
}
"""What of a code the operator gives."""
_COMPARED = operator.attrgetter("attribute", "operator")
_VALUES = operator.attrgetter("values")


class Prepared(NamedTuple):
    """What a row is made of, but for the codes, which depend on the dimensions that are there."""

    compared: tuple[tuple[str, Operator], ...]
    pack: Callable[..., None]
    """Writes the codes."""
    rest: bytes
    """The words behind them."""
    length: int
    """How many words that is together."""


def prepare(source: Any) -> Expression:
    """Read an expression, and do beforehand what can be done to have it added quickly, as often and wherever it is.

    This is for those that have tens of thousands of changes per second: half of the time that adding a conjunction of comparisons
    with numbers takes is spent here. Other expressions are read, and no more.

    Parameters
    ----------
    source : str, Expression or list
        What `Matcher.add` takes.

    Raises
    ------
    ExpressionError
    """
    expression = to_expression(source)
    predicates: Any = expression.operands if type(expression) is And else (expression,)
    if all(type(predicate) is Predicate and predicate.operator in _CODES for predicate in predicates):
        literals = [value for predicate in predicates for value in predicate.values]
        length = 2 * len(predicates) + len(literals)
        if length <= _MOST_WORDS and set(map(type, literals)) <= _PLAIN:
            counts = [len(predicate.values) for predicate in predicates]
            rest = struct.pack(f"{len(counts)}q{len(literals)}d", *counts, *literals)
            pack = struct.Struct(f"{len(counts)}q").pack_into
            compared = tuple(_same_pair(predicate.attribute, predicate.operator) for predicate in predicates)
            expression._prepared = Prepared(compared, pack, rest, length)
    return expression


@functools.lru_cache(maxsize=1 << 16)
def _same_pair(attribute: str, operator: Operator) -> tuple[str, Operator]:
    """One object for all expressions that compare so: it stays in the caches, and need not be compared letter by letter."""
    return attribute, operator


class PlainRow(NamedTuple):
    """A conjunction laid out for `plain_conjunction`."""

    words: npt.NDArray[np.int64]
    predicates: int
    length: int
    """How many of the words are its own."""
    scratch: npt.NDArray[np.int64]


class PlainEncoder:
    """Lays conjunctions out. One thread uses it at a time, and is done with a row before it asks for the next."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._numbers: dict[tuple[str, Operator], int] = {}
        """Attribute and operator -> the code of comparing with numbers."""
        self._words = np.zeros(_MOST_WORDS, np.int64)
        self._bytes = self._words.data.cast("B")
        self._scratch = np.zeros((_SCRATCH, _MOST_WORDS + 1), np.int64)

    def row(self, expression: Expression) -> PlainRow | None:
        """The row of an expression; None if it is for the compiler."""
        predicates: Any = expression.operands if type(expression) is And else (expression,)
        try:
            prepared: Prepared | None = getattr(expression, "_prepared", None)
            if prepared is not None:
                compared, pack, rest, length = prepared
                pack(self._words, 0, *map(self._numbers.__getitem__, compared))
                self._bytes[8 * len(compared) : 8 * length] = rest
                return tuple.__new__(PlainRow, (self._words, len(compared), length, self._scratch))
            # Maps instead of a loop: this is most of what adding a subscription costs, and takes half of the time so.
            codes = list(map(self._numbers.__getitem__, map(_COMPARED, predicates)))
            values = list(map(_VALUES, predicates))
        except (KeyError, AttributeError):  # seldom: an attribute that is new here, or no predicate
            return self._unusual(predicates)
        literals = list(itertools.chain.from_iterable(values))
        if not set(map(type, literals)) <= _PLAIN:
            return self._unusual(predicates)
        return self._packed(codes, map(len, values), literals, "d")

    def _packed(self, codes: list[int], counts: Iterable[int], literals: list[Any], form: str) -> PlainRow | None:
        length = 2 * len(codes) + len(literals)
        if length > _MOST_WORDS:
            return None
        _layout(len(codes), len(literals), form)(self._words, 0, *codes, *counts, *literals)
        # What the __new__ of a NamedTuple does, without the call in between.
        return tuple.__new__(PlainRow, (self._words, len(codes), length, self._scratch))

    def _unusual(self, predicates: tuple[Any, ...]) -> PlainRow | None:
        """The row of predicates that compare with other kinds than numbers, or were not seen yet."""
        codes: list[int] = []
        counts: list[int] = []
        keys: list[int] = []
        for predicate in predicates:
            if type(predicate) is not Predicate or predicate.operator not in _CODES:
                return None
            facets = {facet_of(value) for value in predicate.values}
            facet = facets.pop()
            dimension = self._compiler.known_dimension(predicate.attribute, facet)
            if facets or dimension is None or not all(_has_key(dimension, value) for value in predicate.values):
                return None
            base = (dimension.number << _DIMENSION) + _SCALAR * self._compiler.is_scalar(predicate.attribute)
            if facet is Facet.NUMBER:
                self._numbers[_same_pair(predicate.attribute, predicate.operator)] = (
                    base + _CODES[predicate.operator] + _NUMBER
                )
            codes.append(base + _CODES[predicate.operator])
            counts.append(len(predicate.values))
            keys += [dimension.key(value) for value in predicate.values]
        return self._packed(codes, counts, keys, "q")


def _has_key(dimension: Dimension, value: Scalar) -> bool:
    """Whether the key of a literal is known without adding it to the constants."""
    if isinstance(dimension, StringDimension):
        return value in dimension
    return dimension.facet is not Facet.NUMBER or not is_labelled(value)  # type: ignore[arg-type]


@functools.lru_cache(maxsize=1024)
def _layout(codes: int, literals: int, form: str) -> Callable[..., None]:
    """How to lay out a row, faster than `np.array` does."""
    return struct.Struct(f"{2 * codes}q{literals}{form}").pack_into


@lean_kernel
def plain_conjunction(words: Any, count: int, length: int, scratch: Any) -> int:
    """Write the predicates of a row to the scratch, and their order; returns how many are kept, or -1 if it is no conjunction
    as it stands."""
    dimension, mode, start, lo, hi = (
        scratch[DIMENSION],
        scratch[MODE],
        scratch[START],
        scratch[LO],
        scratch[HI],
    )
    base, value_start, good, scalar, keys = scratch[6], scratch[7], scratch[8], scratch[9], scratch[10]
    row, state, kept_start = scratch[11, :2], scratch[12, :1], scratch[13, :2]
    value_start[0], start[0], row[0], row[1] = 0, 0, 0, count
    for p in range(count):
        code = words[p]
        dimension[p] = code >> _DIMENSION
        mode[p] = (code & _NONE) // _NONE
        scalar[p] = (code & _SCALAR) // _SCALAR
        base[p] = (code >> _OPERATOR) & _OPERATORS
        good[p] = 1
        value_start[p + 1] = value_start[p] + words[count + p]
        for v in range(value_start[p], value_start[p + 1]):
            keys[v] = words[2 * count + v]
            if code & _NUMBER:
                good[p] &= is_small(keys[v])  # those that may have labels are for the compiler
                keys[v] = code_of_bits(keys[v])
    plain_intervals(base[:count], value_start, keys, good, mode, start, lo, hi)
    predicates = Predicates(dimension, mode, start, lo, hi)
    judge_rows(row, predicates, good, scalar, state)
    if state[0] != WHOLE:
        return -1
    return sort_predicates(Conjunctions(row, predicates), scratch[ORDER], kept_start)
