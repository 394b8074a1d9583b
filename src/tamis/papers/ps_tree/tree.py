"""`PSTree`: a single tree that cuts the predicates of one dimension into disjoint spaces (section 4), for any kind of value.

The registry's indexes have one such tree for each dimension (`forest`), over keys. This tree has the paper's value types and
operators, and takes one predicate at a time.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tamis.errors import EventError, ExpressionError, KindError, OptionError, UnknownPredicateError, shortened
from tamis.kernels.kernel import lean_kernel
from tamis.papers.ps_tree import nodes
from tamis.papers.ps_tree.checking import chain_of, check_all, nodes_of
from tamis.papers.ps_tree.elements import Kind, code_of, elements_of
from tamis.papers.ps_tree.nodes import AFTER, BEFORE, LIVE_NODES, NODES_EACH, NONE, TreeArrays

Cut: TypeAlias = tuple[Any, int]
"""A value, and the side of the cut: before or after it."""
Range: TypeAlias = tuple[Cut | None, Cut | None]
"""A range between two cuts; None is the end of the domain."""

_TEXT_ROOM = 16
"""How many values of the same length have room in `text` when it grows, besides as many elements as nodes have."""

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "not in", "between")


class Space(NamedTuple):
    """A leaf in readable form."""

    text: str
    predicates: int
    events: int
    id: int


class PSTree:
    """A tree over the values of one kind.

    >>> tree = PSTree(Kind.BYTE)
    >>> tree.insert("between", -5, -1), tree.insert("between", 1, 5)
    ([2], [4])
    >>> [space.text for space in tree.spaces()]
    ['[-128,-5)', '[-5,-1]', '(-1,1)', '[1,5]', '(5,127]']
    >>> tree.space(tree.match(2)).text
    '[1,5]'

    Parameters
    ----------
    kind : Kind
    domain : tuple, optional
        The lowest and the highest value; by default, all values of the kind. Strings have no highest value.
    """

    def __init__(self, kind: Kind, domain: tuple[Any, Any] | None = None) -> None:
        self.kind = kind
        self.lowest, self.highest = kind.domain if domain is None else _checked_domain(kind, domain)
        self._arrays = nodes.empty_trees()
        self._text_end = 0
        self.root = _plant(self._arrays)
        self._cuts: dict[Any, tuple[int, Cut]] = {}
        """Place of a cut -> its node, and the form in which it was first made."""
        self._inserted: Counter[Any] = Counter()
        """The places of a predicate's ranges -> how many such predicates there are."""

    @property
    def arrays(self) -> TreeArrays:
        return self._arrays

    # -- predicates

    def insert(self, operator: str, *values: Any) -> list[int]:
        """InsertPredicate (Alg. 1): make the cuts that a predicate needs; returns the leaves that it covers."""
        ranges = self._ranges(operator, values)
        for lower, upper in ranges:
            # Cutting a point above first gives the space ids of the paper's figures.
            point = lower is not None and upper is not None and lower[0] == upper[0]
            for cut in (upper, lower) if point else (lower, upper):
                if cut is not None:
                    self._partition(cut)
        covered = self._covered(ranges)
        self._arrays.leaves.predicates[covered] += 1
        self._inserted[self._places(ranges)] += 1
        return covered

    def delete(self, operator: str, *values: Any) -> None:
        """DeletePredicate: undo an insertion; spaces that no cut separates any more are merged.

        Raises
        ------
        UnknownPredicateError
            If there is no such predicate; nothing has changed then.
        """
        ranges = self._ranges(operator, values)
        places = self._places(ranges)
        if places not in self._inserted:
            raise UnknownPredicateError(
                f"no predicate {_shown(operator, values)} is in the tree. "
                "Hint: delete only inserted predicates, once for each insertion"
            )
        self._inserted[places] -= 1
        if self._inserted[places] == 0:
            del self._inserted[places]
        self._arrays.leaves.predicates[self._covered(ranges)] -= 1
        for cut in (cut for each in ranges for cut in each if cut is not None):
            node, (_, side) = self._cuts[self._place(cut)]
            if _let_go(self._arrays, self.root, node, side):
                del self._cuts[self._place(cut)]

    def covered(self, operator: str, *values: Any) -> list[int]:
        """The leaves that a predicate covers, if its cuts exist.

        Raises
        ------
        UnknownPredicateError
            If a cut does not exist: no inserted predicate begins or ends there.
        """
        ranges = self._ranges(operator, values)
        if any(cut is not None and self._place(cut) not in self._cuts for each in ranges for cut in each):
            raise UnknownPredicateError(
                f"no predicate of the tree cuts where {_shown(operator, values)} begins or ends. Hint: insert it first"
            )
        return self._covered(ranges)

    def matching_events(self, operator: str, *values: Any) -> int:
        """How many past events match a predicate, if its cuts exist: its selectivity (3.3)."""
        return int(self._arrays.leaves.events[self.covered(operator, *values)].sum())

    def _partition(self, cut: Cut) -> None:
        place = self._place(cut)
        value, side = self._cuts[place][1] if place in self._cuts else cut
        path, count = self._written(value)
        self._arrays = nodes.with_room(self._arrays, NODES_EACH, 1)
        lowest = 0 if self.kind is Kind.STRING else place
        many = self._arrays.state[LIVE_NODES]
        self._cuts[place] = _partition(self._arrays, self.root, path, count, side, lowest), (value, side)
        if self._arrays.state[LIVE_NODES] > many:  # a node has this path
            self._text_end += count

    def _written(self, value: Any) -> tuple[int, int]:
        """Write the elements of a value behind those that nodes have; returns where they are, and how many."""
        elements = elements_of(value, self.kind)
        if self._text_end + len(elements) > len(self._arrays.text):
            arrays = nodes.compact_text(self._arrays, nodes_of(self._arrays, self.root))
            self._text_end = len(arrays.text)
            room = np.zeros(self._text_end + _TEXT_ROOM * len(elements), np.int32)
            self._arrays = arrays._replace(text=np.concatenate([arrays.text, room]))
        self._arrays.text[self._text_end : self._text_end + len(elements)] = elements
        return self._text_end, len(elements)

    def _place(self, cut: Cut) -> Any:
        """A key that is equal for equal cuts: behind a number is the same cut as before the next number."""
        value, side = cut
        return (value, side) if self.kind is Kind.STRING else code_of(value, self.kind) + side

    def _places(self, ranges: list[Range]) -> Any:
        """A key that is equal for predicates that make the same cuts and cover the same leaves."""
        return tuple(tuple(None if cut is None else self._place(cut) for cut in each) for each in ranges)

    def _ranges(self, operator: str, values: tuple[Any, ...]) -> list[Range]:
        """The ranges that a predicate covers, ascending.

        Raises
        ------
        ExpressionError
            If the operator does not exist, or takes another number of values.
        KindError
            If a value is not of the tree's kind.
        """
        self._refuse(operator, values)
        first, last = (values[0], BEFORE), (values[-1], AFTER)
        points: list[Range] = [((value, BEFORE), (value, AFTER)) for value in sorted(set(values))]
        if operator in ("=", "in"):
            ranges = points
        elif operator in ("!=", "not in"):
            bounds = [None, *(cut for point in points for cut in point), None]
            ranges = list(zip(bounds[::2], bounds[1::2], strict=True))
        else:
            by_operator: dict[str, Range] = {
                "<": (None, first),
                "<=": (None, last),
                ">": (last, None),
                ">=": (first, None),
                "between": (first, last),
            }
            ranges = [by_operator[operator]]
        return [bounded for each in ranges if (bounded := self._bounded(*each)) is not None]

    def _refuse(self, operator: str, values: tuple[Any, ...]) -> None:
        """Raise an ExpressionError if this is not a predicate on values of the tree's kind."""
        if operator not in OPERATORS:
            raise ExpressionError(f"no operator {shortened(operator)}; the operators are: {', '.join(OPERATORS)}")
        several = operator in ("in", "not in")
        needed = 2 if operator == "between" else 1
        if len(values) < needed or (len(values) > needed and not several):
            right = "one value or more" if several else ("one value", "two values")[needed - 1]
            raise ExpressionError(f"{operator!r} takes {right}, not {len(values)}")
        for value in values:
            if wrong := self.kind.wrong_type(value):
                raise KindError(wrong)

    def _bounded(self, lower: Cut | None, upper: Cut | None) -> Range | None:
        """The range without cuts at the ends of the domain; None if the range is empty."""
        lowest, highest = (self.lowest, BEFORE), (self.highest, AFTER)
        low = self._place(lowest if lower is None else lower)
        if self.highest is None:
            if upper is not None and low >= self._place(upper):
                return None
            return (lower if low > self._place(lowest) else None), upper
        high = self._place(highest if upper is None else upper)
        if max(low, self._place(lowest)) >= min(high, self._place(highest)):
            return None
        return (lower if low > self._place(lowest) else None), (upper if high < self._place(highest) else None)

    def _covered(self, ranges: list[Range]) -> list[int]:
        inner, leaves = self._arrays.nodes, self._arrays.leaves
        covered = []
        for lower, upper in ranges:
            leaf, end = int(inner.g[self.root]), int(inner.l[self.root])
            if lower is not None:
                node, (_, side) = self._cuts[self._place(lower)]
                leaf = int(inner.e[node] if side == BEFORE else inner.g[node])
            if upper is not None:
                node, (_, side) = self._cuts[self._place(upper)]
                end = int(inner.l[node] if side == BEFORE else inner.e[node])
            covered.append(leaf)
            while leaf != end:
                leaf = int(leaves.next[leaf])
                covered.append(leaf)
        return covered

    # -- events

    def match(self, value: Any, *, count: bool = False) -> int:
        """MatchPair (Alg. 3): the leaf of a value; with `count` the value also counts as a past event.

        Raises
        ------
        EventError
            If the value is not of the tree's kind and domain.
        """
        if wrong := self.kind.wrong_type(value):
            raise EventError(wrong)
        if value < self.lowest or (self.highest is not None and value > self.highest):
            raise EventError(
                f"{shortened(value)} is outside the domain of the tree, from {self.lowest!r} to {self.highest!r}"
            )
        path, elements = self._written(value)
        leaf = int(_match_pair(self._arrays, self.root, path, elements))
        self._arrays.leaves.events[leaf] += count
        return leaf

    # -- what it looks like

    def space(self, leaf: int) -> Space:
        """A leaf as it is shown.

        Raises
        ------
        UnknownPredicateError
            If there is no such leaf.
        """
        if leaf not in chain_of(self._arrays, self.root):
            raise UnknownPredicateError(f"the tree has no leaf {shortened(leaf)}")
        return self._space(leaf)

    def _space(self, leaf: int) -> Space:
        leaves = self._arrays.leaves
        after = int(leaves.next[leaf])
        text = self._begin(leaf) + "," + ("..." if self.highest is None else f"{self.highest}]")
        if after != NONE:
            begin = self._begin(after)
            text = f"{self._begin(leaf)},{begin[1:]}{')' if begin[0] == '[' else ']'}"
        counters = int(leaves.predicates[leaf]), int(leaves.events[leaf])
        return Space(text, *counters, int(leaves.space[leaf]))

    def _begin(self, leaf: int) -> str:
        """`[v` if a leaf begins at a value, `(v` if it begins behind it."""
        node = int(self._arrays.leaves.below[leaf])
        if node == self.root:
            return f"[{self.lowest!r}"
        side = BEFORE if self._arrays.nodes.e[node] == leaf else AFTER
        value = next(form[0] for at, form in self._cuts.values() if at == node)
        return f"{'[' if side == BEFORE else '('}{value!r}"

    def spaces(self) -> list[Space]:
        """All leaves, ascending."""
        return [self._space(leaf) for leaf in chain_of(self._arrays, self.root)]

    def check(self) -> None:
        """Raise an AssertionError if an invariant does not hold."""
        check_all(self._arrays, [self.root])
        assert len(chain_of(self._arrays, self.root)) == 1 + len(self._cuts)


def _checked_domain(kind: Kind, domain: tuple[Any, Any]) -> tuple[Any, Any]:
    """A valid domain of a tree."""
    lowest, highest = domain
    for value in (lowest,) if highest is None and kind is Kind.STRING else domain:
        if wrong := kind.wrong_type(value):
            raise OptionError(f"the domain of a tree: {wrong}")
    first, last = kind.domain
    if lowest < first or (highest is not None and lowest > highest) or (last is not None and highest > last):
        raise OptionError(
            f"the domain of a tree of kind {kind.name} must lie within {first!r} to {last!r}, not run "
            f"from {shortened(lowest)} to {shortened(highest)}"
        )
    return lowest, highest


def _shown(operator: str, values: tuple[Any, ...]) -> str:
    return f"{operator} {', '.join(shortened(value) for value in values)}"


@lean_kernel
def _plant(arrays: TreeArrays) -> int:
    return nodes.plant(arrays, 0)


@lean_kernel
def _partition(arrays: TreeArrays, root: int, path: int, count: int, side: int, lowest: int) -> int:
    node, _ = nodes.partition(arrays, root, path, count, side, lowest)
    return node


@lean_kernel
def _match_pair(arrays: TreeArrays, root: int, path: int, count: int) -> int:
    return nodes.match_pair(arrays, root, path, count)


@lean_kernel
def _let_go(arrays: TreeArrays, root: int, node: int, side: int) -> bool:
    """Undo one cut; returns whether the cut is gone."""
    gone = nodes.let_go(arrays, node, side) != NONE
    if gone and arrays.nodes.e[node] == NONE:
        nodes.prune(arrays, root, node)
    return gone
