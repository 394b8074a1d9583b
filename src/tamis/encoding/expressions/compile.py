"""Expressions to conjunctions of key intervals.

    expression -> NNF -> tree of leaves -> merged -> clauses (+ the tree itself, when its DNF would be too large)

*Merging* is exact for any event: SOME of A or SOME of B is SOME of both, and NONE of A and NONE of B is NONE of both. So an OR
over thousands of substrings of one attribute is a single leaf. If an attribute is declared scalar, an AND of SOME and SOME is
the SOME of their intersection.

*Clauses* are the DNF if that is small. A tree with a large DNF gets clauses that are necessary but not sufficient. Its `tree` is
kept, and `programs` verify the events that satisfy a clause.

*Factors* are for indexes that match a conjunction of disjunctions as it is. Such a tree is not multiplied out for them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from tamis.encoding.dimensions.dimension import FACET_OF_KIND, NEEDLES, REGEXES, Dimension, Facet
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.intervals import (
    EVERYTHING,
    NOTHING,
    Intervals,
    between,
    complement,
    intersection,
    points,
    union,
)
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.labels import Relabelling
from tamis.encoding.dimensions.leaf import Leaf, Mode, leaf
from tamis.language.addresses import network_range
from tamis.language.expression import (
    FALSE,
    TRUE,
    And,
    CasePredicate,
    Constant,
    Expression,
    Not,
    Or,
    Predicate,
    TruthTest,
    all_of,
    any_of,
)
from tamis.language.like import LikePattern, LikeShape
from tamis.language.normal import to_nnf
from tamis.language.operators import COMPARED, LIKES, NULL_TESTS, POSITIVE, Case, Operator
from tamis.language.values import Scalar, kind_of

MAX_CLAUSES = 64
"""The most clauses that multiplying out a conjunction of disjunctions may give."""

Clause = tuple[Leaf, ...]
OnRelabel = Callable[[int, Relabelling], None]


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression in keys. It matches only events that satisfy some clause, and all of them if there is no tree.

    If it has factors, it has no clauses: it matches events for which every factor has a true leaf.
    """

    clauses: tuple[Clause, ...]
    tree: Expression | None = None
    factors: tuple[Clause, ...] = ()


class Compiler:
    """Compiles expressions over one set of dimensions, adding to them what is new.

    Dimensions change only inside `changing`, and not for long. When labels of a dimension must move, `on_relabel` is called: it
    moves them, and changes all stored keys of the dimension. With `factors`, conjunctions of disjunctions stay as they are.
    """

    def __init__(
        self,
        dimensions: Dimensions,
        on_relabel: OnRelabel,
        scalars: Container[str] = (),
        changing: Callable[[], AbstractContextManager[None]] = nullcontext,
        factors: bool = False,
    ) -> None:
        self.dimensions = dimensions
        self._on_relabel = on_relabel
        self._scalars = scalars
        self._changing = changing
        self._factors = factors
        self._asked_by: dict[int, list[_Asked]] | None = None
        """What predicates ask, by their identity, while expressions with them are compiled."""

    def compile(self, expression: Expression) -> Compiled:
        return self.compile_many([expression])[0]

    def compile_many(self, expressions: Iterable[Expression]) -> list[Compiled]:
        """Compile expressions together: their constants are added first, so that no label moves halfway."""
        return [_compiled(tree, _factors(tree) if self._factors else ()) for tree in self.trees(expressions)]

    def trees(self, expressions: Iterable[Expression]) -> list[Expression]:
        """Expressions in keys that are not multiplied out: And and Or over leaves, or a constant."""
        normal = [to_nnf(expression) for expression in expressions]
        before, self._asked_by = self._asked_by, {}
        try:
            self.add_constants(
                node for expression in normal for node in expression.walk() if isinstance(node, Predicate)
            )
            return [self._tree(expression) for expression in normal]
        finally:
            self._asked_by = before

    def add_constants(self, predicates: Iterable[Predicate]) -> None:
        """Add the constants of predicates to their dimensions."""
        constants: dict[tuple[str, Facet], dict[Scalar, None]] = {}
        for predicate in predicates:
            for asked in self._asked(predicate):
                known = constants.setdefault((predicate.attribute, asked.facet), {})
                for constant in asked.constants:
                    known[constant] = None
        for (attribute, facet), added in constants.items():
            self.add_column(attribute, facet, added)

    def add_column(self, attribute: str, facet: Facet, constants: Iterable[Scalar]) -> None:
        """Add constants to one dimension."""
        dimension = self.dimension(attribute, facet)
        missing = dimension.missing(constants)
        if missing:
            with self._changing():
                relabellings = dimension.add(missing)
            for relabelling in relabellings:
                self._on_relabel(dimension.number, relabelling)

    def dimension(self, attribute: str, facet: Facet) -> Dimension:
        """The dimension, made when it is first asked for."""
        dimension = self.dimensions.find(attribute, facet)
        if dimension is None:
            with self._changing():
                dimension = self.dimensions.get(attribute, facet)
        return dimension

    def known_dimension(self, attribute: str, facet: Facet) -> Dimension | None:
        """The dimension, if there is one already."""
        return self.dimensions.find(attribute, facet)

    def is_scalar(self, attribute: str) -> bool:
        """Whether events are known to have at most one value of the attribute."""
        return attribute in self._scalars

    def _asked(self, predicate: Predicate) -> list[_Asked]:
        if self._asked_by is None:
            return _asked(predicate)
        asked = self._asked_by.get(id(predicate))
        if asked is None:
            asked = self._asked_by[id(predicate)] = _asked(predicate)
        return asked

    def _tree(self, node: Expression) -> Expression:
        if isinstance(node, And):
            return self._merged_and(self._operands(node, negated=True))
        if isinstance(node, Or):
            return _merged_or(self._operands(node, negated=False))
        if isinstance(node, Constant):
            return node
        if isinstance(node, Not):
            assert isinstance(node.operand, Predicate)
            return self._predicate(node.operand, negated=True)
        if isinstance(node, TruthTest):
            return self._test(node)
        assert isinstance(node, Predicate)
        return self._predicate(node, negated=False)

    def _operands(self, node: And | Or, negated: bool) -> list[Expression]:
        """The operands in keys. Those that ask about points, all negated or none, become one leaf for each dimension.

        Long lists of patterns are such operands. Merging their leaves later would take most of the time of compiling them.
        """
        operands: list[Expression] = []
        keys: dict[int, list[int]] = {}
        for operand in node.operands:
            predicate = operand.operand if isinstance(operand, Not) else operand
            if isinstance(predicate, Predicate) and negated is (
                (predicate is not operand) is not (predicate.operator in POSITIVE)
            ):
                asked = self._asked(predicate)
                if len(asked) == 1 and asked[0].intervals is points and predicate.operator not in NULL_TESTS:
                    dimension = self.dimensions.get(predicate.attribute, asked[0].facet)
                    keys.setdefault(dimension.number, []).extend(map(dimension.constant_key, asked[0].constants))
                    continue
            operands.append(self._tree(operand))
        mode = Mode.NONE if negated else Mode.SOME
        return [leaf(number, mode, points(same)) for number, same in keys.items()] + operands

    def _test(self, test: TruthTest) -> Expression:
        """A test of a positive predicate: it is UNKNOWN where the event has no key in the dimension."""
        assert isinstance(test.operand, Predicate)
        [(number, intervals)] = self._positive(test.operand)
        if test.accepted == {True, False}:
            return Leaf(number, Mode.SOME, EVERYTHING)
        truths: list[Expression] = []
        if True in test.accepted:
            truths.append(leaf(number, Mode.SOME, intervals))
        if False in test.accepted:
            truths.append(leaf(number, Mode.NONE, intervals))
        if None in test.accepted:
            truths.append(Leaf(number, Mode.ABSENT, NOTHING))
        return _merged_or(truths)

    def _predicate(self, predicate: Predicate, negated: bool) -> Expression:
        operator = predicate.operator
        if operator in NULL_TESTS:
            dimension = self.dimensions.get(predicate.attribute, Facet.PRESENCE)
            absent = (operator is Operator.IS_NULL) is not negated
            return (
                Leaf(dimension.number, Mode.ABSENT, NOTHING)
                if absent
                else Leaf(dimension.number, Mode.SOME, EVERYTHING)
            )
        negated = negated is not (operator in POSITIVE)
        mode = Mode.NONE if negated else Mode.SOME
        parts = [leaf(number, mode, intervals) for number, intervals in self._positive(predicate)]
        # Only IN over several kinds has more than one part: an OR, whose negation is an AND.
        return all_of(*parts) if negated else any_of(*parts)

    def _positive(self, predicate: Predicate) -> list[tuple[int, Intervals]]:
        """Dimension and intervals of the positive form."""
        found = []
        for asked in self._asked(predicate):
            dimension = self.dimensions.get(predicate.attribute, asked.facet)
            keys = [dimension.constant_key(constant) for constant in asked.constants]
            found.append((dimension.number, asked.intervals(keys)))
        return found

    def _merged_and(self, operands: list[Expression]) -> Expression:
        """An AND with NONE-leaves of a dimension united and, on scalars, all leaves of a dimension intersected."""
        groups, rest = _by_dimension(operands)
        merged: list[Expression] = []
        for (number, mode), leaves in groups.items():
            if mode is Mode.ABSENT:
                merged.append(leaves[0])
            elif self._has_one_key(number):
                merged.append(
                    _intersected(number, groups) if mode is Mode.SOME or (number, Mode.SOME) not in groups else TRUE
                )
            elif mode is Mode.NONE:
                merged.append(leaf(number, mode, union(part.intervals for part in leaves)))
            else:
                merged.extend(dict.fromkeys(leaves))
        operands = [operand for operand in merged + rest if operand != TRUE]
        return FALSE if FALSE in operands else all_of(*operands)

    def _has_one_key(self, number: int) -> bool:
        """Whether an event has at most one key in the dimension: its attribute is declared scalar, its facet no set."""
        dimension = self.dimensions[number]
        return self.is_scalar(dimension.attribute) and dimension.facet not in _SET_FACETS


def _compiled(tree: Expression, factors: tuple[Clause, ...]) -> Compiled:
    if factors:
        return Compiled((), None, factors)
    clauses, exact = _clauses(tree)
    return Compiled(tuple(dict.fromkeys(clauses)), None if exact else tree)


def _factors(tree: Expression) -> tuple[Clause, ...]:
    """The disjunctions of which a tree is the conjunction. None if it is another tree, or needs no multiplying out.

    None either if all are long: an index files an expression under every leaf of its shortest factor.
    """
    if not isinstance(tree, And):
        return ()
    factors = [tuple(each.operands) if isinstance(each, Or) else (each,) for each in tree.operands]
    leaves = [tuple(each for each in factor if isinstance(each, Leaf)) for factor in factors]
    sizes = [len(factor) for factor in leaves]
    if sizes != [len(factor) for factor in factors] or max(sizes) == 1 or min(sizes) > MAX_CLAUSES:
        return ()
    return tuple(leaves)


_SET_FACETS = NEEDLES | REGEXES


def _intersected(number: int, groups: dict[tuple[int, Mode], list[Leaf]]) -> Expression:
    """All leaves of a dimension in which an event has one key, as one."""
    common = EVERYTHING
    for part in groups.get((number, Mode.SOME), []):
        common = intersection(common, part.intervals)
    for part in groups.get((number, Mode.NONE), []):
        common = intersection(common, complement(part.intervals))
    return leaf(number, Mode.SOME, common)


def _merged_or(operands: list[Expression]) -> Expression:
    """An OR with SOME-leaves of a dimension united."""
    groups, rest = _by_dimension(operands)
    merged: list[Expression] = []
    for (number, mode), leaves in groups.items():
        if mode is Mode.SOME:
            merged.append(leaf(number, mode, union(part.intervals for part in leaves)))
        else:
            merged.extend(dict.fromkeys(leaves))
    operands = [operand for operand in merged + rest if operand != FALSE]
    return TRUE if TRUE in operands else any_of(*operands)


def _by_dimension(operands: list[Expression]) -> tuple[dict[tuple[int, Mode], list[Leaf]], list[Expression]]:
    groups: dict[tuple[int, Mode], list[Leaf]] = {}
    rest: list[Expression] = []
    for operand in operands:
        if isinstance(operand, Leaf):
            groups.setdefault((operand.dimension, operand.mode), []).append(operand)
        else:
            rest.append(operand)
    return groups, rest


def _clauses(tree: Expression) -> tuple[list[Clause], bool]:
    """Clauses of which every matching event satisfies one, and whether they are also sufficient."""
    if isinstance(tree, Leaf):
        return [(tree,)], True
    if isinstance(tree, Constant):
        return ([()] if tree.value else []), True
    parts = [_clauses(operand) for operand in tree.operands]
    exact = all(part_exact for _, part_exact in parts)
    if isinstance(tree, Or):
        return [clause for clauses, _ in parts for clause in clauses], exact
    # Smallest factors first: the single leaves make one clause, then disjunctions as long as there is room. A factor
    # left out weakens the clauses, which stay necessary.
    single = tuple(leaf for clauses, _ in parts if len(clauses) == 1 for leaf in clauses[0])
    product: list[Clause] = [single]
    started = bool(single)
    for clauses in sorted((clauses for clauses, _ in parts if len(clauses) != 1), key=len):
        if started and len(product) * len(clauses) > MAX_CLAUSES:
            exact = False
            break
        product = [left + right for left in product for right in clauses]
        started = True
    return [tuple(dict.fromkeys(clause)) for clause in product], exact


def facet_of(value: Scalar) -> Facet:
    """The facet in which a literal is compared with values of its kind."""
    kind = kind_of(value)
    assert kind is not None
    return FACET_OF_KIND[kind]


_ToConstants: TypeAlias = Callable[[Sequence[Scalar]], Sequence[Scalar]]
"""From the literals of a predicate to its constants."""
_ToIntervals: TypeAlias = Callable[[Sequence[int]], Intervals]
"""From the keys of the constants to the intervals."""


class _Asked(NamedTuple):
    """What a predicate in its positive form asks about one dimension."""

    facet: Facet
    constants: Sequence[Scalar]
    intervals: _ToIntervals


def _asked(predicate: Predicate) -> list[_Asked]:
    """What a predicate asks about each of its dimensions. Only IN over several kinds has more than one."""
    operator, values = POSITIVE.get(predicate.operator, predicate.operator), predicate.values
    if operator in COMPARED:
        if isinstance(predicate, CasePredicate):
            return [_Asked(Facet(predicate.case.value), values, points)]
        by_facet: dict[Facet, list[Scalar]] = {}
        for value in values:
            by_facet.setdefault(facet_of(value), []).append(value)
        return [_Asked(facet, same, _COMPARED[operator]) for facet, same in by_facet.items()]
    if operator in LIKES:
        case = predicate.case if isinstance(predicate, CasePredicate) else None
        folds = operator is Operator.ILIKE
        return [_asked_like(LikePattern.read(str(values[0]), predicate.escape, folds), Case.LOWER if folds else case)]
    facet, constants, intervals = _OTHERS[operator]
    return [_Asked(facet, constants(values), intervals)]


_NAMES = {LikeShape.SUFFIX: "reversed", LikeShape.CONTAINS: "needle", LikeShape.GENERAL: "regex"}
_LIKE_FACETS = {
    (case, shape): Facet(" ".join(filter(None, (case, _NAMES.get(shape)))) or Facet.STRING)
    for case in (None, *Case)
    for shape in LikeShape
}


def _asked_like(pattern: LikePattern, case: Case | None) -> _Asked:
    """What a LIKE pattern asks about strings in a case."""
    shape = pattern.shape
    facet = _LIKE_FACETS[case, shape]
    if shape is LikeShape.ANYTHING:
        return _Asked(facet, (), _everything)
    if shape in (LikeShape.PREFIX, LikeShape.SUFFIX):
        start, end = prefix_range(pattern.literal if shape is LikeShape.PREFIX else pattern.literal[::-1])
        return _Asked(facet, [start] if end is None else [start, end], _between_pairs)
    return _Asked(facet, [pattern.to_regex() if shape is LikeShape.GENERAL else pattern.literal], points)


_COMPARED: dict[Operator, _ToIntervals] = {
    Operator.EQ: points,
    Operator.IN: points,
    Operator.LT: lambda keys: between(KEY_MIN, keys[0] - 1),
    Operator.LE: lambda keys: between(KEY_MIN, keys[0]),
    Operator.GT: lambda keys: between(keys[0] + 1, KEY_MAX),
    Operator.GE: lambda keys: between(keys[0], KEY_MAX),
    Operator.BETWEEN: lambda keys: between(keys[0], keys[1]),
}


def _everything(keys: Sequence[int]) -> Intervals:
    return EVERYTHING


def _between_pairs(keys: Sequence[int]) -> Intervals:
    """From each first key up to, and without, the key behind it. The last pair may lack its end."""
    if len(keys) == 2:
        return between(keys[0], keys[1] - 1)
    return union(between(lo, hi - 1) for lo, hi in zip_longest(keys[::2], keys[1::2], fillvalue=KEY_MAX + 1))


def _network_ends(networks: Sequence[Scalar]) -> list[Scalar]:
    return [end for network in networks for end in network_range(str(network))]


_OTHERS: dict[Operator, tuple[Facet, _ToConstants, _ToIntervals]] = {
    Operator.RLIKE: (Facet.REGEX, list, points),
    Operator.IP_IN: (Facet.ADDRESS, _network_ends, _between_pairs),
    Operator.IS_NULL: (Facet.PRESENCE, list, _everything),
}
"""What the operators ask that are neither comparisons nor LIKE."""


def prefix_range(prefix: str) -> tuple[str, str | None]:
    """The strings that begin with `prefix` are those from the first up to, and without, the second (None: no end)."""
    for end in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[end])
        if point < 0x10FFFF:
            # Surrogates are not characters: U+E000 follows the last character before them.
            return prefix, prefix[:end] + chr(0xE000 if point == 0xD7FF else point + 1)
    return prefix, None
