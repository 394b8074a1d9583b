"""OpenAPI tells the truth: examples work when pasted, in the order of the page, and answers have the forms that it says."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.service.serving import Server, in_tenant

VERBS = ("get", "put", "post", "delete", "patch")
DOCUMENTED_LATER = ("/openapi.json",)


@pytest.fixture(scope="module")
def fresh(server: Server) -> Server:
    """A tenant of its own, whose numbers begin with 1."""
    return in_tenant(server, "pasted")


def operations(document: Any) -> list[tuple[str, str, Any]]:
    """All operations in the order of the page; those that remove something come last, the widest at the end."""
    found = [(verb, path, each[verb]) for path, each in document["paths"].items() for verb in VERBS if verb in each]
    return sorted(found, key=lambda each: (each[0] == "delete", -len(each[1]) if each[0] == "delete" else 0))


def example_of(parameter: Any) -> Any:
    examples = parameter["schema"].get("examples") or [parameter.get("example")]
    return examples[0]


def test_examples_work_when_pasted(fresh: Server) -> None:
    document = fresh.client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    fresh.subscribe("ann", "crime", "price < 20")
    fresh.publish({"genre": "crime", "price": 3})
    pasted = 0
    for verb, path, operation in operations(document):
        if any(word in operation.get("x-needs", "") for word in ("stream", "receiver")):
            continue
        needed = [each for each in operation.get("parameters", ()) if each["required"]]
        for each in needed:
            if each["in"] == "path":
                path = path.replace("{" + each["name"] + "}", quote(str(example_of(each)), safe=""))
        contents = operation.get("requestBody", {}).get("content") or {None: {}}
        for media_type, content in contents.items():
            example = content.get("example")
            body = example if isinstance(example, str) else json.dumps(example)
            headers = {} if media_type is None else {"Content-Type": media_type}
            answer = fresh.client.request(verb, path, content=None if media_type is None else body, headers=headers)
            assert answer.is_success, (verb, path, answer.text)
            check_form(answer, operation, (verb, path))
            pasted += 1
    assert pasted >= 25


def check_form(answer: Any, operation: Any, place: Any) -> None:
    """The answer has the form that is documented for its status."""
    described = operation["responses"][str(answer.status_code)]
    if "content" not in described:
        assert answer.content == b"", place
        return
    ((media_type, content),) = described["content"].items()
    assert answer.headers["content-type"].partition(";")[0] == media_type, place
    if media_type == "application/json":
        assert fits(answer.json(), content["schema"]), (place, answer.text, content["schema"])


def fits(value: Any, schema: Any) -> bool:
    """Whether a value has the form of a JSON schema, as far as ours use them."""
    if "anyOf" in schema:
        return any(fits(value, each) for each in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(is_kind(value, each) for each in kinds):
        return False
    if isinstance(value, list):
        return all(fits(each, schema["items"]) for each in value)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        named = set(schema.get("required", ())) <= set(value)
        return named and all(fits(each, known[name]) for name, each in value.items() if name in known)
    return True


def is_kind(value: Any, kind: str) -> bool:
    if kind in ("integer", "number"):
        return isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
    return isinstance(value, {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}[kind])


def test_every_route_describes_its_problems(fresh: Server) -> None:
    document = fresh.client.get("/openapi.json").json()
    for verb, path, operation in operations(document):
        if path in ("/health", "/ready", *DOCUMENTED_LATER):
            continue
        for status in ("401", "403", "422", "429"):
            assert "application/problem+json" in operation["responses"][status]["content"], (verb, path)
        assert operation["summary"], path
        assert operation["description"], path
