"""The report about a file of subscriptions: errors, warnings, repetitions, and a summary of the contents."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.cli.error_file import message_of
from tamis.cli.seen_ids import SeenIds
from tamis.cli.subscription_lines import Read, expression_of, wrong_expression
from tamis.errors import ExpressionError, FileError

if TYPE_CHECKING:
    from tamis.language.expression import Expression
    from tamis.language.schema import Schema


class FileMessage(NamedTuple):
    """A line and a message about it; without a line, the message is about the whole file."""

    line: int | None
    message: str


@dataclass
class Report:
    """Grows by a line of the file at a time; `add` returns the new findings."""

    path: str
    schema: Schema | None = None
    subscriptions: int = 0
    errors: list[FileMessage] = field(default_factory=list)
    warnings: list[FileMessage] = field(default_factory=list)
    attributes: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._ids = SeenIds()
        # Keyed by digest: a million expressions would take too much memory.
        self._lines: dict[bytes, int | list[int]] = {}

    def add(self, item: Read) -> list[tuple[str, FileMessage]]:
        """Take in a line; returns the findings, each as an "error" or a "warning"."""
        errors, warnings = self._findings(item)
        self.errors += errors
        self.warnings += warnings
        return [*[("error", finding) for finding in errors], *[("warning", finding) for finding in warnings]]

    @property
    def repeated(self) -> list[list[int]]:
        """Groups of lines whose subscriptions have the same expression."""
        return [lines for lines in self._lines.values() if isinstance(lines, list)]

    def to_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        return {
            "path": self.path,
            "subscriptions": self.subscriptions,
            "errors": [finding._asdict() for finding in self.errors],
            "warnings": [finding._asdict() for finding in self.warnings],
            "repeated": self.repeated,
            "attributes": dict(self.attributes.most_common()),
            "operators": dict(self.operators.most_common()),
        }

    def _findings(self, item: Read) -> tuple[list[FileMessage], list[FileMessage]]:
        if isinstance(item, FileError):
            return [FileMessage(item.line, message_of(item))], []
        self.subscriptions += 1
        errors = []
        if problem := self._ids.problem(item):
            errors.append(FileMessage(item.line, problem))
        try:
            expression = expression_of(item)
            if self.schema is not None:
                self.schema.check(expression, item.source if isinstance(item.source, str) else None)
        except ExpressionError as error:
            return [*errors, FileMessage(item.line, wrong_expression(error))], []
        self._count(expression, item.line)
        return errors, [FileMessage(item.line, remark) for remark in _remarks(expression, self.schema)]

    def _count(self, expression: Expression, line: int) -> None:
        from tamis.language.expression import CasePredicate, Predicate, TruthTest
        from tamis.language.joins import Exists, Quantified
        from tamis.language.printer import TAMIS

        self.attributes.update(expression.attributes())
        for node in expression.walk():
            if isinstance(node, CasePredicate):
                self.operators[f"{node.case} {node.operator}".upper()] += 1
            elif isinstance(node, Predicate):
                self.operators[node.operator.upper()] += 1
            elif isinstance(node, TruthTest):
                self.operators[TAMIS.truth(node.truth, node.negated)] += 1
            elif isinstance(node, Quantified):
                self.operators[f"{node.operator} {node.quantifier}".upper()] += 1
            elif isinstance(node, Exists):
                self.operators["EXISTS"] += 1
        digest = blake2b(_canonical(expression).encode(), digest_size=16).digest()
        first = self._lines.setdefault(digest, line)
        if isinstance(first, list):
            first.append(line)
        elif first != line:
            self._lines[digest] = [first, line]


def _remarks(expression: Expression, schema: Schema | None) -> list[str]:
    """Warnings about a correct expression. Attributes without a declaration are assumed to have one value."""
    from tamis.language.simplify import Finding, simplify

    remarks = simplify(expression, scalars=None if schema is None else schema.scalars).remarks
    said = [str(remark) for remark in remarks if remark.finding not in (Finding.NEVER, Finding.ALWAYS)]
    kinds = {remark.finding for remark in remarks}
    if Finding.NEVER in kinds:
        said = ["never matches: " + "; ".join(said) if said else "never matches"]
    if Finding.ALWAYS in kinds:
        said = ["matches every event"]
    if expression.needs_history():
        said.append("compares with earlier events; `tamis match` keeps them with --history-rows")
    return said


def _canonical(expression: Expression) -> str:
    """A text that stays the same if operands are reordered or repeated."""
    from tamis.language.expression import And, Not, Or, TruthTest
    from tamis.language.printer import TAMIS

    if isinstance(expression, And | Or):
        word = " AND " if isinstance(expression, And) else " OR "
        return f"({word.join(sorted({_canonical(operand) for operand in expression.operands}))})"
    if isinstance(expression, Not):
        return f"NOT {_canonical(expression.operand)}"
    if isinstance(expression, TruthTest):
        return f"({_canonical(expression.operand)}) {TAMIS.truth(expression.truth, expression.negated)}"
    return str(expression)
