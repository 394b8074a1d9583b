"""Predicates, once their parts are read: what `grammar`, `functions` and `history_sql` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from tamis.errors import NestingError
from tamis.language import refusals
from tamis.language.checks import check_escape
from tamis.language.dialect import NAME, Word
from tamis.language.expression import MAX_DEPTH, CasePredicate, Expression, Predicate
from tamis.language.operands import Literal, LiteralPlace, Name, Operands, Subject
from tamis.language.operators import LIKES, Case, Operator
from tamis.language.quoting import quoted
from tamis.language.values import Scalar

CASES = frozenset(Case)


class Use(NamedTuple):
    """Which literals a predicate was made of; `around` is what `quoted` puts around the literal of starts_with and its kin."""

    predicate: Predicate
    literals: tuple[Literal, ...]
    escape: Literal | None
    around: tuple[str, str] | None = None


class Reading(NamedTuple):
    """An expression, and the places of its literals. `fixed` has the numbers of literals that no predicate holds."""

    expression: Expression
    places: list[LiteralPlace]
    uses: list[Use]
    fixed: list[int]


class PredicateReader(Operands, ABC):
    """Reads subjects and makes predicates. `grammar.Reader` reads whole expressions.

    `default_escape` is the escape of a LIKE that names none. While EXISTS is read, names of attributes of the earlier event begin
    with `alias`.
    """

    def __init__(self, text: str, words: list[Word], *, spark: bool = False) -> None:
        super().__init__(text, words, spark=spark)
        # In Spark a backslash escapes in LIKE, whatever it has done already in the string.
        self.default_escape = "\\" if spark else None
        self.alias: str | None = None
        self.uses: list[Use] = []
        self.fixed: list[int] = []

    @abstractmethod
    def predicate(self) -> Expression:
        """One predicate or constant."""

    def nots(self, level: int) -> int:
        """How many NOTs stand here, going past them."""
        count = 0
        while self.kind == "NOT" and not self.is_name():
            count = self.deeper(level + count) - level
            self.at += 1
        return count

    def deeper(self, level: int) -> int:
        """The next level of nesting, if there may be one."""
        if level < MAX_DEPTH:
            return level + 1
        start = self.word.start
        error = NestingError(
            f"parentheses and NOTs are nested deeper than {MAX_DEPTH} levels. "
            "Hint: long flat chains of AND or OR are no problem"
        )
        error.place_at(self.text, start)
        raise error

    def is_case(self) -> bool:
        """Whether lower( or upper( stands here."""
        return self.kind == NAME and self.word.text.lower() in CASES and self.kind_after(1) == "("

    def subject(self) -> Subject:
        """An attribute, or its lower or upper case."""
        if self.is_case():
            return self._case()
        if self.kind_after(1) == "(":
            refusals.refuse_function(self)
        return Subject(self.attribute(self.name()))

    def _case(self) -> Subject:
        """`lower(a)` or `upper(a)`."""
        case = Case(self.take().text.lower())
        self.at += 1
        form = f"{case}(a) = 'x'"
        if not self.is_name():
            self.refuse(f"{case}(...) takes an attribute", hint=form)
        if self.kind_after(1) == "(":
            self.refuse("a function inside a function is not supported", hint=form)
        attribute = self.attribute(self.name())
        self.expect(")", f"the closing parenthesis of {case} is missing", form)
        return Subject(attribute, case)

    def attribute(self, name: Name) -> str:
        """The attribute that a name stands for: inside EXISTS one of the earlier event."""
        if self.alias is None:
            return name.attribute
        earlier = name.below(self.alias)
        if earlier is None:
            hint = f"write {self.alias}.{name.attribute}, or move the predicate out of EXISTS"
            self.refuse(f"{name.attribute} is not an attribute of the earlier event", name.start, hint)
        return earlier

    def make(
        self,
        subject: Subject,
        start: int,
        operator: Operator,
        literals: tuple[Literal, ...],
        escape: Literal | None = None,
    ) -> Predicate:
        """The predicate, once its parts are read."""
        values = [literal.value for literal in literals]
        symbol = None if escape is None else str(escape.value)
        if escape is not None:
            self.located(escape.start, lambda: check_escape(operator, symbol))
        if symbol is None and operator in LIKES and self.default_escape and self.default_escape in str(values[0]):
            symbol = self.default_escape
        place = literals[0].start if literals else start
        predicate = self.located(place, lambda: self._predicate_of(subject, operator, values, symbol))
        self.uses.append(Use(predicate, literals, escape))
        return predicate

    def _predicate_of(
        self, subject: Subject, operator: Operator, values: list[Scalar], escape: str | None = None
    ) -> Predicate:
        attribute, case = subject
        if case is None:
            return Predicate(attribute, operator, values, escape=escape)
        return CasePredicate(case, attribute, operator, values, escape=escape)

    def like_around(self, subject: Subject, literal: Literal, around: tuple[str, str]) -> Predicate:
        """The LIKE for a plain string between two pieces of pattern."""
        before, after = around
        pattern, escape = quoted(str(literal.value), before=before, after=after)
        predicate = self._predicate_of(subject, Operator.LIKE, [pattern], escape)
        self.uses.append(Use(predicate, (literal,), None, around))
        return predicate
