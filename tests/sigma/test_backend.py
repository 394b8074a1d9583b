"""The backend as pySigma and its command `sigma convert` use it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sigma.collection import SigmaCollection
from sigma.exceptions import SigmaError, SigmaFeatureNotSupportedByBackendError
from sigma.plugins import InstalledSigmaPlugins

import tamis
from tamis.sigma import TamisBackend
from tests.sigma.reading import rule

ID = "5d8fd9a0-9fd1-4b2b-8f86-b9aa31f7f1f0"


def convert(text: str, format: str | None = None, **options: Any) -> Any:
    return TamisBackend(**options).convert(SigmaCollection.from_yaml(text), format)


def test_pysigma_discovers_it() -> None:
    found = InstalledSigmaPlugins.autodiscover(include_pipelines=False, include_validators=False)
    backends: dict[str, Any] = dict(found.backends)
    assert backends["tamis"] is TamisBackend


def test_expressions_as_text() -> None:
    [text] = convert(rule("selection: {a|contains: \"it's\", 'b c': 5}"))
    assert text == "logsource.product = 'any' AND a ILIKE '%it''s%' AND \"b c\" IN (5, '5')"
    assert str(tamis.parse(text)) == text


def test_subscriptions_as_json_lines() -> None:
    text = rule(
        "selection: {a: x}", title="é", more=f"id: {ID}\nlevel: low\ntags: [attack.t1]\nlogsource: {{product: p}}"
    )
    [line] = convert(text, "jsonl", log_sources="ignore")
    assert json.loads(line) == {
        "id": ID,
        "expression": "lower(a) = 'x'",
        "title": "é",
        "level": "low",
        "tags": ["attack.t1"],
    }
    lines = convert(rule("p: {a: x}\nq: {a: y}", condition="[p, q]"), "jsonl", log_sources="ignore")
    assert [json.loads(each)["id"] for each in lines] == ["rule", "rule#2"]


@pytest.mark.parametrize(
    ("detection", "message"),
    [
        ("selection: [foo]", "the rule has keywords, .* the option keyword_field names the attribute to search"),
        ("selection: {a|fieldref: b}", "the rule compares two fields, which an expression cannot do alone"),
        ("selection: {a|hour: 3}", "the rule asks for the hour of a time, which"),
    ],
)  # fmt: skip
def test_what_an_expression_cannot_do_alone(detection: str, message: str) -> None:
    with pytest.raises(SigmaFeatureNotSupportedByBackendError, match=message):
        convert(rule(detection))


def test_keywords_in_a_field() -> None:
    assert convert(rule("selection: [foo]"), keyword_field="Message", log_sources="ignore") == ["Message ILIKE '%foo%'"]


def test_errors_of_the_language_are_errors_of_the_rule() -> None:
    backend = TamisBackend(collect_errors=True)
    assert backend.convert(SigmaCollection.from_yaml(rule(f"selection: {{a: {2**70}}}"))) == []
    [(_, error)] = backend.errors
    assert isinstance(error, SigmaError)
    assert "64 bits" in str(error)


CORRELATION = """
title: many
correlation: {type: event_count, rules: [first], group-by: [u], timespan: 1m, condition: {gte: 5}}
"""


def test_correlations_are_refused() -> None:
    text = rule("selection: {a: x}", more="name: first\nlogsource: {product: p}") + "---" + CORRELATION
    with pytest.raises(SigmaFeatureNotSupportedByBackendError, match="a correlation is about several events"):
        convert(text)
    backend = TamisBackend(collect_errors=True)
    assert backend.convert(SigmaCollection.from_yaml(text)) == []
    assert len(backend.errors) == 1
