"""The SQL text of an expression. Read again, it gives the same expression."""

from __future__ import annotations

from datetime import date, datetime

from tamis.errors import ExpressionError, did_you_mean, shortened
from tamis.language.expression import (
    And,
    CasePredicate,
    Constant,
    Exists,
    Expression,
    Not,
    Or,
    Predicate,
    Quantified,
    TruthTest,
)
from tamis.language.operators import RANGES, SETS, Operator
from tamis.language.values import Scalar
from tamis.language.words import needs_quotes

_ALIAS = "h"
TRUTH_WORDS = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}
_DIALECTS = ["tamis", "duckdb", "spark"]


def to_sql(expression: Expression, dialect: str = "tamis") -> str:
    """Write an expression as SQL.

    Parameters
    ----------
    dialect : {"tamis", "duckdb", "spark"}
        Who is to read the text; for the two engines see `engine_sql`.

    Raises
    ------
    ExpressionError
        When the dialect is unknown or has no words for the expression.
    """
    if isinstance(dialect, str) and dialect == "tamis":
        return _TAMIS.expression(expression)
    if not isinstance(dialect, str) or dialect not in _DIALECTS:
        raise ExpressionError(
            f"unknown dialect {shortened(dialect)}{did_you_mean(dialect, _DIALECTS)}; the dialects are: {', '.join(_DIALECTS)}"
        )
    from tamis.language.engine_sql import PRINTERS

    return PRINTERS[dialect].expression(expression)


class Printer:
    """Writes our own dialect; the printers of other dialects override what is said differently there."""

    def expression(self, node: Expression) -> str:
        """The text of a node. No tree is deeper than MAX_DEPTH, so recursion is safe."""
        match node:
            case Or():
                return " OR ".join([self.expression(operand) for operand in node.operands])
            case And():
                return " AND ".join([self._operand(operand, (Or,)) for operand in node.operands])
            case Not():
                return "NOT " + self._operand(node.operand, (And, Or))
            case TruthTest():
                return f"{self._tested(node.operand)} {self.truth(node)}"
            case Predicate():
                return self.predicate(node, self.name(node.attribute))
            case Constant():
                return "TRUE" if node.value else "FALSE"
            case Quantified():
                return self.quantified(node)
            case Exists():
                return self._exists(node)
        raise ExpressionError(f"{type(node).__name__} has no SQL text")

    def _operand(self, node: Expression, looser: tuple[type[Expression], ...]) -> str:
        """An operand, in parentheses if it binds looser than what it stands in."""
        text = self.expression(node)
        return f"({text})" if isinstance(node, looser) else text

    def _tested(self, node: Expression) -> str:
        """The operand of a truth test: an attribute that is tested for TRUE stands alone, all else in parentheses."""
        if type(node) is Predicate and node.operator is Operator.EQ and node.values[0] is True:
            return self.name(node.attribute)
        return f"({self.expression(node)})"

    def truth(self, node: TruthTest) -> str:
        """The words of a truth test."""
        return f"IS {'NOT ' if node.negated else ''}{TRUTH_WORDS[node.truth]}"

    def predicate(self, node: Predicate, name: str) -> str:
        """A predicate on the attribute that is written `name`."""
        if isinstance(node, CasePredicate):
            name = f"{node.case}({name})"
        literals = [self.literal(value) for value in node.values]
        if node.operator in SETS:
            return f"{name} {node.operator.upper()} ({', '.join(literals)})"
        if node.operator in RANGES:
            return f"{name} {node.operator.upper()} {literals[0]} AND {literals[1]}"
        if node.operator is Operator.IP_IN:
            return f"ip_in({', '.join([name, *literals])})"
        escape = [] if node.escape is None else ["ESCAPE", self.string(node.escape)]
        return " ".join([name, node.operator.upper(), *literals, *escape])

    def quantified(self, node: Quantified) -> str:
        subquery = f"SELECT {self._beside('history', node.earlier)} FROM history"
        return f"{self.name(node.attribute)} {node.operator} {node.quantifier.upper()} ({subquery})"

    def _exists(self, node: Exists) -> str:
        conditions = [
            f"{self.earlier(join.earlier)} {join.operator} {self.current(join.attribute)}" for join in node.joins
        ]
        conditions += [self.predicate(condition, self.earlier(condition.attribute)) for condition in node.conditions]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"EXISTS (SELECT 1 FROM history {_ALIAS}{where})"

    def earlier(self, name: str) -> str:
        """An attribute of the earlier event."""
        return f"{_ALIAS}.{self.name(name)}"

    def current(self, name: str) -> str:
        """An attribute of the new event where the earlier one has a name of its own."""
        return self._beside(_ALIAS, name)

    def _beside(self, table: str, name: str) -> str:
        """A name where `table.x` would mean the attribute x of a table."""
        return _quoted(name, '"') if name.startswith(f"{table}.") else self.name(name)

    def name(self, name: str) -> str:
        return _quoted(name, '"') if needs_quotes(name) else name

    def literal(self, value: Scalar) -> str:
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, float):
            return self.decimal(value)
        if isinstance(value, datetime):
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        if isinstance(value, date):
            return f"DATE '{value.isoformat()}'"
        return str(value)

    def string(self, value: str) -> str:
        return _quoted(value, "'")

    def decimal(self, value: float) -> str:
        return repr(value)


_TAMIS = Printer()


def _quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote
