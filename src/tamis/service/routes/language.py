"""Expressions: checked, explained, compared."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tamis.broker import Broker
from tamis.errors import OptionError, shortened
from tamis.language.evaluate import flatten_asked
from tamis.language.event import FlatEvent
from tamis.language.explain import explain_flat
from tamis.language.expression import Expression
from tamis.service.access import AdminVisit, AnyVisit, SubscribeVisit
from tamis.service.answers import json_bytes
from tamis.service.documented import ANY_OBJECT, NUMBER, TEXT, TRUTH, Tagged, documented, form, list_of, may_have
from tamis.service.given import checked_event, checked_fields, most_of_expression, object_of, read_expression
from tamis.service.problems import ProblemError

router = APIRouter(prefix="/v1", tags=["expressions"])

_EXPRESSION = {"expression": "price < 20 AND genre = 'crime'"}
_PAIRS = list_of(list_of(list_of(TEXT)))


@router.post(
    "/check",
    **documented(
        form(expression=TEXT, attributes=list_of(TEXT), needs_history=TRUTH),
        body=may_have(expression={"type": ["string", "array"]}),
        example=_EXPRESSION,
    ),
)
async def check(request: Request, visit: AnyVisit) -> Response:
    """Check an expression. A wrong one is a problem with the position of the caret."""
    body = await object_of(request, visit.tenant, "a check", most_of_expression(visit.tenant.limits))
    given = checked_fields(body, "a check", ("expression",), ("expression",))

    def call(broker: Broker) -> dict[str, Any]:
        expression = read_expression(given["expression"], visit.tenant)
        return {
            "expression": str(expression),
            "attributes": sorted(expression.attributes()),
            "needs_history": expression.needs_history(),
        }

    return await visit.tenant.answer(call)


_SUBJECTS = ("expression", "subscriber", "name", "event", "event_sequence")


@router.post(
    "/explain",
    **documented(
        form(truth={"type": ["boolean", "null"]}, text=TEXT, tree=ANY_OBJECT),
        body=may_have(
            expression={"type": ["string", "array"]},
            subscriber=TEXT,
            name=TEXT,
            event=ANY_OBJECT,
            event_sequence=NUMBER,
        ),
        example={**_EXPRESSION, "event": {"price": 12, "genre": "poetry"}},
    ),
)
async def explain_event(request: Request, visit: SubscribeVisit, tagged: Tagged = False) -> Response:
    """Explain why an expression, or a subscription, is true of an event, or of a stored event, or not."""
    tenant = visit.tenant
    most = most_of_expression(tenant.limits) + tenant.limits.event_bytes
    given = checked_fields(await object_of(request, tenant, "an explanation", most), "an explanation", _SUBJECTS)
    _check_subjects(given)

    def call(broker: Broker) -> bytes:
        if "expression" in given:
            expression = read_expression(given["expression"], tenant)
        else:
            expression = broker.subscription(given["subscriber"], given["name"]).expression
        stored = "event" not in given
        event = (
            broker.event(given["event_sequence"]).event
            if stored
            else checked_event(given["event"], tenant, tagged=tagged)
        )
        flat, _ = flatten_asked(expression, event, ())
        _check_size(expression, flat)
        found = explain_flat(expression, flat)
        return json_bytes({"truth": found.truth, "text": str(found), "tree": found.to_dict()})

    return Response(await tenant.work(call), media_type="application/json")


def _check_subjects(given: dict[str, Any]) -> None:
    """Refuse what names no expression or no event, or several.

    Raises
    ------
    OptionError
    """
    named = "subscriber" in given and "name" in given
    if ("expression" in given) == named or ("subscriber" in given) != ("name" in given):
        raise OptionError("an explanation needs the field `expression`, or `subscriber` and `name`")
    if ("event" in given) == ("event_sequence" in given):
        raise OptionError("an explanation needs the field `event` or `event_sequence`")
    sequence = given.get("event_sequence", 1)
    if type(sequence) is not int or sequence < 0:
        raise OptionError(f"`event_sequence` must be a number from 0 on, not {shortened(sequence)}")


_MOST_VALUES = 1_000_000
"""Values that an explanation may repeat, which takes a second or two. Sixteen characters of a string count as a value."""


def _check_size(expression: Expression, event: FlatEvent) -> None:
    """Refuse an explanation that would fill the memory: each predicate repeats the values that it asks about.

    Raises
    ------
    ProblemError
    """
    sizes: dict[str, int] = {}
    count = 0
    waiting = [(expression, 1)]
    while waiting:
        node, depth = waiting.pop()
        waiting += [(operand, depth + 1) for operand in node.operands]
        for name in () if node.operands else node.attributes():
            if name not in sizes:
                sizes[name] = sum(1 + len(each) // 16 if isinstance(each, str) else 1 for each in event.get(name, ()))
            count += depth * sizes[name]  # Every operand around a predicate is decided anew.
    if count > _MOST_VALUES:
        detail = (
            f"the explanation would look at {count:,} values of the event, and {_MOST_VALUES:,} are the most. "
            "Hint: explain a part of the expression, or fewer values"
        )
        raise ProblemError(413, "explanation-too-long", detail)


_COVERING_FIELDS = ("most", "one_value", "limit")


@router.post(
    "/covering",
    **documented(
        form(
            subscriptions=NUMBER,
            identical=list_of(_PAIRS["items"]),
            implied=_PAIRS,
            never=list_of(list_of(TEXT)),
            never_single=list_of(list_of(TEXT)),
            unfinished=list_of(list_of(TEXT)),
            cut=TRUTH,
        ),
        body=may_have(most=NUMBER, one_value=TRUTH, limit=NUMBER),
        example={"most": 3},
        problems={409: "Another search for covered subscriptions runs."},
    ),
)
async def covering(request: Request, visit: AdminVisit) -> Response:
    """Find subscriptions that are identical, covered by others, or never true. It takes minutes for a million subscriptions."""
    given = checked_fields(await object_of(request, visit.tenant, "a search"), "a search", _COVERING_FIELDS)
    most, one_value, limit = given.get("most", 3), given.get("one_value", False), given.get("limit", 1000)
    if type(most) is not int or not 1 <= most <= 100 or type(one_value) is not bool:
        raise OptionError("`most` must be a number from 1 to 100, and `one_value` true or false")
    if type(limit) is not int or not 1 <= limit <= 100_000:
        raise OptionError("`limit` must be a number from 1 to 100000")
    tenant = visit.tenant
    if tenant.is_covering:
        raise ProblemError(409, "busy", "another search for covered subscriptions runs. Hint: ask again later")
    tenant.is_covering = True

    def call(broker: Broker) -> bytes:
        found = asdict(broker.covering(most=most, one_value=one_value))
        lists = {name: value for name, value in found.items() if isinstance(value, list)}
        shown = {name: value[:limit] for name, value in lists.items()}
        return json_bytes({**found, **shown, "cut": any(len(value) > limit for value in lists.values())})

    try:
        return Response(await tenant.work(call), media_type="application/json")
    finally:
        tenant.is_covering = False
