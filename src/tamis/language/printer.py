"""Printers: how the nodes of an expression are written as SQL text.

Every node of the tree calls the method of a printer that writes it (`Expression.written`). A printer knows nothing of the tree.
The printers of DuckDB and Spark are in `engine_sql`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import ClassVar

from tamis.language.operators import CALLED, NEGATIVE, RANGES, SETS, Operator, Quantifier
from tamis.language.values import Scalar
from tamis.language.words import needs_quotes

_ALIAS = "h"
TRUTH_WORDS = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}


class Printer:
    """Writes our own dialect. The printers of other dialects override what is written differently there."""

    functions: ClassVar[dict[Operator, str]] = {operator: operator.value for operator in CALLED}
    """The operators that are written as functions, and the names of these functions."""

    def truth(self, truth: bool | None, negated: bool) -> str:
        """The words of a truth test."""
        return f"IS {'NOT ' if negated else ''}{TRUTH_WORDS[truth]}"

    def predicate(self, name: str, operator: Operator, values: Sequence[Scalar], escape: str | None) -> str:
        """A predicate on the attribute that is written `name`."""
        literals = [self.literal(value) for value in values]
        if operator in SETS:
            return f"{name} {operator.upper()} ({', '.join(literals)})"
        if operator in RANGES:
            return f"{name} {operator.upper()} {literals[0]} AND {literals[1]}"
        if operator in self.functions:
            negation = "NOT " if operator in NEGATIVE else ""
            return f"{negation}{self.functions[operator]}({', '.join([name, *literals])})"
        ending = [] if escape is None else ["ESCAPE", self.string(escape)]
        return " ".join([name, operator.upper(), *literals, *ending])

    def quantified(self, name: str, operator: Operator, quantifier: Quantifier, earlier: str) -> str:
        """A comparison of an attribute with the attribute `earlier` of earlier events."""
        subquery = f"SELECT {self._beside('history', earlier)} FROM history"
        return f"{self.name(name)} {operator} {quantifier.upper()} ({subquery})"

    def exists(self, conditions: Sequence[str]) -> str:
        """The test for an earlier event that satisfies all conditions."""
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
