"""Expressions as large as real rules get: thousands of predicates, hundreds of kilobytes, nesting at the limit."""

from __future__ import annotations

import random

import pytest

import tamis
from tamis.language.engine_sql import to_sql
from tamis.language.evaluate import matches
from tamis.language.expression import MAX_DEPTH, Expression, Predicate
from tamis.language.normal import to_dnf, to_nnf

FIELDS = ["image", "command", "parent", "user", "path"]


def needle(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefgh\\._%", k=chance.randint(30, 70))).replace("%", "!%")


def rule(seed: int, connective: str, count: int = 4400) -> str:
    """A chain of substring predicates, as in detection rules."""
    chance = random.Random(seed)
    forms = ["{} ILIKE '%{}%' ESCAPE '!'", "{} LIKE '{}%' ESCAPE '!'", "{} ILIKE '%{}' ESCAPE '!'", "{} = '{}'"]
    parts = [chance.choice(forms).format(chance.choice(FIELDS), needle(chance)) for _ in range(count)]
    return f" {connective} ".join(parts)


def event_for(expression: Expression, chosen: list[int]) -> dict[str, list[str]]:
    """An event that satisfies the chosen operands of a chain."""
    event: dict[str, list[str]] = {}
    for number in chosen:
        predicate = expression.operands[number]
        assert isinstance(predicate, Predicate)
        text = str(predicate.values[0])
        if predicate.operator != "=":
            text = text.replace("!%", "\0").replace("%", "XX").replace("\0", "%")
        event.setdefault(predicate.attribute, []).append(text)
    return event


def test_an_or_of_thousands() -> None:
    text = rule(1, "OR")
    assert len(text) > 250_000
    expression = tamis.parse(text)
    assert len(expression.operands) == 4400
    assert tamis.parse(to_sql(expression)) == expression
    assert to_nnf(expression) == expression
    assert len(to_dnf(expression) or []) == 4400
    matcher = tamis.Matcher()
    matcher.add("rule", text)
    for number in (0, 1234, 4399):
        event = event_for(expression, [number])
        assert matches(expression, event)
        assert matcher.match(event) == ["rule"]
    assert matcher.match({"image": "nothing of it", "other": "x"}) == []
    assert matcher.explain("rule", event_for(expression, [7])).matched


@pytest.mark.parametrize("count", [200, 4400])
def test_an_and_of_thousands(count: int) -> None:
    expression = tamis.parse(rule(2, "AND", count))
    matcher = tamis.Matcher()
    matcher.add("rule", expression)
    everything, almost = event_for(expression, list(range(count))), event_for(expression, list(range(count - 1)))
    assert matcher.match(everything) == ["rule"]
    assert matcher.match(almost) == []
    if count == 200:  # the evaluator compares every pattern with every value
        assert matches(expression, everything)
        assert not matches(expression, almost)


def test_a_negated_or_and_a_negated_and() -> None:
    matcher = tamis.Matcher()
    matcher.add("none", f"NOT ({rule(3, 'OR', 2000)})")
    matcher.add("some", f"NOT ({rule(3, 'AND', 2000)})")
    calm = dict.fromkeys(FIELDS, "calm")
    assert sorted(matcher.match(calm)) == ["none", "some"]
    assert matcher.match({"image": "calm"}) == ["some"]
    hit = event_for(tamis.parse(rule(3, "OR", 2000)), [1000])
    assert matcher.match({**calm, **hit}) == ["some"]


def test_a_product_of_large_disjunctions_keeps_its_tree() -> None:
    text = " AND ".join(f"({rule(10 + i, 'OR', 300)})" for i in range(5))
    expression = tamis.parse(text)
    matcher = tamis.Matcher()
    matcher.add("rule", text)
    matcher.add("calm", "image = 'calm'")
    merged: dict[str, list[str]] = {}
    for operand in expression.operands:
        for name, values in event_for(operand, [5]).items():
            merged.setdefault(name, []).extend(values)
    assert matches(expression, merged)
    assert matcher.match(merged) == ["rule"]
    for name in merged:
        less = {other: values for other, values in merged.items() if other != name}
        assert (matcher.match(less) == ["rule"]) is matches(expression, less)


def nested(depth: int) -> str:
    """Alternating AND and OR with NOT in between, `depth` levels deep."""
    text, level = "x0 = 1", 0
    while level < depth:
        nots = "NOT " if level % 7 == 0 and level + 2 <= depth else ""
        text = f"x{level % 5} > {level % 3} {'AND' if level % 2 else 'OR'} {nots}({text})"
        level += 2 if nots else 1
    return text


def test_nesting_at_the_limit_and_beyond() -> None:
    text = nested(MAX_DEPTH - 2)
    expression = tamis.parse(text)
    assert expression.depth > 80
    matcher = tamis.Matcher()
    matcher.add("deep", text)
    chance = random.Random(4)
    answers = set()
    for _ in range(200):
        event = {f"x{i}": chance.randint(0, 3) for i in range(5) if chance.random() < 0.8}
        answers.add(matches(expression, event))
        assert (matcher.match(event) == ["deep"]) is matches(expression, event)
    assert answers == {True, False}
    for beyond in (MAX_DEPTH + 20, 10_000):
        with pytest.raises(tamis.NestingError, match=str(MAX_DEPTH)):
            matcher.add("deeper", nested(beyond))
    with pytest.raises(tamis.NestingError, match=str(MAX_DEPTH)):
        built_deeper_than_allowed()


def built_deeper_than_allowed() -> Expression:
    built: Expression = tamis.attr("a") == 1
    for _ in range(MAX_DEPTH + 1):
        built = ~(built & (tamis.attr("b") == 1))
    return built


def test_a_thousand_predicates_on_as_many_attributes() -> None:
    matcher = tamis.Matcher()
    matcher.add("wide", " AND ".join(f"a{i} >= {i}" for i in range(1000)))
    event = {f"a{i}": i for i in range(1000)}
    assert matcher.match(event) == ["wide"]
    assert matcher.match({**event, "a500": 499}) == []
