"""The grammar of the SQL text: words in, an expression out.

    expression  =  [NOT ...] ( predicate | "(" expression ")" ), joined with AND and OR
    predicate   =  attribute [ operator literals ]  |  literal comparison attribute  |  TRUE  |  FALSE
                |  array_contains(attribute, literal)  |  attribute comparison ANY (...)  |  EXISTS (...)

Nothing else is read: what does not fit is refused where it stands.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.errors import NestingError
from tamis.language import refusals
from tamis.language.checks import check_escape
from tamis.language.dialect import END, STRING, Word, split_words
from tamis.language.expression import FALSE, MAX_DEPTH, TRUE, Expression, Not, Predicate, all_of, any_of
from tamis.language.history_sql import QUANTIFIERS, SYMBOLS, read_exists, read_quantified, unqualified
from tamis.language.operands import Literal, Name, Operands, Slot
from tamis.language.operators import LIKES, MIRRORED, NEGATION, Operator

_SUFFIXES: dict[str, Operator] = {
    operator.name: operator
    for operator in (Operator.IN, Operator.BETWEEN, Operator.LIKE, Operator.ILIKE, Operator.RLIKE)
}


class Use(NamedTuple):
    """Which literals a predicate was made of."""

    predicate: Predicate
    literals: tuple[Literal, ...]
    escape: Literal | None


class Reading(NamedTuple):
    """An expression, and where its literals come from: `fixed` are the slots that no predicate holds."""

    expression: Expression
    slots: list[Slot]
    uses: list[Use]
    fixed: list[int]


def read(text: str, dialect: str = "tamis") -> Reading:
    """Read a text word by word."""
    reader = Reader(text, split_words(text, dialect), spark=dialect == "spark")
    return Reading(reader.expression(), reader.slots, reader.uses, reader.fixed)


class _Group:
    """What stands between two parentheses, as far as it is read.

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
        """The whole text. The stack is our own, not Python's: the caller's may be nearly used up."""
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
            group.add(self.predicate(), nots)
            while outer and self.take_if(")"):
                inner, group = group, outer.pop()
                group.add(inner.close(), inner.nots)
            if self.take_if("OR"):
                group.next_alternative()
            elif not self.take_if("AND"):
                break
        if self.kind != END:
            refusals.refuse_after_predicate(self)
        if outer:
            self.refuse("this parenthesis is never closed", group.start, "add the missing )")
        return group.close()

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
        if self.kind_after(1) == "(":
            return self._call()
        name = self.name()
        return self._tail(self._attribute(name), name.start)

    def _attribute(self, name: Name) -> str:
        """The attribute that a name stands for: inside EXISTS one of the earlier event."""
        if self.alias is None:
            return name.attribute
        earlier = unqualified(name, self.alias)
        if earlier is None:
            hint = f"write {self.alias}.{name.attribute}, or move the predicate out of EXISTS"
            self.refuse(f"{name.attribute} is no attribute of the earlier event", name.start, hint)
        return earlier

    def _tail(self, attribute: str, start: int) -> Expression:
        """What follows the attribute of a predicate: operator and literals, or nothing."""
        symbol = SYMBOLS.get(self.kind)
        if symbol is not None:
            self.at += 1
            return self._comparison(attribute, symbol)
        if self.take_if("IS"):
            operator = Operator.IS_NOT_NULL if self.take_if("NOT") else Operator.IS_NULL
            self.expect("NULL", "IS is followed by NULL or NOT NULL", "a boolean is tested by a = TRUE")
            return self._make(attribute, start, operator, ())
        negated = self.take_if("NOT")
        suffix = _SUFFIXES.get(self.kind)
        if suffix is not None:
            self.at += 1
            return self._suffix(attribute, start, suffix, negated)
        if negated:
            self.refuse(f"after an attribute, NOT is followed by {', '.join(_SUFFIXES)}")
        return self._make(attribute, start, Operator.EQ, (Literal(True, start, None),))

    def _make(
        self,
        attribute: str,
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
        predicate = self.located(place, lambda: Predicate(attribute, operator, values, escape=symbol))
        self.uses.append(Use(predicate, literals, escape))
        return predicate

    def _comparison(self, attribute: str, operator: Operator) -> Expression:
        if self.kind in QUANTIFIERS and self.kind_after(1) == "(":
            return read_quantified(self, attribute, operator)
        if self.is_name():
            refusals.refuse_two_attributes(self, attribute, operator)
        if not self.is_literal():
            refusals.refuse_operand(self)
        literal = self.literal()
        return self._make(attribute, literal.start, operator, (literal,))

    def _suffix(self, attribute: str, start: int, operator: Operator, negated: bool) -> Predicate:
        """What follows IN, BETWEEN, LIKE, ILIKE and RLIKE."""
        escape = None
        if operator is Operator.IN:
            literals = self._list()
        elif operator is Operator.BETWEEN:
            low = self.literal("BETWEEN")
            self.expect("AND", "AND is missing between the ends of BETWEEN", "a BETWEEN 20 AND 40")
            literals = (low, self.literal("AND"))
        else:
            literals = (self.literal(operator.name),)
            escape = self._escape_clause()
        return self._make(attribute, start, NEGATION[operator] if negated else operator, literals, escape)

    def _escape_clause(self) -> Literal | None:
        if not self.take_if("ESCAPE"):
            return None
        if self.kind != STRING:
            self.refuse("ESCAPE is followed by a string of one character", hint="a LIKE '50!%%' ESCAPE '!'")
        return self.literal()

    def _list(self) -> tuple[Literal, ...]:
        self.expect("(", "IN is followed by literals in parentheses", "a IN (1, 2, 3)")
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
            # NULL is refused and every other literal has a slot or is TRUE or FALSE.
            if literal.slot is None:
                return TRUE if literal.value else FALSE
            refusals.refuse_literal_alone(self, literal.start)
        self.at += 1
        if self.is_literal():
            self.refuse("comparing two literals is not supported: one side is an attribute", literal.start)
        if not self.is_name():
            refusals.refuse_operand(self)
        if self.kind_after(1) == "(":
            refusals.refuse_function(self)
        name = self.name()
        return self._make(self._attribute(name), name.start, MIRRORED[operator], (literal,))

    def _call(self) -> Expression:
        if self.kind == "EXISTS":
            return read_exists(self)
        if self.kind != "ARRAY_CONTAINS":
            refusals.refuse_function(self)
        self.at += 2
        form = "array_contains(attribute, literal)"
        if not self.is_name():
            self.refuse("array_contains begins with an attribute", hint=form)
        name = self.name()
        self.expect(",", "a comma is missing after the attribute of array_contains", form)
        literal = self.literal("the comma")
        self.expect(")", "the closing parenthesis of array_contains is missing", form)
        return self._make(self._attribute(name), name.start, Operator.EQ, (literal,))
