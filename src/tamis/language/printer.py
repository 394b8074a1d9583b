"""Printers: how the nodes of an expression are written as SQL text.

Every node of the tree says which method of a printer writes it (`Expression.written`), so a printer knows nothing of the tree.
The printers of DuckDB and Spark are in `engine_sql`.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, ClassVar

from tamis.language.operators import CALLED, RANGES, SETS, Operator
from tamis.language.values import Scalar
from tamis.language.words import needs_quotes

if TYPE_CHECKING:
    from tamis.language.expression import Expression, Predicate, TruthTest
    from tamis.language.joins import Exists, Quantified

_ALIAS = "h"
TRUTH_WORDS = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}


class Printer:
    """Writes our own dialect. The printers of other dialects override what is written differently there."""

    functions: ClassVar[dict[Operator, str]] = {operator: operator.value for operator in CALLED}
    """The operators that are written as functions, and the names of these functions."""

    def operand(self, node: Expression, binding: int) -> str:
        """An operand of a node: in parentheses if it binds less tightly than `binding`."""
        text = node.written(self)
        return f"({text})" if node.binding < binding else text

    def tested(self, node: Expression) -> str:
        """The operand of a truth test: an attribute alone stands for `attribute = TRUE`, all else is in parentheses."""
        name = node.condition_name()
        return f"({node.written(self)})" if name is None else self.name(name)

    def truth(self, node: TruthTest) -> str:
        """The words of a truth test."""
        return f"IS {'NOT ' if node.negated else ''}{TRUTH_WORDS[node.truth]}"

    def predicate(self, node: Predicate, name: str) -> str:
        """A predicate on the attribute that is written `name`."""
        literals = [self.literal(value) for value in node.values]
        if node.operator in SETS:
            return f"{name} {node.operator.upper()} ({', '.join(literals)})"
        if node.operator in RANGES:
            return f"{name} {node.operator.upper()} {literals[0]} AND {literals[1]}"
        if node.operator in self.functions:
            negation = "NOT " if node.negative else ""
            return f"{negation}{self.functions[node.operator]}({', '.join([name, *literals])})"
        escape = [] if node.escape is None else ["ESCAPE", self.string(node.escape)]
        return " ".join([name, node.operator.upper(), *literals, *escape])

    def quantified(self, node: Quantified) -> str:
        subquery = f"SELECT {self._beside('history', node.earlier)} FROM history"
        return f"{self.name(node.attribute)} {node.operator} {node.quantifier.upper()} ({subquery})"

    def exists(self, node: Exists) -> str:
        conditions = [
            f"{self.earlier(join.earlier)} {join.operator} {self.current(join.attribute)}" for join in node.joins
        ]
        conditions += [condition.written_of(self, self.earlier(condition.attribute)) for condition in node.conditions]
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


TAMIS = Printer()


def _quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote
