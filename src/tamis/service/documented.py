"""What OpenAPI says of a route: the forms of its body and its answer, with examples that work when pasted."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from starlette.responses import Response

from tamis.service.answers import NDJSON
from tamis.service.problems import MEDIA_TYPE, PREFIX

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
REAL: Schema = {"type": "number"}
TRUTH: Schema = {"type": "boolean"}
MOMENT: Schema = {"type": ["string", "null"], "examples": ["2026-12-24T18:00:00Z"]}
ANY_OBJECT: Schema = {"type": "object", "additionalProperties": True}
NUMBER_OR_NULL: Schema = {"type": ["integer", "null"]}


def form(**properties: Schema) -> Schema:
    """An object that has all of these members."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def may_have(**properties: Schema) -> Schema:
    """An object that may have these members and no others."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


def list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


PROBLEM: Schema = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "examples": [PREFIX + "parse-error"]},
        "title": TEXT,
        "status": NUMBER,
        "detail": TEXT,
        "request_id": TEXT,
        "caret": form(position=NUMBER, line=NUMBER, column=NUMBER),
        "line": NUMBER,
    },
    "required": ["type", "title", "status", "detail"],
}
SUBSCRIPTION = form(
    number=NUMBER,
    subscriber=TEXT,
    name=TEXT,
    expression=TEXT,
    weight=REAL,
    valid_from=MOMENT,
    valid_until=MOMENT,
    paused=TRUTH,
    matches=NUMBER,
)
SUBSCRIBER = form(number=NUMBER, name=TEXT, cursor=NUMBER, first=NUMBER, last=NUMBER, waiting=NUMBER)
NOTE = form(sequence=NUMBER, event_sequence=NUMBER, subscriptions=list_of(TEXT), expired=TRUTH, event=ANY_OBJECT)
CHANGE = form(
    number=NUMBER,
    change={"enum": ["added", "removed"]},
    id=NUMBER,
    subscriber=TEXT,
    name=TEXT,
    expression=TEXT,
    weight=REAL,
    valid_from=MOMENT,
    valid_until=MOMENT,
)

SubscriberName = Annotated[str, Path(examples=["ann"], description="The name of a subscriber, percent-encoded.")]
SubscriptionName = Annotated[str, Path(examples=["crime"], description="The name of a subscription, percent-encoded.")]
After = Annotated[int, Query(ge=0, description="The last number of the page before.")]
PageSize = Annotated[int, Query(ge=1, le=1000, description="Entries of the page.")]
Tagged = Annotated[
    bool, Query(description='Whether values that JSON lacks have tags, such as {"$date": "2026-12-24"}.')
]


# Each parameter is a part of the description that a route may have.
def documented(
    answer: Schema | None = None,
    *,
    example: Any = None,
    body: Schema | None = None,
    lines: Schema | None = None,
    line_examples: tuple[Any, ...] = (),
    status: int = 200,
    media_type: str = "application/json",
    problems: dict[int, str] | None = None,
    needs: str = "",
) -> dict[str, Any]:
    """The words for a route's decorator.

    Parameters
    ----------
    answer : schema, optional
        The form of the answer; None if it has no body.
    body, example
        The form of the body, if the route takes one JSON value, and an example of it.
    lines, line_examples
        The form of each line and examples, if the route takes NDJSON.
    status : int
        The status of the answer.
    media_type : str
        The type of the answer.
    problems : mapping
        Statuses of errors that this route has besides those that every route has.
    needs : str
        What an example needs besides the service: a "receiver", or a "stream" that is read without an end.
    """
    content: dict[str, Any] = {}
    if body is not None:
        content["application/json"] = {"schema": body, "example": example}
    if lines is not None:
        content[NDJSON] = {"schema": {"type": "string"}, "example": _lines(line_examples)}
    extra: dict[str, Any] = {"requestBody": {"required": True, "content": content}} if content else {}
    if needs:
        extra["x-needs"] = needs
    usual = {
        400: "The body is not JSON.",
        401: "No valid token.",
        403: "The token lacks the role.",
        404: "There is no such subscriber, subscription, event or tenant.",
        408: "The body came too slowly.",
        413: "The body is too long or nested too deep.",
        421: "The service has another name.",
        422: "An expression, an event or an option is wrong.",
        429: "Too many requests or events per second.",
        503: "The service is starting, ending, full, or its disk is.",
    }
    if content:
        usual[415] = "The body is compressed."
    described = {**usual, **(problems or {})}
    answers: dict[int | str, dict[str, Any]] = {
        status: {"description": "Done."} if answer is None else {
            "description": "Done.", "content": {media_type: {"schema": answer}},
        },
        **{code: _problem(text) for code, text in described.items()},
    }  # fmt: skip
    return {"openapi_extra": extra, "responses": answers, "response_class": _Bare, "status_code": status}


class _Bare(Response):
    """Has no type of its own, so that OpenAPI shows only the answers that are listed."""


def _problem(description: str) -> dict[str, Any]:
    return {"description": description, "content": {MEDIA_TYPE: {"schema": PROBLEM}}}


def _lines(examples: tuple[Any, ...]) -> str:
    from tamis.service.answers import json_bytes

    return "".join(json_bytes(each).decode() + "\n" for each in examples)
