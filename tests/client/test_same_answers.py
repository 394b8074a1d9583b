"""One script of calls gives the same answers from a broker, from the client and from the async client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import tamis
from tests.client.script import STEPS, Answer, answers
from tests.service.serving import Server, in_tenant


async def from_plain(subject: Any) -> list[Answer]:
    async def call(method: str, arguments: tuple[Any, ...], words: dict[str, Any]) -> Any:
        answer = getattr(subject, method)(*arguments, **words)
        return list(answer) if hasattr(answer, "__next__") else answer

    return await answers(call)


async def from_async(url: str) -> list[Answer]:
    async with tamis.connect_async(url, tenant="async") as client:

        async def call(method: str, arguments: tuple[Any, ...], words: dict[str, Any]) -> Any:
            answer = getattr(client, method)(*arguments, **words)
            return [each async for each in answer] if hasattr(answer, "__anext__") else await answer

        return await answers(call)


@pytest.fixture(scope="module")
def expected() -> list[Answer]:
    with tamis.open(":memory:") as broker:
        return asyncio.run(from_plain(broker))


def compare(found: list[Answer], expected: list[Answer]) -> None:
    assert len(found) == len(expected) == len(STEPS)
    pairs = zip(STEPS, found, expected, strict=True)
    assert {place: (step, mine, wanted) for place, (step, mine, wanted) in enumerate(pairs) if mine != wanted} == {}


def test_the_client_answers_as_a_broker_does(server: Server, expected: list[Answer]) -> None:
    in_tenant(server, "plain")
    with tamis.connect(server.url, tenant="plain") as client:
        compare(asyncio.run(from_plain(client)), expected)


def test_the_async_client_answers_as_a_broker_does(server: Server, expected: list[Answer]) -> None:
    in_tenant(server, "async")
    compare(asyncio.run(from_async(server.url)), expected)
