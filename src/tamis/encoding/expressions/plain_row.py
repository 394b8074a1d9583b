"""One plain conjunction to keys, if its dimensions and its constants are known already.

Most subscriptions that come one by one are like this. Encoding one with the code for many would cost more than this does. All
other expressions are for the compiler. What is encoded here is the same as what the compiler makes of it.

    words     comparison  comparison  | count  count  | literal  literal  literal
              of each predicate       |    literals   |    all literals
    comparison  the number of an attribute with an operator, whose code each encoder keeps; or ~ its code
    code        dimension . operator . scalar . none . number

Words with numbers of comparisons are the same for every matcher, so `prepare` can make them beforehand.
"""

from __future__ import annotations

import functools
import itertools
import operator
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.dimension import Dimension, Facet, StringDimension
from tamis.encoding.dimensions.keys import code_of_bits, is_labelled, is_small
from tamis.encoding.expressions.compile import Compiler, facet_of
from tamis.encoding.expressions.conjunctions import Conjunctions, sort_predicates
from tamis.encoding.expressions.predicate_encoding import WHOLE, compared_intervals, judge_rows
from tamis.encoding.expressions.predicate_rows import OPERATOR_CODE
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.fields import packed_fields, reader_of
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I64s
from tamis.kernels.packed import Packed
from tamis.language.expression import And, Expression, Predicate
from tamis.language.operators import COMPARED, POSITIVE, Operator
from tamis.language.reading import to_expression
from tamis.language.values import Scalar

_NUMBER, _NONE, _SCALAR = 1, 2, 4
_OPERATOR, _DIMENSION = 3, 8
"""The first bits of the operator and of the dimension in a code."""
_OPERATORS = (1 << (_DIMENSION - _OPERATOR)) - 1
_UNKNOWN = -1
"""The code of a comparison that this encoder has not seen yet."""
_MOST_WORDS = 256
"""Longer rows are for the compiler."""
_PLAIN = frozenset({int, float})
_CODES = {
    each: (OPERATOR_CODE[POSITIVE.get(each, each)] << _OPERATOR) + _NONE * (each in POSITIVE) for each in COMPARED
}
"""The part of a code that comes from the operator."""
_COMPARED = operator.attrgetter("attribute", "operator")
_VALUES = operator.attrgetter("values")


class Comparisons(dict[tuple[str, Operator], int]):
    """Attribute and operator -> the number of the comparison. At most `most` get a number, and numbers are never given back."""

    def __init__(self, most: int = 1 << 16) -> None:
        super().__init__()
        self._most = most
        self._numbers = itertools.count()

    def number(self, attribute: str, operator: Operator) -> int | None:
        """The number of a comparison, a new one if it has none; None if it cannot have one."""
        number = self.get((attribute, operator))
        if number is None and operator in _CODES and len(self) < self._most:
            number = self.setdefault((attribute, operator), next(self._numbers))
        return number


_COMPARISONS = Comparisons()
"""The same for all encoders."""


class Prepared(NamedTuple):
    """The words of a row."""

    words: bytes
    predicates: int
    length: int
    """How many words there are."""


def prepare(source: Any) -> Expression:
    """Read an expression and prepare it, so that every matcher adds it faster, any number of times.

    Use this for tens of thousands of changes per second. Preparing a conjunction of comparisons with numbers takes about half
    as long as adding it. Other expressions are only read.

    Parameters
    ----------
    source : str, Expression or list
        What `Matcher.add` takes.

    Raises
    ------
    ExpressionError
    """
    expression = to_expression(source)
    if not is_prepared(expression):
        prepared = words_of(expression)
        if prepared is not None:
            expression.prepared = prepared
    return expression


def is_prepared(expression: Expression) -> bool:
    """Whether `prepare` has prepared this expression in this process."""
    return hasattr(expression, "prepared")


def words_of(expression: Expression, comparisons: Comparisons = _COMPARISONS) -> Prepared | None:
    """The words of an expression; None if it does more than compare with numbers, or is long."""
    predicates: Any = expression.operands if type(expression) is And else (expression,)
    try:
        # Maps instead of a loop: they take half of the time, and this is most of what adding a subscription costs.
        compared = list(map(comparisons.get, map(_COMPARED, predicates)))
        values = list(map(_VALUES, predicates))
    except AttributeError:  # no predicate
        return None
    literals = list(itertools.chain.from_iterable(values))
    length = 2 * len(compared) + len(literals)
    if length > _MOST_WORDS or not set(map(type, literals)) <= _PLAIN:
        return None
    if None in compared:
        compared = [comparisons.number(*pair) for pair in map(_COMPARED, predicates)]
        if None in compared:
            return None
    words = _layout(len(compared), len(literals))(*compared, *map(len, values), *literals)
    return Prepared(words, len(compared), length)


@functools.lru_cache(maxsize=1024)
def _layout(comparisons: int, literals: int) -> Callable[..., bytes]:
    """How to lay out words, faster than `np.array` does."""
    return struct.Struct(f"{2 * comparisons}q{literals}d").pack


class PlainScratch(NamedTuple):
    """What `plain_conjunction` works in. It leaves the columns of predicates and their order."""

    dimension: I64s
    mode: I64s
    start: I64s
    lo: I64s
    hi: I64s
    order: I64s
    base: I64s
    """The operator of each predicate."""
    value_start: I64s
    """Where the keys of each predicate begin; one more element at the end."""
    good: I64s
    """Whether the constants of each predicate have keys."""
    scalar: I64s
    """Whether the attribute of each predicate is a scalar."""
    keys: I64s
    row_start: I64s
    state: I64s
    kept_start: I64s
    words: I64s
    """The words of the row."""


_ROWS = {"row_start": 2, "state": 1, "kept_start": 2}
"""The sizes of the arrays about rows, of which there is one."""
read_scratch = reader_of(PlainScratch)


def _plain_scratch() -> PlainScratch:
    return PlainScratch(*(np.zeros(_ROWS.get(name, _MOST_WORDS + 1), np.int64) for name in PlainScratch._fields))


class PlainRow(NamedTuple):
    """A conjunction laid out for `plain_conjunction`. Its encoder must be kept alive."""

    scratch: Packed
    """The packed `PlainScratch` of the encoder."""
    codes: I64s
    predicates: int
    length: int


class PlainEncoder:
    """Lays conjunctions out. One thread uses it at a time, and is done with a row before it asks for the next."""

    def __init__(self, compiler: Compiler, comparisons: Comparisons = _COMPARISONS) -> None:
        self._compiler = compiler
        self._comparisons = comparisons
        self._codes = np.full(16, _UNKNOWN, np.int64)
        """Number of a comparison -> its code, if it compares with numbers."""
        self.scratch = _plain_scratch()
        self._packed = packed_fields(self.scratch)
        self._words = self.scratch.words.data.cast("B")

    def row(self, expression: Expression) -> PlainRow | None:
        """The row of an expression that compares with numbers only; None if it does not.

        `plain_conjunction` may refuse the row, for instance because a comparison is new here. `keyed_row` may then succeed.
        """
        prepared: Prepared | None = getattr(expression, "prepared", None) or words_of(expression, self._comparisons)
        if prepared is None:
            return None
        words, predicates, length = prepared
        self._words[: 8 * length] = words
        # PlainRow(...) without the call of its __new__.
        return tuple.__new__(PlainRow, (self._packed, self._codes, predicates, length))

    def keyed_row(self, expression: Expression) -> PlainRow | None:
        """The row of an expression with the keys of its constants, of any kind; None if it is for the compiler.

        From now on `row` knows the comparisons with numbers in it.
        """
        predicates: Any = expression.operands if type(expression) is And else (expression,)
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
            code = (dimension.number << _DIMENSION) + _CODES[predicate.operator]
            code += _SCALAR * self._compiler.is_scalar(predicate.attribute)
            if facet is Facet.NUMBER:
                self._learn(self._comparisons.number(predicate.attribute, predicate.operator), code + _NUMBER)
            codes.append(~code)
            counts.append(len(predicate.values))
            keys += [dimension.key(value) for value in predicate.values]
        words = [*codes, *counts, *keys]
        if len(words) > _MOST_WORDS:
            return None
        self.scratch.words[: len(words)] = words
        return PlainRow(self._packed, self._codes, len(codes), len(words))

    def _learn(self, comparison: int | None, code: int) -> None:
        if comparison is not None:
            if comparison >= len(self._codes):
                larger = np.full(2 * comparison, _UNKNOWN, np.int64)
                larger[: len(self._codes)] = self._codes
                self._codes = larger
            self._codes[comparison] = code


def _has_key(dimension: Dimension, value: Scalar) -> bool:
    """Whether the key of a literal is known without adding it to the constants."""
    if isinstance(dimension, StringDimension):
        return value in dimension
    return dimension.facet is not Facet.NUMBER or not is_labelled(value)  # type: ignore[arg-type]


@lean_kernel
def plain_conjunction(packed: Packed, codes: I64s, count: int) -> int:
    """Write the predicates of a row and their order to the packed `PlainScratch`.

    Returns how many predicates are kept, or -1 if the row is not a conjunction as it stands.
    """
    scratch = read_scratch(packed)
    value_start, good, keys, words = scratch.value_start, scratch.good, scratch.keys, scratch.words
    row_start = scratch.row_start
    value_start[0], scratch.start[0], row_start[0], row_start[1] = 0, 0, 0, count
    for p in range(count):
        comparison = words[p]
        if comparison >= len(codes) or (comparison >= 0 and codes[comparison] == _UNKNOWN):
            return -1
        code = ~comparison if comparison < 0 else codes[comparison]
        scratch.dimension[p] = code >> _DIMENSION
        scratch.mode[p] = (code & _NONE) // _NONE
        scratch.scalar[p] = (code & _SCALAR) // _SCALAR
        scratch.base[p] = (code >> _OPERATOR) & _OPERATORS
        good[p] = 1
        value_start[p + 1] = value_start[p] + words[count + p]
        for v in range(value_start[p], value_start[p + 1]):
            keys[v] = words[2 * count + v]
            if code & _NUMBER:
                good[p] &= is_small(keys[v])  # Numbers that may have labels are for the compiler.
                keys[v] = code_of_bits(keys[v])
    mode, start, lo, hi = scratch.mode, scratch.start, scratch.lo, scratch.hi
    compared_intervals(scratch.base[:count], value_start, keys, good, mode, start, lo, hi)
    predicates = Predicates(scratch.dimension, mode, start, lo, hi)
    judge_rows(row_start, predicates, good, scratch.scalar, scratch.state)
    if scratch.state[0] != WHOLE:
        return -1
    return sort_predicates(Conjunctions(row_start, predicates), scratch.order, scratch.kept_start)
