"""The functions of SQL text, each read into predicates.

lower(a), upper(a)                                  the subject of a comparison, IN or LIKE
starts_with(a, 'x'), ends_with(a, 'x'), contains(a, 'x')    a LIKE 'x%', '%x', '%x%'
array_contains(a, v)                                a = v
ip_in(a, '10.0.0.0/8', ...)                         the address lies in one of the networks
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tamis.language.checks import check_argument
from tamis.language.dialect import STRING
from tamis.language.expression import Predicate
from tamis.language.operands import Subject
from tamis.language.operators import CALLED, ROWS, Operator
from tamis.language.predicate_reader import PredicateReader


def _array_contains(reader: PredicateReader) -> Predicate:
    name, form = "array_contains", "array_contains(attribute, literal)"
    subject = _subject(reader, name, form)
    start = reader.word.start
    literal = reader.literal("the comma")
    _close(reader, name, form)
    return reader.make(subject, start, Operator.EQ, (literal,))


def _like(name: str, around: tuple[str, str]) -> Callable[[PredicateReader], Predicate]:
    """The reader of a function that looks for a plain string at some place."""
    form = f"{name}(a, 'x')"

    def read(reader: PredicateReader) -> Predicate:
        subject = _subject(reader, name, form)
        if reader.kind != STRING:
            reader.refuse(f"{name} takes a string after the comma", hint=form)
        literal = reader.literal()
        _close(reader, name, form)
        return reader.like_around(subject, literal, around)

    return read


def _operator(operator: Operator) -> Callable[[PredicateReader], Predicate]:
    """The reader of an operator that is a function: an attribute, then literals."""
    form = ROWS[operator].example

    def read(reader: PredicateReader) -> Predicate:
        subject = _subject(reader, operator, form)
        literals = [reader.literal("the comma")]
        while reader.take_if(","):
            literals.append(reader.literal("the comma"))
        _close(reader, operator, form)
        # Each alone first, so that an error stands where the literal is.
        for literal in literals:
            reader.located(literal.start, partial(check_argument, operator, literal.value))
        return reader.make(subject, literals[0].start, operator, tuple(literals))

    return read


def _subject(reader: PredicateReader, name: str, form: str) -> Subject:
    """The parenthesis, the first argument and the comma behind it."""
    reader.at += 2
    if not reader.is_name():
        reader.refuse(f"the first argument of {name} must be an attribute", hint=form)
    subject = reader.subject()
    reader.expect(",", f"a comma is missing after the attribute of {name}", form)
    return subject


def _close(reader: PredicateReader, name: str, form: str) -> None:
    reader.expect(")", f"the closing parenthesis of {name} is missing", form)


_STARTS, _ENDS, _CONTAINS = ("", "%"), ("%", ""), ("%", "%")

FUNCTIONS: dict[str, Callable[[PredicateReader], Predicate]] = {
    "array_contains": _array_contains,
    **{operator.value: _operator(operator) for operator in CALLED},
    "contains": _like("contains", _CONTAINS),
    **{name: _like(name, _STARTS) for name in ("starts_with", "startswith")},
    **{name: _like(name, _ENDS) for name in ("ends_with", "endswith")},
}
"""Name of a function in lower case -> its reader."""
