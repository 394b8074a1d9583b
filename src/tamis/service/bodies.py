"""Bodies of requests, within limits: one JSON value, or lines that are read block by block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request

from tamis.errors import shortened
from tamis.service.config import Limits
from tamis.service.problems import ProblemError

LINE_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
BLOCK_BYTES = 256 * 1024
"""Bytes of lines that one call of a broker takes: some thousand events. Twice as many bytes are in memory at most."""
RATED_BLOCK_BYTES = 16 * 1024
"""The same for a tenant with a limit of events per second: lines that come in time must not gather, and then come at once."""


def has_lines(request: Request) -> bool:
    """Whether the body has a JSON value on each line."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() in LINE_TYPES


def check_coding(request: Request) -> None:
    """Refuse a body that is compressed.

    Raises
    ------
    ProblemError
    """
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        detail = f"the service does not read bodies in {shortened(coding)}. Hint: leave out Content-Encoding"
        raise ProblemError(415, "content-coding", detail, headers={"Accept-Encoding": "identity"})


async def whole_body(request: Request, most: int, what: str) -> bytes:
    """The whole body, which is `what` ("a subscription") in messages.

    Raises
    ------
    ProblemError
        413: it has too many bytes. 415: it is compressed.
    """
    check_coding(request)
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > most:
        raise _too_long(most, what)
    parts, size = [], 0
    async for part in _parts(request):
        size += len(part)
        if size > most:
            raise _too_long(most, what)
        parts.append(part)
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Lines:
    """Some whole lines of a body."""

    first: int
    """The number of the first line, from 1 on."""
    lines: list[bytes]


async def blocks_of_lines(request: Request, limits: Limits, block_bytes: int = BLOCK_BYTES) -> AsyncIterator[Lines]:
    """The lines of a body, some at a time. The body may be endless: only a block of it is in memory.

    Raises
    ------
    ProblemError
        413: a line has too many bytes. 415: the body is compressed.
    """
    check_coding(request)
    number, held, size = 1, [], 0
    async for part in _parts(request):
        held.append(part)
        size += len(part)
        if size < block_bytes:
            continue
        whole, newline, rest = b"".join(held).rpartition(b"\n")
        held, size = [rest], len(rest)
        if newline:
            lines = whole.split(b"\n")
            yield _checked(Lines(number, lines), limits)
            number += len(lines)
        if size > limits.line_bytes:
            raise _long_line(number, limits)
    rest = b"".join(held)
    if rest:
        yield _checked(Lines(number, rest.removesuffix(b"\n").split(b"\n")), limits)


async def _parts(request: Request) -> AsyncIterator[bytes]:
    try:
        async for part in request.stream():
            yield part
    except ClientDisconnect:
        raise ProblemError(400, "incomplete", "the body ended early") from None


def _checked(found: Lines, limits: Limits) -> Lines:
    for place, line in enumerate(found.lines):
        if len(line) > limits.line_bytes:
            raise _long_line(found.first + place, limits)
    return found


def _long_line(number: int, limits: Limits) -> ProblemError:
    return ProblemError(413, "line-too-long", f"line {number} has more than {limits.line_bytes:,} bytes", line=number)


def _too_long(most: int, what: str) -> ProblemError:
    return ProblemError(413, "body-too-long", f"the body has more than {most:,} bytes, too many for {what}")


async def body_of_event(request: Request, limits: Limits) -> bytes:
    """The whole body, which is an event.

    Raises
    ------
    ProblemError
    """
    try:
        return await whole_body(request, min(limits.body_bytes, limits.event_bytes), "an event")
    except ProblemError as problem:
        if problem.kind != "body-too-long":
            raise
        raise (long_event(limits) if limits.event_bytes <= limits.body_bytes else problem) from None


def long_event(limits: Limits) -> ProblemError:
    """The problem of an event that is too long."""
    detail = f"an event may have {limits.event_bytes:,} bytes. Hint: the limit is `event_bytes` of [limits]"
    return ProblemError(413, "event-too-long", detail)
