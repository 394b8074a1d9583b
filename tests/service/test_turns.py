"""Turns of the event loop: few requests begin in each, in the order in which they came."""

from __future__ import annotations

import asyncio

from tamis.service.turns import Turns


async def begun(at_once: int, count: int) -> list[list[int]]:
    """Which waiters begin in each turn of the loop. All of them come in the first turn."""
    turns = Turns(at_once)
    now: list[int] = []

    async def wait(number: int) -> None:
        await turns.wait()
        now.append(number)

    tasks = [asyncio.create_task(wait(number)) for number in range(count)]
    found = []
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        found.append(now.copy())
        now.clear()
    return [each for each in found if each]


def test_few_begin_in_each_turn_in_their_order() -> None:
    found = asyncio.run(begun(4, 18))
    assert [number for each in found for number in each] == list(range(18))
    assert max(map(len, found)) == 4


def test_a_single_one_does_not_wait() -> None:
    async def run() -> None:
        turns = Turns(1)
        for _ in range(2):
            waiting = asyncio.create_task(turns.wait())
            await asyncio.sleep(0)
            assert waiting.done()
            await asyncio.sleep(0)

    asyncio.run(run())


def test_one_that_gives_up_holds_up_nobody() -> None:
    async def run() -> list[int]:
        turns = Turns(1)
        found: list[int] = []

        async def wait(number: int) -> None:
            await turns.wait()
            found.append(number)

        tasks = [asyncio.create_task(wait(number)) for number in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        return found

    assert asyncio.run(run()) == [0, 2, 3]
