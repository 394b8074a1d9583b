"""The SQL text of an expression, in our own dialect or in that of DuckDB or Spark, to compare their answers with ours.

The text asks the engine the same question, as far as possible: doubles are not decimals, and a LIKE has no hidden escape. The
table of events is called ``event``, and that of earlier events ``history``: ``SELECT ... FROM events AS event WHERE <text>``.
Every attribute is a column of exactly this name, dots included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tamis.errors import ExpressionError, did_you_mean, shortened
from tamis.language.expression import Expression
from tamis.language.like import LikePattern
from tamis.language.operators import CALLED, LIKES, NEGATIVE, POSITIVE, ROWS, Operator, Quantifier
from tamis.language.printer import TAMIS, Printer
from tamis.language.values import Scalar

_ESCAPE = "!"


class _EnginePrinter(Printer):
    """What DuckDB and Spark have in common."""

    quote = '"'
    wildcards = "%_"

    def name(self, name: str) -> str:
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def current(self, name: str) -> str:
        # Without the table's name it would be the column of the table inside.
        return f"event.{self.name(name)}"

    def decimal(self, value: float) -> str:
        # With an exponent a number is a double, without one a decimal.
        text = repr(value)
        return text if "e" in text else text + "e0"

    def predicate(self, name: str, operator: Operator, values: Sequence[Scalar], escape: str | None) -> str:
        if operator in CALLED and operator not in self.functions:
            raise ExpressionError(f"SQL engines have no {operator}")
        if operator not in LIKES:
            return super().predicate(name, operator, values, escape)
        fold = POSITIVE.get(operator, operator) is Operator.ILIKE
        pattern, ending = self._pattern(LikePattern.read(str(values[0]), escape, fold))
        subject = f"lower({name})" if fold else name
        return f"{subject} {'NOT LIKE' if operator in NEGATIVE else 'LIKE'} {self.string(pattern)}{ending}"

    def _pattern(self, pattern: LikePattern) -> tuple[str, str]:
        """The pattern with our own escape, and the clause that names it if it is needed."""
        if not any(symbol in pattern.literal for symbol in self.wildcards):
            return "".join([part if isinstance(part, str) else part.symbol for part in pattern.parts]), ""
        pieces = []
        for part in pattern.parts:
            if isinstance(part, str):
                pieces += [_ESCAPE + symbol if symbol in ("%", "_", _ESCAPE) else symbol for symbol in part]
            else:
                pieces.append(part.symbol)
        return "".join(pieces), f" ESCAPE '{_ESCAPE}'"


class _DuckDBPrinter(_EnginePrinter):
    functions: ClassVar[dict[Operator, str]] = {operator: row.duckdb for operator, row in ROWS.items() if row.duckdb}

    def truth(self, truth: bool | None, negated: bool) -> str:
        # DuckDB has no IS UNKNOWN; of a condition, IS NULL is the same.
        return super().truth(truth, negated).replace("UNKNOWN", "NULL")

    def quantified(self, name: str, operator: Operator, quantifier: Quantifier, earlier: str) -> str:
        subquery = f"SELECT {self.earlier(earlier)} FROM history h"
        return f"{self.name(name)} {operator} {quantifier.upper()} ({subquery})"


class _SparkPrinter(_EnginePrinter):
    functions: ClassVar[dict[Operator, str]] = {operator: row.spark for operator, row in ROWS.items() if row.spark}
    quote = "`"
    # A backslash is the escape of every LIKE that names none.
    wildcards = "%_\\"

    def string(self, value: str) -> str:
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def quantified(self, name: str, operator: Operator, quantifier: Quantifier, earlier: str) -> str:
        raise ExpressionError(f"Spark SQL has no {quantifier.upper()} over a subquery")


PRINTERS: dict[str, Printer] = {"tamis": TAMIS, "duckdb": _DuckDBPrinter(), "spark": _SparkPrinter()}


def to_sql(expression: Expression, dialect: str = "tamis") -> str:
    """Write an expression as SQL.

    Parameters
    ----------
    dialect : {"tamis", "duckdb", "spark"}
        The reader of the text.

    Raises
    ------
    ExpressionError
        When the dialect is unknown or has no words for the expression.
    """
    if not isinstance(dialect, str) or dialect not in PRINTERS:
        known = list(PRINTERS)
        raise ExpressionError(
            f"unknown dialect {shortened(dialect)}{did_you_mean(dialect, known)}; the dialects are: {', '.join(known)}"
        )
    return expression.written(PRINTERS[dialect])
