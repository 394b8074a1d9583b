"""The grammar of the SQL text: words in, an expression out.

    expression  =  [NOT ...] ( predicate | "(" expression ")" ) [ IS [NOT] TRUE | FALSE | UNKNOWN ], joined with AND and OR
    predicate   =  subject [ operator literals ]  |  literal comparison subject  |  TRUE  |  FALSE
                |  literal comparison ANY (attribute)  |  attribute comparison ANY (SELECT ...)
                |  function(...), see `functions`  |  EXISTS (...)
    subject     =  attribute  |  lower(attribute)  |  upper(attribute)

Everything else is refused, with its place.
"""

from __future__ import annotations

from tamis.language import refusals
from tamis.language.dialect import END, QUOTED, STRING, split_words
from tamis.language.expression import FALSE, TRUE, Expression, Not, Predicate, TruthTest, all_of, any_of
from tamis.language.functions import FUNCTIONS
from tamis.language.history_sql import QUANTIFIERS, SYMBOLS, read_exists, read_quantified
from tamis.language.operands import Literal, Subject
from tamis.language.operators import INFIX, INVERSE, LIKES, MIRRORED, NEGATION, SYNONYMS, Operator, Quantifier
from tamis.language.predicate_reader import PredicateReader, Reading

_SUFFIXES = INFIX | SYNONYMS
_TRUTHS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "UNKNOWN": None}
_IS = "NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM"


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


class Reader(PredicateReader):
    """Reads one expression from its words."""

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

    def predicate(self) -> Expression:
        """One predicate or constant."""
        if self.is_literal():
            return self._from_literal()
        if not self.is_name():
            refusals.refuse_operand(self)
        start = self.word.start
        if self.kind_after(1) == "(" and not self.is_case():
            return self._call()
        return self._tail(self.subject(), start)

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
        """What follows IN, BETWEEN and the operators that take a pattern."""
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
        if operator not in LIKES:
            word = operator.name
            self.refuse(f"{word} takes one pattern", hint=f"put alternatives into the pattern: a {word} 'x|y'")
        patterns = self._patterns(operator)
        escape = self._escape_clause()
        parts = [self.make(subject, start, written, (pattern,), escape) for pattern in patterns]
        return any_of(*parts) if quantifier is Quantifier.ANY else all_of(*parts)

    def _patterns(self, operator: Operator) -> list[Literal]:
        """The patterns of LIKE ANY (...) and LIKE ALL (...)."""
        form = f"a {operator.name} {self.take().kind} ('x%', '%y')"
        self.at += 1
        if self.kind == "SELECT":
            self.refuse(f"{operator.name} takes patterns, not a subquery", hint=form)
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
