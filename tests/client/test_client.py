"""The clients with a real server: following, retries, access, closing."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.broker import Broker
from tamis.client import AsyncClient, Client
from tests.cli.running import run
from tests.client.breaking_proxy import breaking
from tests.markdown import ROOT
from tests.service.serving import Server, serving


@pytest.fixture
def client(server: Server) -> Iterator[tamis.client.Client]:
    with tamis.connect(server.url) as found:
        yield found


def test_a_token_opens_its_tenant_and_its_roles(tmp_path: Path) -> None:
    with serving(tmp_path, "--tokens", "always") as server:
        for wrong in (None, "tamis_wrong"):
            with tamis.connect(server.url, token=wrong) as client, pytest.raises(tamis.AccessError) as caught:
                client.attributes()
            assert (caught.value.status, caught.value.kind) == (401, "no-token")
            assert caught.value.request_id
        made = run("token", "create", tmp_path, "--tenant", "shop", "--role", "publish")
        token = re.findall(r"tamis_\S+", made.stdout)[0]
        with tamis.connect(server.url, token=token) as client:
            assert client.publish({"x": 1}).sequence == 1
            with pytest.raises(tamis.AccessError, match="role") as caught:
                client.subscribe("ann", "x", "x = 1")
            assert caught.value.status == 403
            assert token not in repr(client.__dict__)


def test_the_page_says_which_calls_of_a_broker_are_missing() -> None:
    """Everything else of a broker is there, with the same arguments."""
    page = (ROOT / "docs/service.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| lacks |")]
    for client in (Client, AsyncClient):
        missing = {name for name in dir(Broker) if not name.startswith("_")} - set(dir(client))
        assert missing == set(re.findall("`([a-z_]+)`", row))
        for name, call in inspect.getmembers(Broker, inspect.isfunction):
            if name in missing or name.startswith("_"):
                continue
            expected, found = (inspect.signature(each).parameters for each in (call, getattr(client, name)))
            assert list(found)[: len(expected)] == list(expected), name
            assert all(found[each].default == expected[each].default for each in expected), name


def test_an_unknown_tenant_is_an_error(server: Server) -> None:
    with tamis.connect(server.url, tenant="nobody") as client, pytest.raises(tamis.ServiceError) as caught:
        client.attributes()
    assert caught.value.kind == "unknown-tenant"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("127.0.0.1:8750", {}),
        ("ftp://x", {}),
        (7, {}),
        ("http://x", {"tries": 0}),
        ("http://x", {"timeout": -1}),
        ("http://x", {"token": "a\nb"}),
    ],
)
def test_wrong_options_are_errors(url: Any, words: dict[str, Any]) -> None:
    with pytest.raises(tamis.OptionError):
        tamis.connect(url, **words)


def test_without_its_package_a_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(tamis.OptionError, match=r"pip install 'tamis\[client\]'"):
        tamis.connect("http://127.0.0.1:8750")


def test_a_service_that_is_away_is_a_service_error() -> None:
    with tamis.connect("http://127.0.0.1:1", tries=2) as client, pytest.raises(tamis.ServiceError) as caught:
        client.publish({"x": 1})
    assert caught.value.status is None
    assert "may have done" not in str(caught.value)


def test_another_web_page_is_a_service_error(server: Server) -> None:
    with tamis.connect(f"{server.url}/elsewhere") as client, pytest.raises(tamis.ServiceError) as caught:
        client.attributes()
    assert caught.value.kind == "unknown-route"


def test_a_closed_client_says_so(server: Server) -> None:
    client = tamis.connect(server.url)
    client.close()
    with pytest.raises(tamis.BrokerError, match="the client is closed"):
        client.attributes()


class TestRetries:
    def test_a_publish_with_a_key_happens_once(self, server: Server, client: tamis.client.Client) -> None:
        client.subscribe("retry", "x", "retry = 1")
        with breaking(server.url) as proxy, tamis.connect(proxy.url) as unlucky:
            proxy.lose_answers = 2
            receipt = unlucky.publish({"retry": 1}, key="retry-1")
            proxy.lose_answers = 1
            many = unlucky.publish_many([{"retry": 1}, {"retry": 1}], keys=["retry-2", "retry-3"])
        assert [each.sequence for each in many] == [receipt.sequence + 1, receipt.sequence + 2]
        assert [note.event_sequence for note in client.notifications("retry")] == [
            receipt.sequence,
            *(each.sequence for each in many),
        ]

    def test_a_publish_without_a_key_is_not_repeated(self, server: Server, client: tamis.client.Client) -> None:
        client.subscribe("lost", "x", "lost = 1")
        with breaking(server.url) as proxy, tamis.connect(proxy.url) as unlucky:
            proxy.lose_answers = 1
            with pytest.raises(tamis.ServiceError, match="may have done what the request asks for"):
                unlucky.publish({"lost": 1})
            proxy.lose_answers = 1
            with pytest.raises(tamis.ServiceError, match="may have done what the request asks for"):
                unlucky.publish_many([{"lost": 1}, {"lost": 1}], keys=["lost-1", None])

    def test_calls_that_change_nothing_twice_are_repeated(self, server: Server, client: tamis.client.Client) -> None:
        with breaking(server.url) as proxy, tamis.connect(proxy.url) as unlucky:
            for call in (
                lambda: unlucky.subscribe("again", "x", "again = 1"),
                lambda: unlucky.subscribe_many([{"subscriber": "again", "name": "y", "expression": "again = 2"}]),
                lambda: unlucky.pause("again", "x"),
                lambda: unlucky.resume("again", "x"),
                lambda: list(unlucky.notifications("again")),
                lambda: unlucky.would_match({"again": 1}),
                lambda: unlucky.unsubscribe("again", "x"),
                lambda: unlucky.remove_subscriber("again"),
            ):
                proxy.lose_answers = 1
                call()
            with pytest.raises(tamis.UnknownIdError):
                unlucky.unsubscribe("again", "x")

    def test_a_refused_connection_is_tried_again(self, server: Server) -> None:
        with breaking(server.url) as proxy, tamis.connect(proxy.url, tries=4) as unlucky:
            proxy.refuse = 3
            unlucky.attributes()
            assert proxy.connections == 4
            proxy.break_all()
            proxy.refuse = 99
            with pytest.raises(tamis.ServiceError):
                unlucky.attributes()


class TestBatches:
    def test_the_row_of_a_wrong_event_counts_over_all_requests(self, client: tamis.client.Client) -> None:
        client.subscribe("rows", "x", "row < 3")
        events: list[dict[str, Any]] = [{"row": number} for number in range(60_000)]
        events[55_000]["row"] = b"no"
        with pytest.raises(tamis.EventError) as caught:
            client.publish_many(events, with_matches=False)
        assert (caught.value.row, caught.value.attribute) == (55_000, "row")
        assert caught.value.__notes__ == ["published before: 55000"]
        assert [note.event["row"] for note in client.notifications("rows")] == [0, 1, 2]

    def test_a_receipt_without_matches_counts_them(self, client: tamis.client.Client) -> None:
        client.subscribe("count", "x", "count = 1")
        for receipt in (
            client.publish({"count": 1}, with_matches=False),
            client.publish_many([{"count": 1}], with_matches=False)[0],
        ):
            assert len(receipt.matches) == 1
            with pytest.raises(tamis.OptionError, match="with_matches=True"):
                list(receipt.matches)

    def test_lists_of_many_pages_are_whole(self, client: tamis.client.Client) -> None:
        rows = [{"subscriber": "pages", "name": f"{n:05}", "expression": f"page = {n}"} for n in range(2500)]
        client.subscribe_many(rows)
        assert [each.name for each in client.subscriptions("pages")] == [row["name"] for row in rows]
        assert [each.name for each in client.subscriptions("pages", search="0249")] == [
            "00249",
            *(f"0249{n}" for n in range(10)),
        ]
        client.subscribe("pages", "all", "pages = 1")
        client.publish_many([{"pages": 1, "n": n} for n in range(1500)], with_matches=False)
        assert [note.event["n"] for note in client.notifications("pages")] == list(range(1500))
        assert len(list(client.replay("pages = 1"))) == 1500

    def test_any_number_of_threads_may_use_a_client(self, client: tamis.client.Client) -> None:
        client.subscribe("threads", "x", "thread >= 0")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: client.publish({"thread": number}), range(100)))
        found = [note.event["thread"] for note in client.notifications("threads")]
        assert sorted(found) == list(range(100))


class TestFollowing:
    def test_notes_come_and_closing_ends_the_iterator(self, server: Server, client: tamis.client.Client) -> None:
        client.subscribe("follow", "x", "follow >= 0")
        client.publish_many([{"follow": 0}, {"follow": 1}])
        reader = tamis.connect(server.url)
        got_three = threading.Event()

        def read() -> list[int]:
            found = []
            for note in reader.notifications("follow", follow=True):
                found.append(note.event["follow"])
                if len(found) == 3:
                    got_three.set()
            return found

        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(read)
            client.publish({"follow": 2})
            assert got_three.wait(60)
            reader.close()
            assert result.result(60) == [0, 1, 2]

    def test_a_broken_stream_is_opened_again_where_it_was(self, server: Server, client: tamis.client.Client) -> None:
        client.subscribe("broken", "x", "broken >= 0")
        with breaking(server.url) as proxy, tamis.connect(proxy.url) as unlucky:
            notes = unlucky.notifications("broken", follow=True)
            for number in range(6):
                client.publish({"broken": number})
                assert next(notes).event["broken"] == number
                if number % 2:
                    proxy.break_all()

    def test_a_stream_that_cannot_go_on_is_an_error(self, server: Server) -> None:
        with serving(server.folder.parent / "gone") as other, tamis.connect(other.url, tries=2) as client:
            client.subscribe("ann", "x", "x >= 0")
            with pytest.raises(tamis.UnknownIdError):
                client.notifications("nobody", follow=True)
            notes = client.notifications("ann", follow=True)
            client.publish({"x": 1})
            assert next(notes).sequence == 1
            other.stop()
            with pytest.raises(tamis.ServiceError):
                next(notes)

    def test_the_async_client_follows_too(self, server: Server) -> None:
        async def run() -> list[int]:
            async with tamis.connect_async(server.url) as writer:
                reader = tamis.connect_async(server.url)
                await writer.subscribe("async", "x", "async >= 0")
                found: list[int] = []
                got_two = asyncio.Event()

                async def read(notes: AsyncIterator[Any]) -> None:
                    async for note in notes:
                        found.append(note.event["async"])
                        if len(found) == 2:
                            got_two.set()

                task = asyncio.create_task(read(reader.notifications("async", follow=True)))
                await writer.publish({"async": 1})
                await writer.publish({"async": 2})
                async with asyncio.timeout(60):
                    await got_two.wait()
                    await reader.close()
                    await task
                return found

        assert asyncio.run(run()) == [1, 2]

    def test_many_async_followers_share_a_loop(self, server: Server) -> None:
        async def run() -> None:
            async with tamis.connect_async(server.url) as client:
                await client.subscribe_many(
                    [{"subscriber": f"many-{n}", "name": "x", "expression": "many = 1"} for n in range(50)]
                )

                async def first(subscriber: str) -> int:
                    async for note in client.notifications(subscriber, follow=True):
                        return note.sequence
                    return 0

                tasks = [asyncio.create_task(first(f"many-{n}")) for n in range(50)]
                await client.publish({"many": 1})
                async with asyncio.timeout(60):
                    assert await asyncio.gather(*tasks) == [1] * 50

        asyncio.run(run())


def test_moments_are_those_of_a_broker(client: tamis.client.Client) -> None:
    end = datetime(2199, 1, 1, 12, 30, 15, 123456, tzinfo=UTC)
    client.subscribe("moments", "x", "moment = 1", valid_until=end)
    assert client.subscription("moments", "x").valid_until == end
    receipt = client.publish({"moment": 1}, valid_until=end)
    stored = client.event(receipt.sequence)
    assert (stored.valid_until, stored.matches) == (end, 1)
    assert stored.published.tzinfo == UTC
