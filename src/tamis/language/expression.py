"""The expression tree: what text, builder and JSON are read into, and everything else works on.

    Expression
    ├── Constant      TRUE, FALSE
    ├── Predicate     attribute, operator, literals
    │   └── CasePredicate   lower(attribute) or upper(attribute), operator, literals
    ├── Quantified    x < ANY (SELECT y FROM history)                  in `joins`
    ├── Exists        EXISTS (SELECT 1 FROM history h WHERE ...)       in `joins`
    ├── TruthTest     x IS [NOT] TRUE, FALSE or UNKNOWN, of one expression
    ├── Not           of one expression
    ├── And, Or       of two or more

Invariants: nodes are immutable. An And has no And among its operands, and an Or has no Or: they are flattened when they are
made. So a chain of thousands of ANDs is one node. No tree is deeper than MAX_DEPTH, so walking one by recursion is safe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NoReturn

from tamis.errors import ExpressionError, NestingError, shortened
from tamis.language.checks import check_attribute, check_cased, check_predicate
from tamis.language.operators import (
    DISTINCT,
    NEGATIVE,
    Case,
    Operator,
    read_operator,
)
from tamis.language.printer import TAMIS, Printer
from tamis.language.values import Kind, Scalar, check_literal, distinct, identity, kinds_of

MAX_DEPTH = 100
"""The deepest nesting of an expression, in levels of the tree and in parentheses of the text."""

MAX_TESTS = 8
"""The most tests of truth values that may be nested. Each one doubles the size of the normal form."""


class Condition(ABC):
    """An object that may stand for an expression among operands, such as an attribute of the builder."""

    __slots__ = ()

    @abstractmethod
    def condition(self) -> Expression:
        """The expression."""


class Expression:
    """A Boolean expression. Combine expressions with ``&``, ``|`` and ``~``. ``str()`` returns the SQL text."""

    __slots__ = ("_hash", "depth", "operands", "prepared")

    binding: ClassVar[int] = 3
    """How tightly it binds in SQL text: OR 0, AND 1, NOT 2, all else 3."""
    is_join: ClassVar[bool] = False
    """Whether this node asks about earlier events."""

    _hash: int
    depth: int
    operands: tuple[Expression, ...]
    prepared: Any
    """The form that `tamis.prepare` has made. Only prepared expressions have it."""

    def __and__(self, other: object) -> Expression:
        return all_of(self, _operand(other))

    def __or__(self, other: object) -> Expression:
        return any_of(self, _operand(other))

    # If the left side is no expression, as in 1 & (attr("a") == 2), parentheses are missing, and `_operand` says so.
    def __rand__(self, other: object) -> Expression:
        return all_of(_operand(other), self)

    def __ror__(self, other: object) -> Expression:
        return any_of(_operand(other), self)

    def __invert__(self) -> Expression:
        return Not(self)

    def is_true(self) -> TruthTest:
        """``x IS TRUE``, which is never UNKNOWN; ``~x.is_true()`` is ``x IS NOT TRUE``."""
        return TruthTest(self, True)

    def is_false(self) -> TruthTest:
        """``x IS FALSE``, which is never UNKNOWN."""
        return TruthTest(self, False)

    def is_unknown(self) -> TruthTest:
        """``x IS UNKNOWN``: an attribute is missing, or has no value of the literal's kind."""
        return TruthTest(self, None)

    def __bool__(self) -> NoReturn:
        raise ExpressionError(
            "an expression has no truth value in Python. "
            "Hint: combine expressions with &, | and ~ (in parentheses), not with and, or and not"
        )

    def __str__(self) -> str:
        return self.written(TAMIS)

    def written(self, printer: Printer) -> str:
        """The SQL text that a printer writes. No tree is deeper than MAX_DEPTH, so recursion is safe."""
        raise ExpressionError(f"{type(self).__name__} has no SQL text")

    def written_in(self, printer: Printer, binding: int) -> str:
        """The text as an operand: in parentheses if it binds less tightly than `binding`."""
        text = self.written(printer)
        return f"({text})" if self.binding < binding else text

    def condition_name(self) -> str | None:
        """The attribute `a` if this is `a = TRUE`, which may also be written `a`; None for all other expressions."""
        return None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((type(self).__name__, self._identity()))
            return self._hash

    def __getstate__(self) -> Any:
        # Hashes of strings differ from process to process.
        made = ("_hash", "prepared")
        names = [name for cls in type(self).__mro__ for name in getattr(cls, "__slots__", ()) if name not in made]
        return None, {name: getattr(self, name) for name in names}

    def _identity(self) -> Any:
        """What makes two nodes of one class equal."""
        return self.operands

    def walk(self) -> Iterator[Expression]:
        """This node and all nodes below it, parents first."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed(node.operands))

    def attributes(self) -> frozenset[str]:
        """The attributes of the event that the expression asks about."""
        return frozenset(name for node in self.walk() for name in node.own_attributes())

    def own_attributes(self) -> Iterable[str]:
        """The attributes of the event that this node asks about, without the nodes below it."""
        return ()

    def needs_history(self) -> bool:
        """Whether the expression asks about earlier events."""
        # A short cut for most subscriptions: this is asked whenever one is added.
        if hasattr(self, "prepared") or (type(self) is And and set(map(type, self.operands)) == _ONLY_PREDICATES):
            return False
        return any(node.is_join for node in self.walk())


class Constant(Expression):
    """TRUE or FALSE."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value
        self.depth = 1
        self.operands = ()

    def _identity(self) -> bool:
        return self.value

    def written(self, printer: Printer) -> str:
        return "TRUE" if self.value else "FALSE"


TRUE = Constant(True)
FALSE = Constant(False)


class Predicate(Expression):
    """One attribute compared with literals.

    `values` holds what the operator takes: one literal for comparisons and patterns, two for BETWEEN, one or more
    for IN and ip_in, none for IS NULL. `escape` belongs to LIKE and ILIKE.
    """

    __slots__ = ("attribute", "escape", "operator", "values")

    def __init__(
        self, attribute: str, operator: Operator | str, values: Iterable[Any] = (), *, escape: str | None = None
    ) -> None:
        self.attribute = check_attribute(attribute)
        self.operator = operator if type(operator) is Operator else read_operator(operator)
        literals = tuple([check_literal(value) for value in values])
        self.values = distinct(literals) if self.operator in DISTINCT else literals
        self.escape = escape
        self.depth = 1
        self.operands = ()
        check_predicate(self.attribute, self.operator, self.values, escape)

    @classmethod
    def unchecked(
        cls, attribute: str, operator: Operator, values: tuple[Scalar, ...], escape: str | None = None
    ) -> Predicate:
        """A predicate from parts that are known to be right, for instance of a known shape with new literals."""
        node = cls.__new__(cls)
        node.attribute = attribute
        node.operator = operator
        node.values = values
        node.escape = escape
        node.depth = 1
        node.operands = ()
        return node

    def with_operator(self, operator: Operator) -> Predicate:
        """The same predicate with another operator that takes the same literals, mostly the negation."""
        return Predicate.unchecked(self.attribute, operator, self.values, self.escape)

    def with_literals(self, values: Iterable[Any], escape: str | None = None) -> Predicate:
        """The same predicate with other literals, which are checked."""
        return Predicate(self.attribute, self.operator, values, escape=escape)

    def _identity(self) -> Any:
        return (self.attribute, self.operator, tuple([identity(value) for value in self.values]), self.escape)

    def written(self, printer: Printer) -> str:
        return self.written_of(printer, printer.name(self.attribute))

    def written_of(self, printer: Printer, name: str) -> str:
        """The text with `name` in place of the attribute."""
        return printer.predicate(name, self.operator, self.values, self.escape)

    def own_attributes(self) -> Iterable[str]:
        return (self.attribute,)

    def condition_name(self) -> str | None:
        return self.attribute if self.operator is Operator.EQ and self.values[0] is True else None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of the literals, each once; IN may have several."""
        return kinds_of(self.values)

    @property
    def negative(self) -> bool:
        """Whether it is the negation of a positive form."""
        return self.operator in NEGATIVE


_ONLY_PREDICATES = frozenset({Predicate})


class CasePredicate(Predicate):
    """A predicate on the lower or upper case of an attribute: `lower(a) = 'x'`."""

    __slots__ = ("case",)

    def __init__(
        self,
        case: Case | str,
        attribute: str,
        operator: Operator | str,
        values: Iterable[Any],
        *,
        escape: str | None = None,
    ) -> None:
        super().__init__(attribute, operator, values, escape=escape)
        self.case = Case(case)
        check_cased(self.case, self.attribute, self.operator, self.values)

    def with_operator(self, operator: Operator) -> CasePredicate:
        node = CasePredicate.__new__(CasePredicate)
        node.case, node.attribute, node.operator = self.case, self.attribute, operator
        node.values, node.escape = self.values, self.escape
        node.depth, node.operands = 1, ()
        return node

    def with_literals(self, values: Iterable[Any], escape: str | None = None) -> CasePredicate:
        return CasePredicate(self.case, self.attribute, self.operator, values, escape=escape)

    def _identity(self) -> Any:
        return (self.case, *super()._identity())

    def written_of(self, printer: Printer, name: str) -> str:
        return super().written_of(printer, f"{self.case}({name})")

    def condition_name(self) -> None:
        return None


TRUTHS = frozenset({True, False, None})
"""The three truth values; None is UNKNOWN."""


class TruthTest(Expression):
    """Whether an expression is TRUE, FALSE or UNKNOWN (None); with `negated`, whether it is not. Never UNKNOWN itself."""

    __slots__ = ("negated", "truth")

    def __init__(self, operand: Expression, truth: bool | None, negated: bool = False) -> None:
        if truth not in TRUTHS or not isinstance(truth, bool | None):
            raise ExpressionError(f"a truth value must be True, False or None, not {shortened(truth)}")
        self.operands = (operand,)
        self.truth = truth
        self.negated = bool(negated)
        # In the normal form, where tests stand at the leaves, the tree of an operand may be two levels deeper.
        plain = not operand.operands and (not isinstance(operand, Predicate) or len(operand.kinds) < 2)
        self.depth = _depth(self.operands, 1 if plain else 3)
        if _tests(self) > MAX_TESTS:
            raise NestingError(f"more than {MAX_TESTS} tests IS TRUE, IS FALSE or IS UNKNOWN are nested in each other")

    @property
    def operand(self) -> Expression:
        return self.operands[0]

    @property
    def accepted(self) -> frozenset[bool | None]:
        """The truths of the operand for which the test is TRUE."""
        return TRUTHS - {self.truth} if self.negated else frozenset({self.truth})

    def _identity(self) -> Any:
        return (self.truth, self.negated, self.operands)

    def written(self, printer: Printer) -> str:
        name = self.operand.condition_name()
        # An attribute alone stands for `attribute = TRUE`. All other operands are in parentheses.
        tested = f"({self.operand.written(printer)})" if name is None else printer.name(name)
        return f"{tested} {printer.truth(self.truth, self.negated)}"


def truth_test(operand: Expression, accepted: frozenset[bool | None]) -> TruthTest:
    """The test that accepts one or two of the three truths."""
    negated = len(accepted) == 2
    [truth] = TRUTHS - accepted if negated else accepted
    return TruthTest(operand, truth, negated)


class Not(Expression):
    """The negation of one expression; UNKNOWN stays UNKNOWN."""

    __slots__ = ()
    binding = 2

    def __init__(self, operand: Expression) -> None:
        self.operands = (operand,)
        self.depth = _depth(self.operands)

    @property
    def operand(self) -> Expression:
        return self.operands[0]

    def written(self, printer: Printer) -> str:
        return "NOT " + self.operand.written_in(printer, self.binding)


class And(Expression):
    """All of two or more expressions. Made by `all_of`, which flattens."""

    __slots__ = ()
    binding = 1

    def __init__(self, operands: Iterable[Expression]) -> None:
        self.operands = _flatten(And, operands)
        self.depth = _depth(self.operands)

    def written(self, printer: Printer) -> str:
        return " AND ".join([operand.written_in(printer, self.binding) for operand in self.operands])


class Or(Expression):
    """Any of two or more expressions. Made by `any_of`, which flattens."""

    __slots__ = ()
    binding = 0

    def __init__(self, operands: Iterable[Expression]) -> None:
        self.operands = _flatten(Or, operands)
        self.depth = _depth(self.operands)

    def written(self, printer: Printer) -> str:
        return " OR ".join([operand.written(printer) for operand in self.operands])


def all_of(*operands: Expression) -> Expression:
    """The conjunction of any number of expressions: TRUE of none, the expression itself of one."""
    return And(operands) if len(operands) > 1 else operands[0] if operands else TRUE


def any_of(*operands: Expression) -> Expression:
    """The disjunction of any number of expressions: FALSE of none, the expression itself of one."""
    return Or(operands) if len(operands) > 1 else operands[0] if operands else FALSE


def _flatten(cls: type[And] | type[Or], operands: Iterable[Expression]) -> tuple[Expression, ...]:
    flat: list[Expression] = []
    for operand in operands:
        if type(operand) is cls:
            flat.extend(operand.operands)
        else:
            flat.append(operand)
    return tuple(flat)


def _depth(operands: tuple[Expression, ...], levels: int = 1) -> int:
    depth = levels + max(operand.depth for operand in operands)
    if depth > MAX_DEPTH + 1:  # A predicate alone has depth 1, and is nested in nothing.
        raise NestingError(
            f"the expression is nested deeper than {MAX_DEPTH} levels. Hint: long flat chains of AND or OR are no problem"
        )
    return depth


def _tests(node: Expression) -> int:
    """How many tests of truth values are nested in each other."""
    inner = max(map(_tests, node.operands), default=0)
    return inner + isinstance(node, TruthTest)


def _operand(value: object) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, Condition):
        return value.condition()
    raise ExpressionError(
        f"cannot combine an expression with {shortened(value)}. Hint: & and | bind tighter than comparisons, "
        'so write parentheses: (attr("a") == 1) & (attr("b") == 2)'
    )
