"""What requests give: moments, expressions, subscriptions, events."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.requests import Request

from tamis.broker.event_text import read_event
from tamis.errors import BrokerError, EventError, LiteralError, OptionError, did_you_mean, shortened
from tamis.language.expression import Expression
from tamis.language.literals import read_timestamp
from tamis.language.reading import to_expression
from tamis.service.answers import json_bytes
from tamis.service.bodies import body_of_event, long_event, whole_body
from tamis.service.config import Limits
from tamis.service.json_reader import read_object
from tamis.service.problems import ProblemError
from tamis.service.tenants import Tenant

SHORT_BODY = 64 * 1024
"""Bytes of a body with a few settings."""
_ESCAPES = 8
"""Bytes that a byte of an expression takes in JSON, at most, with some room for its form as a list."""


async def object_of(
    request: Request, tenant: Tenant, what: str, most: int = SHORT_BODY, *, may_be_empty: bool = False
) -> dict[str, Any]:
    """The object in the body of a request, which is `what` ("a subscription") in messages and has `most` bytes at most.

    Raises
    ------
    ProblemError
    """
    raw = await whole_body(request, min(most, tenant.limits.body_bytes), what)
    if may_be_empty and not raw.strip():
        return {}
    return await tenant.aside(len(raw), lambda: read_object(raw, what, tenant.limits.depth))


def most_of_expression(limits: Limits) -> int:
    """Bytes of a body with one expression."""
    return _ESCAPES * limits.expression_bytes + SHORT_BODY


async def published_event(request: Request, tenant: Tenant, *, tagged: bool) -> dict[str, Any]:
    """The event in the body of a request.

    Raises
    ------
    ProblemError, EventError
    """
    raw = await body_of_event(request, tenant.limits)
    return await tenant.aside(len(raw), lambda: event_of(raw, tenant, tagged=tagged))


def checked_fields(
    given: dict[str, Any], what: str, known: tuple[str, ...], needed: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The object, if it has no other fields than those that are known.

    Raises
    ------
    OptionError
    """
    for name in given:
        if name not in known:
            hint = did_you_mean(name, list(known))
            raise OptionError(f"{what} has no field {shortened(name)}{hint}; the fields are: {', '.join(known)}")
    for name in needed:
        if name not in given:
            raise OptionError(f"{what} needs the field {name!r}")
    return given


def moment_of(given: Any, name: str) -> datetime | None:
    """A moment as text; None stays None.

    Raises
    ------
    OptionError
    """
    if given is None:
        return None
    try:
        if isinstance(given, str):
            return read_timestamp(given)
    except LiteralError:
        pass
    raise OptionError(f"`{name}` must be a moment, not {shortened(given)}. Hint: 2026-12-24T18:00:00Z")


_FIELDS = ("expression", "weight", "valid_from", "valid_until")


def wanted(given: dict[str, Any], tenant: Tenant, more: tuple[str, ...] = ()) -> dict[str, Any]:
    """The arguments of `Broker.subscribe` in an object, which may have `more` fields and must have these.

    Raises
    ------
    OptionError, ExpressionError, ProblemError
    """
    words = dict(checked_fields(given, "a subscription", (*more, *_FIELDS), more))
    for name in ("valid_from", "valid_until"):
        if name in words:
            words[name] = moment_of(words[name], name)
    if "weight" in words and words["weight"] is None:
        raise OptionError("a weight must be a finite number, not null")
    if "expression" in words:
        words["expression"] = expression_text(words["expression"], tenant)
    return words


def expression_text(given: Any, tenant: Tenant) -> Any:
    """An expression as it was given: text, or the JSON form. Text is not parsed here unless the tenant has a schema.

    Raises
    ------
    ProblemError, ExpressionError
    """
    size = len(given) if isinstance(given, str) else len(json_bytes(given))
    most = tenant.limits.expression_bytes
    if size > most:
        raise ProblemError(413, "expression-too-long", f"an expression may have {most:,} bytes, not {size:,}")
    if not isinstance(given, str) or tenant.schema.declared():
        expression = to_expression(given)
        tenant.schema.check(expression, given if isinstance(given, str) else None)
        return given if isinstance(given, str) else expression
    return given


def read_expression(given: Any, tenant: Tenant) -> Expression:
    """An expression.

    Raises
    ------
    ProblemError, ExpressionError
    """
    return to_expression(expression_text(given, tenant))


def event_of(raw: bytes, tenant: Tenant, *, tagged: bool, row: int | None = None) -> dict[str, Any]:
    """The event in a text. `tagged`: values that JSON lacks have tags.

    Raises
    ------
    ProblemError, EventError
    """
    if len(raw) > tenant.limits.event_bytes:
        raise long_event(tenant.limits)
    given = read_object(raw, "an event", tenant.limits.depth)
    return checked_event(given, tenant, tagged=tagged and may_have_tags(raw), row=row)


def may_have_tags(raw: bytes) -> bool:
    """Whether some name in a JSON text may be a tag. Reading tags takes longer than reading the text."""
    return b"$" in raw or b"\\u0024" in raw


def checked_event(given: Any, tenant: Tenant, *, tagged: bool = False, row: int | None = None) -> dict[str, Any]:
    """An event from JSON, with its timestamps.

    Raises
    ------
    EventError
    """
    if type(given) is not dict:
        raise EventError("an event must be a JSON object", row=row)
    if tagged:
        try:
            given = read_event(json_bytes(given).decode())
        except BrokerError:
            raise EventError("a value has a tag that cannot be read. Hint: leave out tagged=true", row=row) from None
    return tenant.schema.read(given, row)


def plain_options(k: int | None, key: str | None) -> None:
    """Check what a request gives with events.

    Raises
    ------
    OptionError
    """
    if key is not None and not 1 <= len(key) <= 255:
        raise OptionError("an Idempotency-Key must have 1 to 255 characters")
    if k is not None and not 0 <= k <= 2**31:
        raise OptionError(f"`k` must be a number from 0 on, not {k}")
