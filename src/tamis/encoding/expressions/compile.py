"""Expressions to conjunctions of key intervals.

    expression -> NNF -> tree of leaves -> merged -> clauses (+ the tree itself, when its DNF would be too large)

*Merging* is exact for any event: SOME of A or SOME of B is SOME of both, NONE of A and NONE of B is NONE of both, so an OR over
thousands of substrings of one attribute is a single leaf. Where an attribute is declared scalar, SOME and SOME are
intersected as well.

*Clauses* are the DNF if that is small. A tree with a large DNF gets clauses that are necessary but not sufficient. Its `tree` is
kept, and `programs` verify the events that satisfy a clause.

*Factors* are for indexes that match a conjunction of disjunctions as it is. Such a tree is not multiplied out for them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from tamis.encoding.dimensions.dimension import FACET_OF_KIND, NEEDLES, REGEXES, Dimension, Facet, StringDimension
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
from tamis.language.operators import LIKES, NULL_TESTS, POSITIVE, Case, Operator
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
        self._dimensions = dimensions
        self._on_relabel = on_relabel
        self._scalars = scalars
        self._changing = changing
        self._factors = factors

    def compile(self, expression: Expression) -> Compiled:
        return self.compile_many([expression])[0]

    def compile_many(self, expressions: Iterable[Expression]) -> list[Compiled]:
        """Compile expressions together: their constants are added first, so that no label moves halfway."""
        return [_compiled(tree, _factors(tree) if self._factors else ()) for tree in self.trees(expressions)]

    def trees(self, expressions: Iterable[Expression]) -> list[Expression]:
        """Expressions in keys that are not multiplied out: And and Or over leaves, or a constant."""
        normal = [to_nnf(expression) for expression in expressions]
        self.add_constants(node for expression in normal for node in expression.walk() if isinstance(node, Predicate))
        return [self._tree(expression) for expression in normal]

    def add_constants(self, predicates: Iterable[Predicate]) -> None:
        """Add the constants of predicates to their dimensions."""
        constants: dict[tuple[str, Facet], dict[Scalar, None]] = {}
        for predicate in predicates:
            for attribute, facet, values in constants_of(predicate):
                constants.setdefault((attribute, facet), {}).update(dict.fromkeys(values))
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
        dimension = self._dimensions.find(attribute, facet)
        if dimension is None:
            with self._changing():
                dimension = self._dimensions.get(attribute, facet)
        return dimension

    def known_dimension(self, attribute: str, facet: Facet) -> Dimension | None:
        """The dimension, if there is one already."""
        return self._dimensions.find(attribute, facet)

    def is_scalar(self, attribute: str) -> bool:
        """Whether events are known to have at most one value of the attribute."""
        return attribute in self._scalars

    def _tree(self, node: Expression) -> Expression:
        if isinstance(node, And):
            return self._merged_and([self._tree(operand) for operand in node.operands])
        if isinstance(node, Or):
            return _merged_or([self._tree(operand) for operand in node.operands])
        if isinstance(node, Constant):
            return node
        if isinstance(node, Not):
            assert isinstance(node.operand, Predicate)
            return self._predicate(node.operand, negated=True)
        if isinstance(node, TruthTest):
            return self._test(node)
        assert isinstance(node, Predicate)
        return self._predicate(node, negated=False)

    def _test(self, test: TruthTest) -> Expression:
        """A test of a positive predicate: it is UNKNOWN where the event has no key in the dimension."""
        assert isinstance(test.operand, Predicate)
        [(number, intervals)] = self._positive(test.operand, test.operand.operator)
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
            dimension = self._dimensions.get(predicate.attribute, Facet.PRESENCE)
            absent = (operator is Operator.IS_NULL) is not negated
            return (
                Leaf(dimension.number, Mode.ABSENT, NOTHING)
                if absent
                else Leaf(dimension.number, Mode.SOME, EVERYTHING)
            )
        if operator in POSITIVE:
            operator, negated = POSITIVE[operator], not negated
        mode = Mode.NONE if negated else Mode.SOME
        parts = [leaf(number, mode, intervals) for number, intervals in self._positive(predicate, operator)]
        # Only IN over several kinds has more than one part: an OR, whose negation is an AND.
        return all_of(*parts) if negated else any_of(*parts)

    def _positive(self, predicate: Predicate, operator: Operator) -> list[tuple[int, Intervals]]:
        """Dimension and intervals of the positive form."""
        attribute, values = predicate.attribute, predicate.values
        if operator in LIKES:
            return [self._like(attribute, like_pattern(predicate, operator), case_of(predicate, operator))]
        if operator is Operator.RLIKE:
            return [self._pattern(attribute, Facet.REGEX, str(values[0]))]
        if operator is Operator.IP_IN:
            return [self._networks(attribute, [str(value) for value in values])]
        if isinstance(predicate, CasePredicate):
            changed = self._dimensions.get(attribute, Facet(predicate.case.value))
            assert isinstance(changed, StringDimension)
            return [(changed.number, points([changed.label(str(value)) for value in values]))]
        by_facet: dict[Facet, list[int]] = {}
        for value in values:
            facet = facet_of(value)
            by_facet.setdefault(facet, []).append(self._dimensions.get(attribute, facet).key(value))
        return [
            (self._dimensions.get(attribute, facet).number, intervals_of(operator, keys))
            for facet, keys in by_facet.items()
        ]

    def _networks(self, attribute: str, networks: list[str]) -> tuple[int, Intervals]:
        dimension = self._dimensions.get(attribute, Facet.ADDRESS)
        ranges = map(network_range, networks)
        return dimension.number, union(
            between(dimension.key(first), dimension.key(beyond) - 1) for first, beyond in ranges
        )

    def _like(self, attribute: str, pattern: LikePattern, case: Case | None) -> tuple[int, Intervals]:
        facet = like_facet(pattern.shape, case)
        if pattern.shape is LikeShape.GENERAL:
            return self._pattern(attribute, facet, pattern.to_regex())
        if pattern.shape is LikeShape.CONTAINS:
            return self._pattern(attribute, facet, pattern.literal)
        dimension = self._dimensions.get(attribute, facet)
        assert isinstance(dimension, StringDimension)
        if pattern.shape is LikeShape.ANYTHING:
            return dimension.number, EVERYTHING
        if pattern.shape is LikeShape.EXACT:
            return dimension.number, points([dimension.label(pattern.literal)])
        start, end = prefix_range(pattern.literal if pattern.shape is LikeShape.PREFIX else pattern.literal[::-1])
        hi = dimension.label(end) - 1 if end is not None else KEY_MAX
        return dimension.number, between(dimension.label(start), hi)

    def _pattern(self, attribute: str, facet: Facet, pattern: str) -> tuple[int, Intervals]:
        dimension = self._dimensions.get(attribute, facet)
        return dimension.number, points([dimension.key(pattern)])

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
        dimension = self._dimensions[number]
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


def intervals_of(operator: Operator, keys: list[int]) -> Intervals:
    """The key intervals of a positive operator whose literals have these keys."""
    if operator in (Operator.EQ, Operator.IN):
        return points(keys)
    if operator is Operator.LT:
        return between(KEY_MIN, keys[0] - 1)
    if operator is Operator.LE:
        return between(KEY_MIN, keys[0])
    if operator is Operator.GT:
        return between(keys[0] + 1, KEY_MAX)
    if operator is Operator.GE:
        return between(keys[0], KEY_MAX)
    assert operator is Operator.BETWEEN
    return between(keys[0], keys[1])


_LIKE_FACETS = {LikeShape.SUFFIX: "reversed", LikeShape.CONTAINS: "needle", LikeShape.GENERAL: "regex"}


def like_facet(shape: LikeShape, case: Case | None) -> Facet:
    """The facet that serves a LIKE pattern on strings in a case."""
    name = _LIKE_FACETS.get(shape)
    if name is None:
        return Facet(case.value) if case is not None else Facet.STRING
    return Facet(name if case is None else f"{case} {name}")


def case_of(predicate: Predicate, operator: Operator) -> Case | None:
    """The case in which a predicate with a positive operator sees strings."""
    if operator is Operator.ILIKE:
        return Case.LOWER
    return predicate.case if isinstance(predicate, CasePredicate) else None


def like_pattern(predicate: Predicate, operator: Operator) -> LikePattern:
    """The pattern of a LIKE or ILIKE."""
    return LikePattern.read(str(predicate.values[0]), predicate.escape, operator is Operator.ILIKE)


def constants_of(predicate: Predicate) -> Iterable[tuple[str, Facet, list[Scalar]]]:
    """The dimensions that a predicate asks about, and the constants that it puts on them where keys depend on these."""
    operator = POSITIVE.get(predicate.operator, predicate.operator)
    if operator in LIKES:
        pattern = like_pattern(predicate, operator)
        facet = like_facet(pattern.shape, case_of(predicate, operator))
        if pattern.shape is LikeShape.EXACT:
            yield predicate.attribute, facet, [pattern.literal]
        elif pattern.shape in (LikeShape.PREFIX, LikeShape.SUFFIX):
            prefix = pattern.literal if pattern.shape is LikeShape.PREFIX else pattern.literal[::-1]
            yield predicate.attribute, facet, [end for end in prefix_range(prefix) if end is not None]
        elif pattern.shape is LikeShape.ANYTHING:
            yield predicate.attribute, facet, []
        else:
            is_regex = pattern.shape is LikeShape.GENERAL
            yield predicate.attribute, facet, [pattern.to_regex() if is_regex else pattern.literal]
    elif operator is Operator.RLIKE:
        yield predicate.attribute, Facet.REGEX, [predicate.values[0]]
    elif operator in NULL_TESTS:
        yield predicate.attribute, Facet.PRESENCE, []
    elif operator is Operator.IP_IN:
        yield (
            predicate.attribute,
            Facet.ADDRESS,
            [end for value in predicate.values for end in network_range(str(value))],
        )
    elif isinstance(predicate, CasePredicate):
        yield predicate.attribute, Facet(predicate.case.value), list(predicate.values)
    else:
        by_facet: dict[Facet, list[Scalar]] = {}
        for value in predicate.values:
            by_facet.setdefault(facet_of(value), []).append(value)
        for facet, values in by_facet.items():
            yield predicate.attribute, facet, values


def prefix_range(prefix: str) -> tuple[str, str | None]:
    """The strings that begin with `prefix` are those from the first up to, and without, the second (None: no end)."""
    for end in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[end])
        if point < 0x10FFFF:
            # Surrogates are no characters: behind the last one before them comes U+E000.
            return prefix, prefix[:end] + chr(0xE000 if point == 0xD7FF else point + 1)
    return prefix, None
