"""The grammar of the SQL text: words in, an expression out.

    expression  =  [NOT ...] ( predicate | "(" expression ")" ) [ IS [NOT] TRUE | FALSE | UNKNOWN ], joined with AND and OR
    predicate   =  subject [ operator literals ]  |  literal comparison subject  |  TRUE  |  FALSE
                |  literal comparison ANY (attribute)  |  attribute comparison ANY (SELECT ...)
                |  function(...), see `functions`  |  EXISTS (...)
    subject     =  attribute  |  lower(attribute)  |  upper(attribute)

Everything else is refused, with its place.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.errors import NestingError
from tamis.language import refusals
from tamis.language.checks import check_escape
from tamis.language.dialect import END, NAME, QUOTED, STRING, Word, split_words
from tamis.language.expression import (
    FALSE,
    MAX_DEPTH,
    TRUE,
    CasePredicate,
    Expression,
    Not,
    Predicate,
    TruthTest,
    all_of,
    any_of,
)
from tamis.language.functions import CASES, FUNCTIONS, read_case
from tamis.language.history_sql import QUANTIFIERS, SYMBOLS, read_exists, read_quantified, unqualified
from tamis.language.operands import Literal, LiteralPlace, Name, Operands, Subject
from tamis.language.operators import INFIX, INVERSE, LIKES, MIRRORED, NEGATION, SYNONYMS, Operator, Quantifier
from tamis.language.quoting import quoted
from tamis.language.values import Scalar

_SUFFIXES = INFIX | SYNONYMS
_TRUTHS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "UNKNOWN": None}
_IS = "NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM"


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


def read(text: str, dialect: str = "tamis") -> Reading:
    """Read a text word by word."""
    reader = Reader(text, split_words(text, dialect), spark=dialect == "spark")
    return Reading(reader.expression(), reader.places, reader.uses, reader.fixed)


class _Group:
    """The part between two parentheses, as far as it is read.

    `nots` is how many NOTs stand before the parenthesis, `level` how many NOTs and parentheses are open inside.
    """

    __slots__ = ("_alternatives", "_conjunction", "level", "nots", "start")

    def __init__(self, start: int, nots: int, level: int) -> None:
        self.start = start
        self.nots = nots
        self.level = level
        self._alternatives: list[Expression] = []
        self._conjunction: list[Expression] = []

    def add(self, operand: Expression, nots: int) -> None:
        for _ in range(nots):
            operand = Not(operand)
        self._conjunction.append(operand)

    def next_alternative(self) -> None:
        self._alternatives.append(all_of(*self._conjunction))
        self._conjunction = []

    def close(self) -> Expression:
        self.next_alternative()
        return any_of(*self._alternatives)


class Reader(Operands):
    """Reads one expression from its words.

    `default_escape` is the escape of a LIKE that names none; `alias` is what the attributes of the earlier event begin
    with while EXISTS is read.
    """

    def __init__(self, text: str, words: list[Word], *, spark: bool = False) -> None:
        super().__init__(text, words, spark=spark)
        # In Spark a backslash escapes in LIKE, whatever it has done already in the string.
        self.default_escape = "\\" if spark else None
        self.alias: str | None = None
        self.uses: list[Use] = []
        self.fixed: list[int] = []

    def expression(self) -> Expression:
        """The whole text. The stack is our own, since the caller may have nearly used up Python's."""
        if self.kind == END:
            self.refuse("the expression is empty", 0)
        outer: list[_Group] = []
        group = _Group(0, 0, 0)
        while True:
            nots = self.nots(group.level)
            if self.kind == "(":
                outer.append(group)
                group = _Group(self.word.start, nots, self.deeper(group.level + nots))
                self.at += 1
                continue
            group.add(self.tested(self.predicate()), nots)
            while outer and self.take_if(")"):
                inner, group = group, outer.pop()
                group.add(self.tested(inner.close()), inner.nots)
            if self.take_if("OR"):
                group.next_alternative()
            elif not self.take_if("AND"):
                break
        if self.kind != END:
            refusals.refuse_after_predicate(self)
        if outer:
            self.refuse("this parenthesis is never closed", group.start, "add the missing )")
        return group.close()

    def tested(self, operand: Expression) -> Expression:
        """An expression with the truth tests that follow it: `IS TRUE` binds tighter than NOT, looser than a comparison."""
        while self.kind == "IS":
            start = self.word.start
            self.at += 1
            negated = self.take_if("NOT")
            if self.kind not in _TRUTHS:
                hint = (
                    "write a IS NULL for an attribute, (...) IS UNKNOWN for a condition" if self.kind == "NULL" else ""
                )
                self.refuse("after a condition, IS must be followed by TRUE, FALSE or UNKNOWN", start, hint)
            truth = _TRUTHS[self.take().kind]
            operand = TruthTest(operand, truth, negated)
        return operand

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
        line, column = self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)
        raise NestingError(
            f"parentheses and NOTs are nested deeper than {MAX_DEPTH} levels (line {line}, column {column}). "
            "Hint: long flat chains of AND or OR are no problem"
        )

    def predicate(self) -> Expression:
        """One predicate or constant."""
        if self.is_literal():
            return self._from_literal()
        if not self.is_name():
            refusals.refuse_operand(self)
        start = self.word.start
        if self.kind_after(1) == "(" and not self._is_case():
            return self._call()
        return self._tail(self.subject(), start)

    def _is_case(self) -> bool:
        """Whether lower( or upper( stands here."""
        return self.kind == NAME and self.word.text.lower() in CASES and self.kind_after(1) == "("

    def subject(self) -> Subject:
        """An attribute, or its lower or upper case."""
        if self._is_case():
            return read_case(self)
        if self.kind_after(1) == "(":
            refusals.refuse_function(self)
        return Subject(self.attribute(self.name()))

    def attribute(self, name: Name) -> str:
        """The attribute that a name stands for: inside EXISTS one of the earlier event."""
        if self.alias is None:
            return name.attribute
        earlier = unqualified(name, self.alias)
        if earlier is None:
            hint = f"write {self.alias}.{name.attribute}, or move the predicate out of EXISTS"
            self.refuse(f"{name.attribute} is not an attribute of the earlier event", name.start, hint)
        return earlier

    def _tail(self, subject: Subject, start: int) -> Expression:
        """What follows the subject of a predicate: operator and literals, or nothing."""
        symbol = SYMBOLS.get(self.kind)
        if symbol is not None:
            self.at += 1
            return self._comparison(subject, symbol)
        if self.kind == "IS":
            return self._is(subject, start)
        negated = self.take_if("NOT")
        suffix = _SUFFIXES.get(self.kind)
        if suffix is not None:
            self.at += 1
            return self._suffix(subject, start, suffix, negated)
        if negated:
            refusals.refuse_not(self, ", ".join(_SUFFIXES))
        return self._alone(subject, start)

    def _alone(self, subject: Subject, start: int) -> Predicate:
        """An attribute as a condition."""
        if subject.case is not None:
            refusals.refuse_case_alone(self, str(subject), start)
        return self.make(subject, start, Operator.EQ, (Literal(True, start, None),))

    def _is(self, subject: Subject, start: int) -> Expression:
        """What follows IS. A truth test is left to `tested`: there, the attribute alone is a condition."""
        place = self.at
        self.at += 1
        negated = self.take_if("NOT")
        if self.kind in _TRUTHS:
            self.at = place
            return self._alone(subject, start)
        if self.take_if("DISTINCT"):
            self.expect("FROM", "FROM is missing after DISTINCT", "a IS DISTINCT FROM 5")
            literal = self.literal("FROM")
            equal = self.make(subject, literal.start, Operator.EQ, (literal,))
            return TruthTest(equal, True, negated=not negated)
        self.expect(
            "NULL", f"IS [NOT] must be followed by {_IS}", "write a IS TRUE to test a boolean, a = 5 to test equality"
        )
        return self.make(subject, start, Operator.IS_NOT_NULL if negated else Operator.IS_NULL, ())

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

    def _comparison(self, subject: Subject, operator: Operator) -> Expression:
        if self.kind in QUANTIFIERS and self.kind_after(1) == "(":
            if self.kind_after(2) != "SELECT" or subject.case is not None:
                refusals.refuse_quantified_attribute(self, str(subject), operator)
            return read_quantified(self, subject.attribute, operator)
        if self.is_name():
            refusals.refuse_two_attributes(self, str(subject), operator)
        if not self.is_literal():
            refusals.refuse_operand(self)
        literal = self.literal()
        return self.make(subject, literal.start, operator, (literal,))

    def _suffix(self, subject: Subject, start: int, operator: Operator, negated: bool) -> Expression:
        """What follows IN, BETWEEN, LIKE, ILIKE and RLIKE."""
        written = NEGATION[operator] if negated else operator
        if operator is Operator.IN:
            return self.make(subject, start, written, self._list())
        if operator is Operator.BETWEEN:
            low = self.literal("BETWEEN")
            self.expect("AND", "AND is missing between the ends of BETWEEN", "a BETWEEN 20 AND 40")
            return self.make(subject, start, written, (low, self.literal("AND")))
        quantifier = QUANTIFIERS.get(self.kind) if self.kind_after(1) == "(" else None
        if quantifier is None:
            if self.kind in QUANTIFIERS:
                self.refuse(f"{self.kind} takes patterns in parentheses", hint="a LIKE ANY ('x%', '%y')")
            pattern = self.literal(operator.name)
            return self.make(subject, start, written, (pattern,), self._escape_clause())
        if operator is Operator.RLIKE:
            self.refuse("RLIKE takes one pattern", hint="put alternatives into the pattern: a RLIKE 'x|y'")
        patterns = self._patterns(operator)
        escape = self._escape_clause()
        parts = [self.make(subject, start, written, (pattern,), escape) for pattern in patterns]
        return any_of(*parts) if quantifier is Quantifier.ANY else all_of(*parts)

    def _patterns(self, operator: Operator) -> list[Literal]:
        """The patterns of LIKE ANY (...) and LIKE ALL (...)."""
        form = f"a {operator.name} {self.take().kind} ('x%', '%y')"
        self.at += 1
        patterns = [self.literal("the parenthesis")]
        while self.take_if(","):
            patterns.append(self.literal("the comma"))
        self.expect(")", "a comma or the closing parenthesis is missing", form)
        return patterns

    def _escape_clause(self) -> Literal | None:
        if not self.take_if("ESCAPE"):
            return None
        if self.kind != STRING:
            self.refuse("ESCAPE must be followed by a string of one character", hint="a LIKE '50!%%' ESCAPE '!'")
        return self.literal()

    def _list(self) -> tuple[Literal, ...]:
        self.expect("(", "IN must be followed by literals in parentheses", "a IN (1, 2, 3)")
        if self.kind == ")":
            self.refuse("IN () needs at least one literal", hint="a IN (1, 2, 3)")
        if self.kind == "SELECT" and self.kind_after(1) not in (",", ")"):
            self.refuse("IN (SELECT ...) is not supported", hint="a = ANY (SELECT b FROM history)")
        literals = [self.literal("IN (")]
        while self.take_if(","):
            literals.append(self.literal("the comma"))
        self.expect(")", "a comma or the closing parenthesis of IN is missing", "a IN (1, 2, 3)")
        return tuple(literals)

    def _from_literal(self) -> Expression:
        """A predicate whose attribute stands on the right, or a constant."""
        literal = self.literal()
        operator = SYMBOLS.get(self.kind)
        if operator is None:
            # NULL is refused and every other literal has a number or is TRUE or FALSE.
            if literal.number is None:
                return TRUE if literal.value else FALSE
            refusals.refuse_literal_alone(self, literal.start)
        self.at += 1
        if self.is_literal():
            self.refuse("comparing two literals is not supported: one side must be an attribute", literal.start)
        if not self.is_name():
            refusals.refuse_operand(self)
        if self.kind in QUANTIFIERS and self.kind_after(1) == "(":
            return self._quantified_list(literal, operator)
        start = self.word.start
        return self.make(self.subject(), start, MIRRORED[operator], (literal,))

    def _quantified_list(self, literal: Literal, operator: Operator) -> Expression:
        """`ANY (a)` or `ALL (a)` after a literal and a comparison: some element of a list, or all of them."""
        quantifier = QUANTIFIERS[self.kind]
        form = f"5 {operator} {self.kind} (a)"
        if self.kind_after(2) == "SELECT" and self.kind_after(3) not in (")", "."):
            self.refuse("a subquery must follow an attribute and a comparison", hint="x < ANY (SELECT y FROM history)")
        self.at += 2
        if not self.is_name():
            self.refuse("write one attribute between these parentheses", hint=form)
        start = self.word.start
        subject = Subject(self.attribute(self.name()))
        self.expect(")", "the closing parenthesis is missing after the attribute", form)
        if quantifier is Quantifier.ANY:
            return self._some(subject, start, operator, literal)
        if operator is Operator.NE:
            return self.make(subject, start, Operator.NE, (literal,))
        return Not(self._some(subject, start, INVERSE[operator], literal))

    def _some(self, subject: Subject, start: int, operator: Operator, literal: Literal) -> Expression:
        """Some element satisfies the comparison. Unequal means below or above; for a boolean, it means the other boolean."""
        if operator is not Operator.NE:
            return self.make(subject, start, MIRRORED[operator], (literal,))
        if isinstance(literal.value, bool):
            return self.make(subject, start, Operator.EQ, (literal._replace(value=not literal.value),))
        return any_of(*[self.make(subject, start, order, (literal,)) for order in (Operator.LT, Operator.GT)])

    def _call(self) -> Expression:
        if self.kind == "EXISTS":
            return read_exists(self)
        read = FUNCTIONS.get(self.word.text.lower())
        if read is None or self.kind == QUOTED:
            refusals.refuse_function(self)
        return read(self)
