"""Publishing the lines of a request, some thousand at a time. While a thread publishes a block, the event loop reads the next.

Lines are published in their order. With ``on_error=stop`` all lines before a wrong one are published, and no line after it. With
``on_error=skip`` all others are published.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from tamis.broker import Broker, Receipt
from tamis.broker.answer_json import JsonObject
from tamis.broker.arguments import plain_key
from tamis.errors import EventError, OptionError, QueueFullError, TamisError, shortened
from tamis.service.access import Visit, too_fast
from tamis.service.answers import json_answer, json_bytes
from tamis.service.bodies import BLOCK_BYTES, RATED_BLOCK_BYTES, Lines, blocks_of_lines, long_event
from tamis.service.given import checked_event, checked_fields, event_of, may_have_tags, moment_of
from tamis.service.json_reader import read_object
from tamis.service.problems import ProblemError, problem_of
from tamis.service.rate import Pace, TooLongError
from tamis.service.receipts import answer_with_list, receipt_text

MOST_RECEIPTS = 100_000
"""Lines of a request that asks for receipts. They are in memory until the end."""
MOST_RECEIPT_BYTES = 256 * 1024 * 1024
"""Bytes of the receipts of a request, from which on it ends with an error."""
_ERRORS_SHOWN = 100
_WRAPPING = 2048
"""Bytes that a wrapped event may have more: its key and its end."""


@dataclass(frozen=True, slots=True)
class LineOptions:
    """What is the same for all lines of a request."""

    valid_until: datetime | None = None
    k: int | None = None
    key: str | None = None
    """Line 3 gets the key ``KEY/3``."""
    key_from: str | None = None
    """The field that has the key."""
    tagged: bool = False
    skips: bool = False
    receipts: bool = False
    with_matches: bool = False
    """Whether a receipt names who was told."""
    wrapped: bool = False
    """Each line is ``{"event": {...}, "key": "order-17", "valid_until": "2026-12-24T18:00:00Z"}``."""


class _Line(NamedTuple):
    number: int
    event: dict[str, Any]
    key: str | None
    valid_until: datetime | None


@dataclass(slots=True)
class Published:
    """What became of the lines so far."""

    events: int = 0
    matches: int = 0
    first: int | None = None
    last: int | None = None
    skipped: int = 0
    errors: list[JsonObject] = field(default_factory=list)
    receipts: list[bytes] | None = None
    """As JSON."""
    receipt_bytes: int = 0

    def answer(self) -> Response:
        """The answer to the request."""
        if self.receipts is None:
            return json_answer(self._record())
        return answer_with_list(json_bytes(self._record()), "receipts", self.receipts)

    def _record(self) -> JsonObject:
        return {
            "events": self.events,
            "matches": self.matches,
            "first_sequence": self.first,
            "last_sequence": self.last,
            "skipped": self.skipped,
            "errors": self.errors,
        }


class LinePublisher:
    """Publishes the lines of one request."""

    def __init__(self, visit: Visit, options: LineOptions, most_receipt_bytes: int = MOST_RECEIPT_BYTES) -> None:
        self._visit = visit
        self._tenant = visit.tenant
        self._pace = Pace(visit.tenant.events)
        self._options = options
        self._most_receipt_bytes = most_receipt_bytes
        self.done = Published(receipts=[] if options.receipts else None)

    async def publish(self, request: Request) -> Published:
        """Publish all lines.

        Raises
        ------
        ProblemError
            A line is wrong, the body ended early, the token is not valid any more, or the body would have to wait for long.
            `published` says how many events were published before.
        """
        running: asyncio.Task[None] | None = None
        try:
            block_bytes = RATED_BLOCK_BYTES if self._tenant.limits.events_per_second else BLOCK_BYTES
            async for block in blocks_of_lines(request, self._tenant.limits, block_bytes):
                at = 0
                while at < len(block.lines):
                    if running is not None:
                        await running
                    self._visit.check_token()
                    count = await self._paced(len(block.lines) - at)
                    piece = Lines(block.first + at, block.lines[at : at + count])
                    running = asyncio.create_task(self._tenant.work(partial(self._block, piece)))
                    at += count
            if running is not None:
                await running
        except (ProblemError, TamisError) as error:
            if running is not None and not running.done():
                await asyncio.wait([running])
            problem = error if isinstance(error, ProblemError) else problem_of(error)
            problem.members.setdefault("published", self.done.events)
            if problem.status in (401, 429):
                problem.detail = f"after {self.done.events:,} published events: {problem.detail}"
            raise problem from None
        return self.done

    async def _paced(self, count: int) -> int:
        """Wait until the tenant may publish some of the next lines. Returns how many. They are counted before they are published.

        Raises
        ------
        ProblemError
        """
        try:
            return await self._pace.take(count)
        except TooLongError:
            self._tenant.metrics.refused += 1
            raise too_fast(self._tenant.limits.events_per_second, "events", 1.0) from None

    def _block(self, block: Lines, broker: Broker) -> None:
        """Publish a block. It runs in a thread."""
        if self.done.receipt_bytes > self._most_receipt_bytes:
            detail = (
                f"the receipts have more than {self._most_receipt_bytes:,} bytes. Hint: send fewer lines in a request"
            )
            raise self._at_line(block.first, ProblemError(413, "receipts-too-long", detail))
        lines: list[_Line] = []
        wrong: ProblemError | None = None
        for number, raw in enumerate(block.lines, block.first):
            if not raw or raw.isspace():
                continue
            try:
                lines.append(self._read(number, raw))
            except (TamisError, ProblemError) as error:
                wrong = self._wrong(number, error)
                if wrong is not None:
                    break
        self._put(broker, lines)
        if wrong is not None:
            raise wrong

    def _read(self, number: int, raw: bytes) -> _Line:
        options = self._options
        if options.receipts and number > MOST_RECEIPTS:
            raise ProblemError(413, "too-many-lines", f"with receipts=true, a request may have {MOST_RECEIPTS:,} lines")
        if options.wrapped:
            return self._unwrapped(number, raw)
        event = event_of(raw, self._tenant, tagged=options.tagged)
        key = None if options.key is None else f"{options.key}/{number}"
        if options.key_from is not None:
            value = event.get(options.key_from)
            if type(value) not in (str, int) or value == "":
                raise OptionError(f"the field {shortened(options.key_from)} must have a key, a string or an integer")
            key = str(value)
        return _Line(number, event, key, options.valid_until)

    def _unwrapped(self, number: int, raw: bytes) -> _Line:
        if len(raw) > self._tenant.limits.event_bytes + _WRAPPING:
            raise long_event(self._tenant.limits)
        given = read_object(raw, "a wrapped event", self._tenant.limits.depth + 1)
        checked_fields(given, "a wrapped event", ("event", "key", "valid_until"), ("event",))
        is_tagged = self._options.tagged and may_have_tags(raw)
        event = checked_event(given["event"], self._tenant, tagged=is_tagged)
        return _Line(number, event, plain_key(given.get("key")), moment_of(given.get("valid_until"), "valid_until"))

    def _put(self, broker: Broker, lines: list[_Line]) -> None:
        """Publish lines. A refused part is halved until the wrong line is alone."""
        if not lines:
            return
        options = self._options
        began = time.perf_counter()
        try:
            receipts = broker.publish_many(
                [line.event for line in lines],
                valid_until=[line.valid_until for line in lines] if options.wrapped else options.valid_until,
                keys=[line.key for line in lines] if options.wrapped or lines[0].key is not None else None,
                k=options.k,
            )
        except (EventError, QueueFullError) as error:
            if len(lines) > 1:
                half = len(lines) // 2
                self._put(broker, lines[:half])
                self._put(broker, lines[half:])
                return
            wrong = self._wrong(lines[0].number, error)
            if wrong is not None:
                raise wrong from None
        else:
            self._count(lines, receipts, time.perf_counter() - began)

    def _wrong(self, number: int, error: TamisError | ProblemError) -> ProblemError | None:
        """The problem that ends the request; None if the line is skipped. An event that a full queue refuses is not skipped."""
        if isinstance(error, EventError):
            error = EventError(error.reason, attribute=error.attribute)
        if self._options.skips and not isinstance(error, QueueFullError):
            self.done.skipped += 1
            if len(self.done.errors) < _ERRORS_SHOWN:
                self.done.errors.append({"line": number, "detail": str(error)})
            return None
        return self._at_line(number, problem_of(error) if isinstance(error, TamisError) else error)

    @staticmethod
    def _at_line(number: int, problem: ProblemError) -> ProblemError:
        problem.members["line"] = number
        problem.detail = f"line {number}: {problem.detail}"
        return problem

    def _count(self, lines: list[_Line], receipts: list[Receipt], seconds: float) -> None:
        done = self.done
        matches = sum(len(each.matches) for each in receipts)
        done.events += len(receipts)
        done.matches += matches
        done.first = receipts[0].sequence if done.first is None else done.first
        done.last = receipts[-1].sequence
        if done.receipts is not None:
            named = self._options.with_matches
            texts = [
                receipt_text(each, with_matches=named, line=line.number)
                for line, each in zip(lines, receipts, strict=True)
            ]
            done.receipts += texts
            done.receipt_bytes += sum(map(len, texts))
        self._tenant.published_in_thread(len(receipts), matches, seconds)
