"""Expressions as JSON: a list of predicates is a conjunction, a list of such lists is a DNF.

    [["price", "between", [20, 40]], ["genre", "=", "classics"]]          price BETWEEN 20 AND 40 AND genre = 'classics'
    [[["a", "=", 1], ["b", "<", 2]], [["c", "is null"]]]                  (a = 1 AND b < 2) OR c IS NULL

A predicate is ``[attribute, operator]`` followed by what the operator takes:

    ["a", "<", 5]                          the operators are those of SQL, in any case; "!=" is "<>"
    ["a", "not <", 5]                      NOT (a < 5), which on a list is not a >= 5
    ["a", "in", [1, 2]]                    also "not in"; "between" and "not between" take [lo, hi]
    ["a", "like", "x!%%", "!"]             the fourth element of a LIKE or ILIKE is its escape
    ["a", "is null"]                       also "is not null"
    ["a", ">=", {"date": "2026-11-14"}]    also {"timestamp": "2026-11-14 10:00:00"}
    ["a", "ip_in", ["10.0.0.0/8"]]         also "not ip_in"
    [{"lower": "a"}, "=", "x"]             lower(a) = 'x'; also {"upper": "a"}
    ["a", "<", {"any": "b"}]               a < ANY (SELECT b FROM history); also {"all": "b"}

In place of a predicate may stand ``true``, ``false`` and objects of one key:

    {"is true": ["a", "=", 1]}             (a = 1) IS TRUE; also "is not true", "is false", "is unknown", ...
    {"exists": [["author", "=", {"attribute": "author"}], ["genre", "=", "crime"]]}

The first holds an expression in any of these forms. In the second, for one earlier event, each predicate is on the earlier
event and ``{"attribute": name}`` is that of the new one; also "not exists".
"""

from __future__ import annotations

from typing import Any, TypeAlias

from tamis.errors import ExpressionError, LiteralError, NestingError, shortened
from tamis.language.checks import check_attribute
from tamis.language.expression import (
    MAX_TESTS,
    CasePredicate,
    Constant,
    Expression,
    Not,
    Predicate,
    TruthTest,
    all_of,
    any_of,
)
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.literals import read_date, read_timestamp
from tamis.language.operators import (
    CALLED,
    COMPARISONS,
    LIKES,
    LISTS,
    NULL_TESTS,
    SPELLINGS,
    Case,
    Operator,
    Quantifier,
    read_operator,
)
from tamis.language.printer import TRUTH_WORDS

EXISTS, NOT_EXISTS, ATTRIBUTE = "exists", "not exists", "attribute"
_AFTER_NOT = COMPARISONS | CALLED
"""The operators before which "not" may stand. Other operators have a negation of their own."""
_TESTS: dict[str, tuple[bool | None, bool]] = {
    f"is {'not ' if negated else ''}{word.lower()}": (truth, negated)
    for truth, word in TRUTH_WORDS.items()
    for negated in (False, True)
}
"""The key of a truth test -> the truth, and whether it is negated."""
TEST_KEYS = {test: key for key, test in _TESTS.items()}
_OBJECTS = '{"exists": [...]}, {"not exists": [...]} or a test such as {"is true": [...]}'


def from_json(form: Any) -> Expression:
    """Read the JSON form of an expression: lists, objects and scalars as ``json.loads`` gives them.

    Raises
    ------
    ExpressionError
        The value does not have this form. The message names the place, as a path such as ``[2][1]``.

    >>> from_json([["price", "<", 10], ["genre", "in", ["crime", "classics"]]])
    <And price < 10 AND genre IN ('crime', 'classics')>
    """
    return _expression(form, "")


def _expression(form: Any, path: str) -> Expression:
    """A predicate, a conjunction or a disjunction of conjunctions."""
    if not isinstance(form, list | tuple):
        raise _error(path, f"the JSON form of an expression must be a list, not {shortened(form)}")
    if not form:
        raise _error(path, "an empty list is not an expression. Hint: [true] matches every event, [false] none")
    if _is_predicate(form):
        return _item(form, path)
    if _is_item(form[0]):
        return _conjunction(form, path)
    return any_of(*[_conjunction(part, f"{path}[{place}]") for place, part in enumerate(form)])


def _is_item(form: Any) -> bool:
    """Whether it is meant as one element of a conjunction rather than as a conjunction."""
    return isinstance(form, bool | dict) or (isinstance(form, list | tuple) and _is_predicate(form))


def _is_predicate(form: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list is meant as a predicate: it begins with a name, or with an object before an operator."""
    first = form[0] if form else None
    return isinstance(first, str) or (isinstance(first, dict) and len(form) > 1 and isinstance(form[1], str))


def _conjunction(form: Any, path: str) -> Expression:
    if not isinstance(form, list | tuple) or _is_item(form):
        raise _error(path, f"a list of predicates is needed here, not {shortened(form)}")
    if not form:
        raise _error(path, "an empty list of predicates. Hint: [true] matches every event, [false] none")
    return all_of(*[_item(part, f"{path}[{place}]") for place, part in enumerate(form)])


def _item(form: Any, path: str) -> Expression:
    if isinstance(form, bool):
        return Constant(form)
    if isinstance(form, dict):
        return _object(form, path)
    subject, operator, negated, rest = _split(form, path)
    case, name = subject
    try:
        if rest and isinstance(rest[0], dict) and rest[0].keys() & set(Quantifier):
            if len(rest) > 1:
                raise _error(path, f"{shortened(rest[0])} must come last, but {shortened(rest[1])} follows")
            quantifier, earlier = _single(rest[0], path + "[2]", tuple(Quantifier))
            check_attribute(earlier)
            if case is not None:
                raise _error(path + "[0]", f"{case}({name}) must be compared with a string")
            literal: Expression = Quantified(name, operator, quantifier, earlier)
        else:
            literal = _predicate(subject, operator, rest, path)
    except ExpressionError as error:
        raise _located(error, path) from None
    return Not(literal) if negated else literal


_Subject: TypeAlias = tuple[Case | None, str]
"""An attribute, and the function that changes its case."""


def _split(form: Any, path: str) -> tuple[_Subject, Operator, bool, list[Any]]:
    """The subject, the operator, whether "not" stands before it, and what follows."""
    if not isinstance(form, list | tuple):
        raise _error(path, f"a predicate must be a list [attribute, operator, value], not {shortened(form)}")
    if not _is_predicate(form) or len(form) < 2 or not isinstance(form[1], str):
        raise _error(
            path, f"a predicate must be [attribute, operator, value] with a name and an operator, not {shortened(form)}"
        )
    first, spelled, *rest = form
    case: Case | None = None
    name = first
    if isinstance(first, dict):
        function, name = _single(first, path + "[0]", tuple(Case))
        case = Case(function)
    try:
        check_attribute(name)
    except ExpressionError as error:
        raise _located(error, path + "[0]") from None
    words = spelled.lower().split()
    try:
        if len(words) == 2 and words[0] == "not" and (operator := _comparison(words[1])) is not None:
            return (case, name), operator, True, rest
        return (case, name), read_operator(spelled), False, rest
    except ExpressionError as error:
        raise _located(error, path + "[1]") from None


def _comparison(spelled: str) -> Operator | None:
    operator = SPELLINGS.get(spelled)
    return operator if operator in _AFTER_NOT else None


def _predicate(subject: _Subject, operator: Operator, rest: list[Any], path: str) -> Predicate:
    if operator in NULL_TESTS:
        return _made(subject, operator, rest)
    if not rest or len(rest) > 2:
        raise _error(
            path, f"{operator.upper()} takes a value: [attribute, operator, value], not {2 + len(rest)} elements"
        )
    values = rest[0]
    if operator in LISTS:
        if not isinstance(values, list | tuple):
            raise _error(path + "[2]", f"{operator.upper()} takes a list, not {shortened(values)}")
        literals = [_literal(value, f"{path}[2][{place}]") for place, value in enumerate(values)]
    else:
        literals = [_literal(values, path + "[2]")]
    escape = rest[1] if len(rest) == 2 else None
    if len(rest) == 2 and operator not in LIKES:
        raise _error(path, f"only LIKE and ILIKE take an escape; {operator.upper()} takes nothing after its value")
    if escape is not None and not isinstance(escape, str):
        raise _error(path + "[3]", f"an escape must be a string of one character, not {shortened(escape)}")
    return _made(subject, operator, literals, escape)


def _made(subject: _Subject, operator: Operator, literals: list[Any], escape: str | None = None) -> Predicate:
    case, name = subject
    if case is None:
        return Predicate(name, operator, literals, escape=escape)
    return CasePredicate(case, name, operator, literals, escape=escape)


def _literal(form: Any, path: str) -> Any:
    if isinstance(form, list | tuple):
        raise _error(path, f"one value is needed, not the list {shortened(form)}")
    if not isinstance(form, dict):
        return form
    kind, text = _single(form, path, ("date", "timestamp"))
    try:
        return read_date(text) if kind == "date" else read_timestamp(text)
    except LiteralError:
        example = "2026-11-14" if kind == "date" else "2026-11-14 10:00:00"
        raise LiteralError(f'at {path}: {shortened(text)} is not a {kind}. Hint: {{"{kind}": "{example}"}}') from None


def _object(form: dict[Any, Any], path: str) -> Expression:
    key = next(iter(form)) if len(form) == 1 else None
    if key in (EXISTS, NOT_EXISTS):
        return _read_exists(form, key, path)
    if not isinstance(key, str) or key not in _TESTS:
        raise _error(path, f"an object here must be {_OBJECTS}, not {shortened(form)}")
    # Before they are read: Python's own stack has an end, too.
    if path.count('["is ') >= MAX_TESTS:
        raise NestingError(f"at {path}: more than {MAX_TESTS} tests are nested in each other")
    return TruthTest(_expression(form[key], f'{path}["{key}"]'), *_TESTS[key])


def _read_exists(form: dict[Any, Any], key: str, path: str) -> Expression:
    terms = form[key]
    path = f'{path}["{key}"]'
    if not isinstance(terms, list | tuple):
        raise _error(path, f"a list of predicates on an earlier event is needed, not {shortened(terms)}")
    parts = [_term(term, f"{path}[{place}]") for place, term in enumerate(terms)]
    found = Exists(
        [part for part in parts if isinstance(part, Join)],
        [part for part in parts if isinstance(part, Predicate)],
    )
    return Not(found) if key == NOT_EXISTS else found


def _term(form: Any, path: str) -> Join | Predicate:
    """One predicate on an earlier event."""
    subject, operator, negated, rest = _split(form, path)
    case, name = subject
    if negated:
        raise _error(path + "[1]", f'"not {operator}" is not allowed inside "exists"')
    try:
        if len(rest) == 1 and isinstance(rest[0], dict) and ATTRIBUTE in rest[0]:
            _, attribute = _single(rest[0], path + "[2]", (ATTRIBUTE,))
            check_attribute(attribute)
            if case is not None:
                raise _error(path + "[0]", f"{case}({name}) must be compared with a string")
            return Join(name, operator, attribute)
        return _predicate(subject, operator, rest, path)
    except ExpressionError as error:
        raise _located(error, path) from None


def _single(form: dict[Any, Any], path: str, keys: tuple[str, ...]) -> tuple[str, str]:
    """The key and the text of an object of one key."""
    if len(form) == 1:
        [(key, text)] = form.items()
        if key in keys and isinstance(text, str):
            return key, text
    known = " or ".join(f'{{"{key}": "..."}}' for key in keys)
    raise _error(path, f"an object here must be {known}, not {shortened(form)}")


def _error(path: str, message: str) -> ExpressionError:
    return ExpressionError(f"at {path}: {message}" if path else message)


def _located(error: ExpressionError, path: str) -> ExpressionError:
    """The error of a part with its place, unless it says it already."""
    text = str(error)
    return error if text.startswith("at [") or not path else type(error)(f"at {path}: {text}")
