"""Joins with earlier events in SQL text: ANY and ALL over a subquery, and EXISTS."""

from __future__ import annotations

from typing import NamedTuple

from tamis.language import refusals
from tamis.language.dialect import END
from tamis.language.expression import Predicate
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operands import Name
from tamis.language.operators import COMPARISONS, MIRRORED, OPPOSITE, Operator, Quantifier
from tamis.language.predicate_reader import PredicateReader

HISTORY = "history"
"""The name of the one table that subqueries may read."""

SYMBOLS: dict[str, Operator] = {operator.value: operator for operator in COMPARISONS}
QUANTIFIERS: dict[str, Quantifier] = {"ANY": Quantifier.ANY, "SOME": Quantifier.ANY, "ALL": Quantifier.ALL}

_QUANTIFIED = "x < ANY (SELECT y FROM history)"
_EXISTS = "EXISTS (SELECT 1 FROM history h WHERE h.x = x AND h.y > 5)"


def read_quantified(reader: PredicateReader, attribute: str, operator: Operator) -> Quantified:
    """`ANY (SELECT y FROM history)` after an attribute and a comparison."""
    _refuse_nested(reader)
    quantifier = QUANTIFIERS[reader.take().kind]
    reader.at += 1
    reader.expect("SELECT", "a subquery is expected here", _QUANTIFIED)
    if not reader.is_name():
        reader.refuse("SELECT must be followed by one attribute of the earlier events", hint=_QUANTIFIED)
    name = reader.name()
    alias = _from_history(reader, _QUANTIFIED)
    if reader.kind == "WHERE":
        reader.refuse("WHERE is supported only in EXISTS", hint=_EXISTS)
    reader.expect(")", "the closing parenthesis of the subquery is missing", _QUANTIFIED)
    return Quantified(attribute, operator, quantifier, name.below(alias) or name.attribute)


def read_exists(reader: PredicateReader) -> Exists:
    """`EXISTS (SELECT 1 FROM history h WHERE ...)`."""
    _refuse_nested(reader)
    reader.at += 2
    reader.expect("SELECT", "a subquery is expected here", _EXISTS)
    start = reader.word.start
    if not reader.take_if("*"):
        one = reader.literal() if reader.is_literal() else None
        if one is None or one.number is None or one.value != 1:
            reader.refuse("the subquery of EXISTS must begin with SELECT 1 or SELECT *", start, _EXISTS)
        reader.fixed.append(one.number)
    reader.alias = _from_history(reader, _EXISTS)
    terms = _terms(reader, reader.alias) if reader.take_if("WHERE") else []
    reader.alias = None
    if not reader.take_if(")"):
        refusals.refuse_after_predicate(reader)
    return Exists(
        [term for term in terms if isinstance(term, Join)],
        [term for term in terms if isinstance(term, Predicate)],
    )


def _from_history(reader: PredicateReader, form: str) -> str:
    """Read `FROM history [AS] h`; the name that qualifies the attributes of the earlier event."""
    reader.expect("FROM", "FROM history is expected here", form)
    start = reader.word.start
    if not reader.is_name():
        reader.refuse("FROM must be followed by history", hint=form)
    table = reader.name().attribute
    if table.lower() != HISTORY:
        reader.refuse(f"subqueries on tables other than history are not supported: {table}", start, form)
    if not reader.take_if("AS") and (reader.kind == "WHERE" or not reader.is_name()):
        return table
    start = reader.word.start
    if not reader.is_name() or reader.kind_after(1) == ".":
        reader.refuse("the alias of history must be one word", start, form)
    return reader.take().text


class _Open(NamedTuple):
    """A parenthesis that is open: how many NOTs stand before it, how many terms, how deep it is."""

    start: int
    nots: int
    terms: int
    level: int


def _terms(reader: PredicateReader, alias: str) -> list[Join | Predicate]:
    """What follows WHERE: terms joined with AND. Parentheses are dropped, and NOT goes into a term's operator."""
    terms: list[Join | Predicate] = []
    opened: list[_Open] = []
    more = True
    while more:
        start = reader.word.start
        level = opened[-1].level if opened else 0
        nots = reader.nots(level)
        if reader.kind == "(":
            opened.append(_Open(start, nots, len(terms), reader.deeper(level + nots)))
            reader.at += 1
            continue
        terms.append(_negated(reader, _join(reader, alias) or _condition(reader), nots, start))
        while opened and reader.take_if(")"):
            group = opened.pop()
            if group.nots and len(terms) - group.terms > 1:
                reader.refuse("inside EXISTS, NOT applies to one predicate only", group.start, _EXISTS)
            terms[-1] = _negated(reader, terms[-1], group.nots, group.start)
        more = reader.take_if("AND")
    if reader.kind == "OR":
        reader.refuse("inside EXISTS, join predicates with AND only", hint=_EXISTS)
    if opened and reader.kind == END:
        reader.refuse("this parenthesis is never closed", opened[-1].start, "add the missing )")
    return terms


def _negated(reader: PredicateReader, term: Join | Predicate, nots: int, start: int) -> Join | Predicate:
    if nots % 2 == 0:
        return term
    operator = OPPOSITE.get(term.operator)
    if operator is None:
        reader.refuse(
            f"inside EXISTS, NOT before {term.operator} is not supported",
            start,
            "on a list, NOT (h.a < 5) differs from h.a >= 5; write the comparison you mean",
        )
    if isinstance(term, Join):
        return Join(term.earlier, operator, term.attribute)
    negated = term.with_operator(operator)
    # The term was read last, and so was its use of literals.
    reader.uses[-1] = reader.uses[-1]._replace(predicate=negated)
    return negated


def _join(reader: PredicateReader, alias: str) -> Join | None:
    """A comparison of two attributes, one of each event; None, with nothing read, for anything else."""
    before = reader.at
    if reader.is_name() and reader.kind_after(1) != "(":
        left, symbol = reader.name(), reader.take().kind
        is_subquery = reader.kind in QUANTIFIERS and reader.kind_after(1) == "("
        if symbol in SYMBOLS and reader.is_name() and not is_subquery:
            if reader.kind_after(1) == "(":
                refusals.refuse_function(reader)
            return _make_join(reader, alias, left, SYMBOLS[symbol], reader.name())
    reader.at = before
    return None


def _make_join(reader: PredicateReader, alias: str, left: Name, operator: Operator, right: Name) -> Join:
    first, second = left.below(alias), right.below(alias)
    if first is not None and second is None:
        return Join(first, operator, right.attribute)
    if second is None or first is not None:
        both = "new" if first is None else "earlier"
        hint = f"only attributes of the earlier event begin with {alias}."
        reader.refuse(f"a join compares two events, but both attributes belong to the {both} one", left.start, hint)
    return Join(second, MIRRORED[operator], left.attribute)


def _condition(reader: PredicateReader) -> Predicate:
    """A predicate on the earlier event alone."""
    start = reader.word.start
    condition = reader.predicate()
    if not isinstance(condition, Predicate):
        reader.refuse("inside EXISTS, every condition must be about the earlier event", start, _EXISTS)
    return condition


def _refuse_nested(reader: PredicateReader) -> None:
    if reader.alias is not None:
        reader.refuse("a subquery inside a subquery is not supported", hint=_EXISTS)
