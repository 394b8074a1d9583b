"""An expression with blanks in place of its literals.

A template is made from a text that was read word by word. It is filled with the literals of other texts that are otherwise
equal. It holds *steps*, in the order in which the nodes of the tree are made: operands before operators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from tamis.language.expression import And, Expression, Not, Or, Predicate, TruthTest
from tamis.language.joins import Exists
from tamis.language.literals import read_date, read_decimal, read_integer, read_timestamp
from tamis.language.operators import CHECKED, SETS
from tamis.language.quoting import quoted
from tamis.language.values import Scalar, distinct

if TYPE_CHECKING:  # These types come with sqlglot, which a text should load, not an import.
    from tamis.language.predicate_reader import Reading, Use


def _string(literal: str) -> str:
    return literal[1:-1].replace("''", "'")


def _date(literal: str) -> date:
    return read_date(_string(literal))


def _timestamp(literal: str) -> datetime:
    return read_timestamp(_string(literal))


def _negative_integer(literal: str) -> int:
    return read_integer(literal, negative=True)


def _negative_decimal(literal: str) -> float:
    return read_decimal(literal, negative=True)


FORMS: dict[str, Callable[[str], Scalar]] = {
    "string": _string,
    "integer": read_integer,
    "-integer": _negative_integer,
    "decimal": read_decimal,
    "-decimal": _negative_decimal,
    "DATE": _date,
    "TIMESTAMP": _timestamp,
    "TIMESTAMPTZ": _timestamp,
}
"""How the text of a literal is read, by the form of its place."""


_STRING = re.compile("'[^']*(?:''[^']*)*'")


def read_list(text: str) -> list[Any]:
    """The literals of a list, all strings or all numbers, with commas between them."""
    if "'" in text:
        return list(map(_string, _STRING.findall(text)))
    return list(map(_signed_number, text.split(",")))


def _signed_number(text: str) -> int | float:
    text = text.strip()
    negative = text[0] == "-"
    digits = text[1:] if text[0] in "+-" else text
    if digits.isdigit():
        return read_integer(digits, negative=negative)
    return read_decimal(digits, negative=negative)


class _Blank:
    """A predicate that takes literals ``first`` to ``last - 1`` of the text. Its escape is literal number `escape`."""

    __slots__ = ("attribute", "escape", "first", "last", "operator")

    def __init__(self, predicate: Predicate, first: int, last: int, escape: int | None) -> None:
        self.attribute = predicate.attribute
        self.operator = predicate.operator
        self.first = first
        self.last = last
        self.escape = escape

    def fill(self, values: list[Scalar]) -> Predicate:
        literals = tuple(values[self.first : self.last])
        return Predicate.unchecked(self.attribute, self.operator, literals)


class _ListBlank(_Blank):
    """A blank of IN whose literals are one list, however long."""

    __slots__ = ()

    def fill(self, values: list[Any]) -> Predicate:
        return Predicate.unchecked(self.attribute, self.operator, distinct(values[self.first]))


class _SetBlank(_Blank):
    """A blank of IN, which keeps no literal twice."""

    __slots__ = ()

    def fill(self, values: list[Scalar]) -> Predicate:
        return Predicate.unchecked(self.attribute, self.operator, distinct(values[self.first : self.last]))


class _CheckedBlank(_Blank):
    """A blank of lower, upper, ESCAPE, or an operator of `CHECKED`.

    The literals can be wrong in ways that the text around them does not show.
    """

    __slots__ = ("sample",)

    def __init__(self, predicate: Predicate, first: int, last: int, escape: int | None) -> None:
        super().__init__(predicate, first, last, escape)
        self.sample = predicate

    def fill(self, values: list[Any]) -> Predicate:
        escape = None if self.escape is None else str(values[self.escape])
        literals = values[self.first : self.last]
        return self.sample.with_literals(literals[0] if isinstance(literals[0], list) else literals, escape)


class _AroundBlank(_CheckedBlank):
    """A blank of starts_with and its kin, whose literal becomes a pattern."""

    __slots__ = ("after", "before")

    def __init__(self, predicate: Predicate, number: int, around: tuple[str, str]) -> None:
        super().__init__(predicate, number, number + 1, None)
        self.before, self.after = around

    def fill(self, values: list[Any]) -> Predicate:
        pattern, escape = quoted(values[self.first], before=self.before, after=self.after)
        return self.sample.with_literals([pattern], escape)


class _Node:
    """A Not, And, Or, TruthTest or Exists, to be made around the last `count` expressions that were made."""

    __slots__ = ("count", "node")

    def __init__(self, node: Not | And | Or | TruthTest | Exists, count: int) -> None:
        self.node = node
        self.count = count

    def fill(self, operands: list[Expression]) -> Expression:
        node = self.node
        if isinstance(node, Exists):
            return Exists(node.joins, cast("list[Predicate]", operands))
        if isinstance(node, TruthTest):
            return TruthTest(operands[0], node.truth, node.negated)
        # Flattening and depth were settled when the template's own node was made.
        made = type(node).__new__(type(node))
        made.operands = tuple(operands)
        made.depth = node.depth
        return made


_Step: TypeAlias = _Blank | _Node | Expression


class Template:
    """What `fill` needs: how each literal is read, the literals that may not change, the steps."""

    __slots__ = ("_fixed", "_readers", "_steps")

    def __init__(self, text: str, reading: Reading, lists: Collection[int] = ()) -> None:
        """`lists` has the numbers of literals that stand for all literals of an IN."""
        self._readers: list[Callable[[Any], Any]] = [
            read_list if number in lists else FORMS[place.form] for number, place in enumerate(reading.places)
        ]
        fixed = ((number, reading.places[number]) for number in reading.fixed)
        self._fixed = {number: text[place.start : place.end] for number, place in fixed}
        blanks = {id(use.predicate): _blank(use, lists) for use in reading.uses}
        self._steps = _steps(reading.expression, blanks)

    def fill(self, literals: list[str]) -> Expression | None:
        """The expression with these literals, given as text; None if they do not decide how the text is read.

        The literal of a list is its text between the parentheses.

        Raises
        ------
        ExpressionError
            When a literal is wrong.
        """
        for number, literal in self._fixed.items():
            if literals[number] != literal:
                return None
        values = [read(literal) for read, literal in zip(self._readers, literals, strict=True)]
        made: list[Expression] = []
        for step in self._steps:
            if isinstance(step, _Blank):
                made.append(step.fill(values))
            elif isinstance(step, _Node):
                made[-step.count :] = [step.fill(made[-step.count :])]
            else:
                made.append(step)
        return made[0]


def _blank(use: Use, lists: Collection[int]) -> _Blank | None:
    """The predicate's blank; None if no literal can change and the predicate is used as it is."""
    numbers = [literal.number for literal in use.literals if literal.number is not None]
    if not numbers:
        return None
    if use.around is not None:
        return _AroundBlank(use.predicate, numbers[0], use.around)
    if use.escape is not None or use.predicate.operator in CHECKED or type(use.predicate) is not Predicate:
        made: type[_Blank] = _CheckedBlank
    elif numbers[0] in lists:
        made = _ListBlank
    else:
        made = _SetBlank if use.predicate.operator in SETS else _Blank
    return made(use.predicate, numbers[0], numbers[-1] + 1, None if use.escape is None else use.escape.number)


def is_regular(use: Use) -> bool:
    """Whether all literals of a predicate have numbers, or none has. In IN (TRUE, 1) only one has."""
    return len({literal.number is None for literal in use.literals}) < 2


def _steps(root: Expression, blanks: dict[int, _Blank | None]) -> list[_Step]:
    nodes: list[Expression] = []
    pending = [root]
    while pending:
        node = pending.pop()
        nodes.append(node)
        pending.extend(_inner(node))
    # Visited from the root down and from the right: the reverse has operands first, from the left.
    steps: list[_Step] = []
    for node in reversed(nodes):
        count = len(_inner(node))
        if count and isinstance(node, Not | And | Or | TruthTest | Exists):
            steps.append(_Node(node, count))
        else:
            steps.append(blanks.get(id(node)) or node)
    return steps


def _inner(node: Expression) -> tuple[Expression, ...]:
    return node.conditions if isinstance(node, Exists) else node.operands
