"""Right and wrong requests to all routes, made from OpenAPI by schemathesis: only answers that OpenAPI lists, no failure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tamis.service.answers import NDJSON
from tamis.service.app import make_app
from tamis.service.config import ServiceConfig
from tests.service.serving import Server

EXAMPLES = 2
SOAK_EXAMPLES = 300
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
TENANT = {"Tamis-Tenant": "tried"}
"""These requests change the schema and remove subscribers, so they have a tenant of their own."""

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
fields = st.sampled_from(["subscriber", "name", "expression", "weight", "valid_until", "event", "key", "price"])
texts = st.sampled_from(["ann", "price < 20", "price <", "2026-12-24", "a" * 70_000]) | st.text(max_size=10)
line = st.dictionaries(fields, texts | values, max_size=5).map(json.dumps).map(str.encode)
schemathesis.openapi.media_type(
    NDJSON, st.lists(line | st.binary(max_size=30), max_size=6).map(b"\n".join), aliases=["application/jsonl"]
)


def operations() -> Iterator[Any]:
    """All routes that OpenAPI lists."""
    for found in schemathesis.openapi.from_dict(make_app(ServiceConfig(Path("none"))).openapi()).get_all_operations():
        assert isinstance(found, Ok), found
        yield found.ok()


OPERATIONS = {operation.label: operation for operation in operations()}
MODES = {"right": GenerationMode.POSITIVE, "wrong": GenerationMode.NEGATIVE}


def may_be_wrong(operation: Any) -> bool:
    """Whether a request can be wrong at all: any text is a name."""
    kinds = [each.definition["schema"].get("type") for each in operation.path_parameters]
    return bool(operation.query or operation.body or any(kind != "string" for kind in kinds))


@pytest.mark.parametrize(
    ("label", "mode"),
    [(label, mode) for label, each in OPERATIONS.items() for mode in MODES if mode == "right" or may_be_wrong(each)],
)
def test_no_request_fails(server: Server, label: str, mode: str, soak: bool) -> None:
    operation = OPERATIONS[label]
    (server.folder / "tenants" / "tried").mkdir(exist_ok=True)

    @settings(
        max_examples=SOAK_EXAMPLES if soak else EXAMPLES,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=MODES[mode]))
    def tried(case: Case[Any]) -> None:
        if "wait" in case.query:
            case.query["wait"] = 0.001
        if operation.definition.raw.get("x-needs") == "stream":
            case.path_parameters["subscriber"] = "nobody"  # A stream has no end.
        answer = case.call(base_url=server.url, headers=TENANT)
        case.validate_response(answer, checks=CHECKS)

    tried()
    assert '"event": "failure"' not in server.log()
