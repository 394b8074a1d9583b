"""What takes long runs beside the event loop, and what others do meanwhile is not missed."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from tamis.broker import open as open_broker
from tamis.service.access import Visit
from tamis.service.config import TenantConfig
from tamis.service.hub import Hub
from tamis.service.line_publishing import LineOptions, LinePublisher
from tamis.service.problems import ProblemError
from tamis.service.receipts import answer_with_list, receipt_text
from tamis.service.routes.streams import Pages
from tamis.service.tenants import Tenant
from tamis.service.tokens import ROLES
from tamis.service.webhooks.delivery import Sender
from tamis.service.webhooks.settings import WebhookSettings
from tamis.service.work import Threads
from tests.service.serving import PATIENCE, Server
from tests.service.stuck_reading import STUCK


def test_expressions_are_read_beside_the_event_loop(folder: Path) -> None:
    server = Server(folder, module="tests.service.stuck_reading")
    assert server.process.stdout is not None
    event: dict[str, Any] = {}
    requests = [
        ("GET", f"/v1/events?expression={quote(STUCK)}", ""),
        ("POST", "/v1/check", json.dumps({"expression": STUCK})),
        ("POST", "/v1/explain", json.dumps({"expression": STUCK, "event": event})),
    ]
    with ExitStack() as stack:
        stack.callback(server.kill)
        for method, path, body in requests:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE))
            head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body.encode())
            assert server.process.stdout.readline() == "stuck\n"
            assert server.client.get("/ready", timeout=30).json() == {"status": "ready"}


@asynccontextmanager
async def visited(folder: Path) -> AsyncIterator[Visit]:
    """A visit of a tenant whose service is not there."""
    threads, stopping = Threads(2), asyncio.Event()
    tenant = Tenant("default", folder, TenantConfig(), threads, asyncio.get_running_loop())
    tenant.begin(Sender(WebhookSettings()), stopping)
    service: Any = SimpleNamespace(stopping=stopping)
    try:
        yield Visit(service, tenant, frozenset(ROLES), None, True, {})
    finally:
        tenant.close()
        threads.close(PATIENCE)


def test_a_stream_has_the_notes_that_came_while_it_began(tmp_path: Path) -> None:
    async def steps() -> None:
        async with visited(tmp_path) as visit:
            broker = visit.tenant.broker
            broker.subscribe("ann", "all", "TRUE")
            pages = Pages(visit, "ann", 0)
            first = await pages.read()
            assert first == []
            broker.publish({"a": 1})  # Nobody waits yet.
            async with asyncio.timeout(10):  # Less than the time after which a stream looks by itself.
                page = await anext(pages.follow(first))
            assert [note.sequence for note in page] == [1]

    asyncio.run(steps())


def test_only_subscribers_that_wait_are_woken(tmp_path: Path) -> None:
    """An event may have a million subscribers. The event loop goes through those that wait."""

    async def steps() -> None:
        with open_broker(tmp_path) as broker:
            told: list[Any] = []
            loop: Any = SimpleNamespace(call_soon_threadsafe=lambda *call: told.append(call))
            numbers = {"ann": 3, "eva": 5}

            async def number_of(name: str) -> int:
                return numbers[name]

            hub = Hub(broker, number_of, loop)
            broker.subscribe_many([{"subscriber": f"s{n}", "name": "x", "expression": "a = 1"} for n in range(10)])
            broker.publish({"a": 1})
            assert told == []
            async with hub.waiting("ann") as ann, hub.waiting("eva") as eva:
                broker.subscribe("s2", "y", "b = 1")
                broker.publish({"b": 1})
                await _rung(told, ann)
                broker.publish({"a": 1})
                await _rung(told, ann, eva)
            hub.leave()

    async def _rung(told: list[Any], *expected: Any) -> None:
        ((wake, numbers),) = told
        assert len(numbers) == len(expected)
        wake(numbers)
        for waiter in expected:
            async with asyncio.timeout(PATIENCE):
                await waiter.wait(PATIENCE * 2)
        told.clear()

    asyncio.run(steps())


def test_a_receipt_with_many_names(tmp_path: Path) -> None:
    with open_broker(tmp_path, synchronous="off") as broker:
        broker.subscribe_many([{"subscriber": "ann", "name": f'"{n}"', "expression": "a = 1"} for n in range(2_500)])
        receipt = broker.publish({"a": 1})
        found = json.loads(receipt_text(receipt, with_matches=True, line=7))
        assert (found["line"], found["sequence"], found["matches"]) == (7, 1, 2_500)
        assert [(each["subscriber"], each["name"]) for each in found["subscriptions"]] == list(receipt.matches)
        assert json.loads(receipt_text(receipt, with_matches=False)) == {"sequence": 1, "matches": 2_500}


def body_of(answer: Any) -> bytes:
    """The body of an answer, whose parts are no longer than they may be."""
    parts: list[bytes] = []

    async def send(message: Any) -> None:
        parts.append(message.get("body", b""))

    async def receive() -> Any:
        await asyncio.Event().wait()

    asyncio.run(answer({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send))
    assert max(map(len, parts)) < 2**19
    return b"".join(parts)


def test_a_long_list_is_sent_part_by_part() -> None:
    for count in (0, 1, 2, 100_000):
        answer = answer_with_list(b'{"a":1}', "numbers", [b"%d" % n for n in range(count)])
        body = body_of(answer)
        assert json.loads(body) == {"a": 1, "numbers": list(range(count))}
        assert answer.headers["content-length"] == str(len(body))


def request_of(blocks: list[bytes]) -> Request:
    """A request whose body has these parts."""

    async def receive() -> Any:
        return {"type": "http.request", "body": blocks.pop(0), "more_body": bool(blocks)}

    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"application/x-ndjson")]}
    return Request(scope, receive)


def test_receipts_do_not_fill_the_memory(tmp_path: Path) -> None:
    async def steps() -> None:
        async with visited(tmp_path) as visit:
            publisher = LinePublisher(visit, LineOptions(receipts=True), most_receipt_bytes=1_000)
            block = b'{"a": 1}\n' * 30_000
            try:
                await publisher.publish(request_of([block, block]))
            except ProblemError as problem:
                found = problem
            assert (found.status, found.kind) == (413, "receipts-too-long")
            published = found.members["published"]
            assert found.members["line"] == published + 1
            assert visit.tenant.broker.stats()["last_event"] == published

    asyncio.run(steps())
