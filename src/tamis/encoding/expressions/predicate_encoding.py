"""Subscriptions in predicate form to conjunctions, without a Python loop per predicate.

Kernels turn comparisons, IN and BETWEEN into intervals. Patterns (LIKE, RLIKE) and tests for null are compiled once per distinct
predicate. All other rows are left to the `Compiler`, one by one: IN over several kinds, leaves to be merged, and every row with
an error in it. So one place decides, and one place reports errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.dimensions.dimension import FACET_OF_KIND, Facet, NumberDimension, StringDimension
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN, double_codes
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.compile import Compiled, Compiler
from tamis.encoding.expressions.conjunctions import Conjunctions, conjunctions_taken
from tamis.encoding.expressions.predicate_rows import OPERATOR_CODE, OPERATORS, PredicateRows
from tamis.encoding.expressions.predicates import Predicates
from tamis.errors import ExpressionError
from tamis.kernels.kernel import kernel, lean_kernel
from tamis.kernels.numbers import Bools, I64s, U8s
from tamis.kernels.ranges import grouped
from tamis.kernels.sorting import sort_part
from tamis.language.expression import Predicate
from tamis.language.operators import COMPARED, ORDERED, POSITIVE, ROWS, Operator
from tamis.language.values import Kind, is_moment

# All columns of `plain_row` are 64 bits wide.
Flags = Bools | I64s
Codes = U8s | I64s

_EQ, _LT, _LE, _GT, _GE, _IN, _BETWEEN = (
    OPERATOR_CODE[Operator(text)] for text in ("=", "<", "<=", ">", ">=", "in", "between")
)
_KINDS = list(Kind)
_NO_KIND = len(_KINDS)
_BOOLEAN = _KINDS.index(Kind.BOOLEAN)
_SOME, _NONE, _ABSENT = int(Mode.SOME), int(Mode.NONE), int(Mode.ABSENT)
# The states of a row: it is a conjunction as it stands, it is never true, or the compiler must see it.
WHOLE, _NEVER, _LEFT = 0, 1, 2


class EncodedRows(NamedTuple):
    """The conjunctions of the rows in `rows`, and the rows that no event satisfies. All other rows are for the compiler."""

    rows: I64s
    conjunctions: Conjunctions
    never: I64s


def encode_rows(table: PredicateRows, compiler: Compiler) -> EncodedRows:
    """Encode the rows whose predicates can be encoded one by one."""
    specials = _Specials(table)
    # All constants are added before any key is asked for: a label that moves later would leave keys behind.
    compiler.add_constants(specials.distinct)
    columns = list(_labelled_columns(table))
    for column in columns:
        compiler.add_column(column.attribute, column.facet, column.constants())
    keys = np.zeros(int(table.value_start[-1]), np.int64)
    for kind, positions, literals in table.values:
        if kind is not Kind.STRING:
            keys[positions] = _unlabelled_keys(kind, literals)
    for column in columns:
        keys[column.positions] = column.keys(compiler)
    kind_of, good = _kinds(table)
    good &= _takes(table.operator, np.diff(table.value_start), kind_of)
    encoded = _compared_predicates(table, kind_of, keys, good, compiler)
    encoded = specials.placed(encoded, good, compiler)
    scalar = np.array([compiler.is_scalar(name) for name in table.attributes], np.bool_)[table.attribute]
    state = np.empty(len(table), np.uint8)
    judge_rows(table.start, encoded, good, scalar, state)
    rows = np.flatnonzero(state == WHOLE)
    conjunctions = conjunctions_taken(Conjunctions(table.start, encoded), rows)
    return EncodedRows(rows, conjunctions, np.flatnonzero(state == _NEVER))


def add_constants(tables: Iterable[PredicateRows], compiler: Compiler) -> None:
    """Add the constants of several tables together. Added table by table, they would move labels again and again."""
    constants: dict[tuple[str, Facet], dict[Any, None]] = {}
    predicates: dict[Predicate, None] = {}
    for table in tables:
        predicates.update(_Specials(table).distinct)
        for column in _labelled_columns(table):
            constants.setdefault((column.attribute, column.facet), {}).update(dict.fromkeys(column.constants()))
    compiler.add_constants(predicates)
    for (attribute, facet), added in constants.items():
        compiler.add_column(attribute, facet, added)


class _Column(NamedTuple):
    """Literals of one attribute and facet whose keys are labels: strings, and integers beyond 2**53."""

    attribute: str
    facet: Facet
    positions: I64s
    literals: Any

    def constants(self) -> list[Any]:
        distinct = pc.unique(self.literals) if self.facet is Facet.STRING else pa.array(np.unique(self.literals))
        return list(distinct.to_pylist())

    def keys(self, compiler: Compiler) -> I64s:
        dimension = compiler.dimension(self.attribute, self.facet)
        if isinstance(dimension, StringDimension):
            encoded = pc.dictionary_encode(self.literals)
            return np.asarray(dimension.keys(encoded.dictionary)[encoded.indices.to_numpy()])
        assert isinstance(dimension, NumberDimension)
        return dimension.keys(self.literals)


def _labelled_columns(table: PredicateRows) -> Iterator[_Column]:
    """The literals whose keys are labels, by attribute and facet. Literals of patterns are not compared, so they have no keys."""
    lengths = np.diff(table.value_start)
    attribute = np.repeat(table.attribute, lengths)
    is_compared = np.array([operator in COMPARED for operator in OPERATORS], np.bool_)[table.operator]
    compared = np.repeat(is_compared, lengths)
    for kind, positions, literals in table.values:
        if kind is Kind.STRING:
            chosen = np.flatnonzero(compared[positions])
        elif kind is Kind.NUMBER:
            chosen = np.flatnonzero(NumberDimension.labelled(literals))
        else:
            continue
        order = chosen[grouped(attribute[positions[chosen]])]
        owner = attribute[positions[order]]
        bounds = np.flatnonzero(np.diff(owner, prepend=-1, append=-1))
        for start, end in itertools.pairwise(bounds):
            chosen = order[start:end]
            of_one = literals.take(pa.array(chosen)) if kind is Kind.STRING else literals[chosen]
            yield _Column(table.attributes[owner[start]], FACET_OF_KIND[kind], positions[chosen], of_one)


def _unlabelled_keys(kind: Kind, literals: Any) -> I64s:
    """The keys of literals that need no labels."""
    if kind is Kind.NUMBER:
        return double_codes(literals.astype(np.float64))
    keys: I64s = literals.astype(np.int64)
    return keys


def _fine(kind: Kind, literals: Any) -> Any:
    """Which literals are inside the language: finite numbers, timestamps of the years 1 to 9999."""
    if kind is Kind.TIMESTAMP:
        return is_moment(literals)
    return np.isfinite(literals) if kind is Kind.NUMBER and literals.dtype == np.float64 else True


def _kinds(table: PredicateRows) -> tuple[I64s, Bools]:
    """The kind of each predicate's first literal, and whether all its literals are of this kind and of the language."""
    kinds = np.full(table.value_start[-1], _NO_KIND, np.int64)
    fine = np.zeros(table.value_start[-1], np.bool_)
    for kind, positions, literals in table.values:
        # A second field that is set in the same variant makes the value wrong.
        fine[positions] = (kinds[positions] == _NO_KIND) & _fine(kind, literals)
        kinds[positions] = _KINDS.index(kind)
    kind_of, good = np.empty(len(table.attribute), np.int64), np.empty(len(table.attribute), np.bool_)
    _one_kind(table.value_start, kinds, fine, kind_of, good)
    return kind_of, good


def _takes(operators: I64s, lengths: I64s, kind: I64s) -> Bools:
    """Whether each predicate is a comparison, IN or BETWEEN whose operator takes this number and this kind of literals."""
    low, high = np.ones(len(OPERATORS), np.int64), np.zeros(len(OPERATORS), np.int64)
    ordered = np.zeros(len(OPERATORS), np.bool_)
    for operator, code in OPERATOR_CODE.items():
        if operator in COMPARED:
            low[code], high[code], _ = ROWS[operator].takes
            ordered[code] = operator in ORDERED
    fits = (lengths >= low[operators]) & (lengths <= high[operators])
    return np.asarray(fits & ~(ordered[operators] & (kind == _BOOLEAN)))


def _compared_predicates(table: PredicateRows, kind: I64s, keys: I64s, good: Bools, compiler: Compiler) -> Predicates:
    """The good predicates in columns. The others have no interval."""
    pairs = table.attribute * len(_KINDS) + np.where(good, kind, 0)
    numbers = np.zeros(len(table.attributes) * len(_KINDS), np.int32)
    for pair in np.flatnonzero(np.bincount(pairs[good], minlength=len(numbers))).tolist():
        numbers[pair] = _dimension(table, pair, compiler)
    base = np.array([OPERATOR_CODE[POSITIVE.get(operator, operator)] for operator in OPERATORS], np.int64)
    mode = np.array([Mode.NONE if operator in POSITIVE else Mode.SOME for operator in OPERATORS], np.uint8)
    start = np.zeros(len(pairs) + 1, np.int64)
    lo, hi = np.empty(len(keys) + 1, np.int64), np.empty(len(keys) + 1, np.int64)
    modes = mode[table.operator]
    filled = compared_intervals(base[table.operator], table.value_start, keys, good, modes, start, lo, hi)
    return Predicates(numbers[pairs], modes, start, lo[:filled], hi[:filled])


def _dimension(table: PredicateRows, pair: int, compiler: Compiler) -> int:
    attribute, kind = divmod(pair, len(_KINDS))
    return compiler.dimension(table.attributes[attribute], FACET_OF_KIND[_KINDS[kind]]).number


class _Specials:
    """Distinct predicates that are compiled one by one: patterns, tests for null and ip_in."""

    def __init__(self, table: PredicateRows) -> None:
        special = np.array([operator not in COMPARED for operator in OPERATORS], np.bool_)
        self._at = np.flatnonzero(special[table.operator])
        self._predicates: list[Predicate | None] = []
        for p in self._at.tolist():
            try:
                self._predicates.append(table.predicate(p))
            except ExpressionError:
                self._predicates.append(None)  # its row goes to the compiler, which says what is wrong and where
        self.distinct = dict.fromkeys(predicate for predicate in self._predicates if predicate is not None)

    def placed(self, encoded: Predicates, good: Bools, compiler: Compiler) -> Predicates:
        """Put the special predicates in their places among the compared ones, and mark them good if they are."""
        if not len(self._at):
            return encoded
        compiled = compiler.compile_many(self.distinct)
        leaves = dict(zip(self.distinct, map(_single_leaf, compiled), strict=True))
        dimension, mode, size = encoded.dimension.copy(), encoded.mode.copy(), np.diff(encoded.start)
        lo: list[int] = []
        hi: list[int] = []
        for p, predicate in zip(self._at.tolist(), self._predicates, strict=True):
            leaf = leaves[predicate] if predicate is not None else None
            if leaf is not None:
                good[p] = True
                dimension[p], mode[p], size[p] = leaf.dimension, leaf.mode, len(leaf.intervals)
                lo.extend(low for low, _ in leaf.intervals)
                hi.extend(high for _, high in leaf.intervals)
        special = np.zeros(len(dimension), np.bool_)
        special[self._at] = True
        from_special = np.repeat(special, size)
        all_lo, all_hi = np.empty(len(from_special), np.int64), np.empty(len(from_special), np.int64)
        all_lo[~from_special], all_hi[~from_special] = encoded.lo, encoded.hi
        all_lo[from_special], all_hi[from_special] = lo, hi
        return Predicates(dimension, mode, np.append(0, np.cumsum(size)), all_lo, all_hi)


def _single_leaf(compiled: Compiled) -> Leaf | None:
    alone = len(compiled.clauses) == 1 and len(compiled.clauses[0]) == 1
    return compiled.clauses[0][0] if alone else None


@kernel
def _one_kind(value_start: I64s, kinds: I64s, fine: Bools, kind_of: I64s, good: Bools) -> None:
    for p in range(len(kind_of)):
        first, last = value_start[p], value_start[p + 1]
        kind_of[p] = kinds[first] if first < last else _NO_KIND
        good[p] = first < last
        for v in range(first, last):
            if kinds[v] != kind_of[p] or not fine[v]:
                good[p] = False


@lean_kernel
def compared_intervals(
    base: I64s, value_start: I64s, keys: I64s, good: Flags, mode: Codes, start: I64s, lo: I64s, hi: I64s
) -> int:
    """Write the intervals of every good predicate; returns their number. The keys of IN are sorted in their place.

    BETWEEN with its ends the wrong way round has no interval. NOT BETWEEN then asks for all keys.
    """
    filled = 0
    for p in range(len(base)):
        first, last = value_start[p], value_start[p + 1]
        if good[p] and base[p] == _IN:
            sort_part(keys, first, last)
            for v in range(first, last):
                if v > first and keys[v] <= hi[filled - 1] + 1:
                    hi[filled - 1] = keys[v]
                else:
                    lo[filled] = keys[v]
                    hi[filled] = keys[v]
                    filled += 1
        elif good[p]:
            key = keys[first]
            low, high = KEY_MIN, KEY_MAX
            if base[p] == _EQ:
                low, high = key, key
            elif base[p] == _LT:
                high = key - 1
            elif base[p] == _LE:
                high = key
            elif base[p] == _GT:
                low = key + 1
            elif base[p] == _GE:
                low = key
            elif base[p] == _BETWEEN:
                low, high = key, keys[first + 1]
            if low > high and mode[p] == _NONE:
                low, high = KEY_MIN, KEY_MAX
                mode[p] = _SOME
            if low <= high:
                lo[filled] = low
                hi[filled] = high
                filled += 1
        start[p + 1] = filled
    return filled


@lean_kernel
def judge_rows(start: I64s, encoded: Predicates, good: Flags, scalar: Flags, state: Codes) -> None:
    """Write the state of every row. A row with an error in it is left to the compiler, even if it is never true."""
    for row in range(len(state)):
        state[row] = WHOLE
        for p in range(start[row], start[row + 1]):
            if not good[p]:
                state[row] = _LEFT
                break
            if encoded.start[p] == encoded.start[p + 1] and encoded.mode[p] != _ABSENT:
                state[row] = _NEVER
            for q in range(start[row], p):
                merge = scalar[p] or (encoded.mode[p] == _NONE and encoded.mode[q] == _NONE)
                if merge and encoded.dimension[p] == encoded.dimension[q] and state[row] == WHOLE:
                    state[row] = _LEFT
            if state[row] == _LEFT:
                break
