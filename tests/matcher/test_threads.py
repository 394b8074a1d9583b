"""Threads match while another thread changes subscriptions. Each result is true for a moment between its start and its end.

With one call each, the writer replaces subscriptions by others that also match their event. So at every moment, the event
finds its subscription once.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.language.evaluate import matches
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.matcher import matcher_over
from tests.matcher.small import matcher_with, small_limits
from tests.random_cases import RandomCases

PAIRS = 40
MERGE_OFTEN = small_limits(delta_rows=16, swept=32)


def matcher_that_merges_often() -> tamis.Matcher[Any]:
    return matcher_with(MERGE_OFTEN)


def in_threads(work: Callable[[], None], readers: list[Callable[[], None]]) -> None:
    """Run readers in a loop until the work ends. Raise the first error of any of them."""
    done = threading.Event()
    errors: list[BaseException] = []

    def guarded(step: Callable[[], None], repeat: bool) -> None:
        try:
            step()
            while repeat and not done.is_set():
                step()
        except BaseException as error:
            errors.append(error)
        finally:
            if not repeat:
                done.set()

    threads = [threading.Thread(target=guarded, args=(reader, True)) for reader in readers]
    threads.append(threading.Thread(target=guarded, args=(work, False)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def side(pair: int, number: int) -> str:
    """The expression of a pair at some time. It always matches the events below, each time with other constants and clauses."""
    texts = [
        f"x = {pair} AND y > {-number}",
        f"x = {pair} AND s LIKE '%common%' AND n < {number + 10}",
        f"x = {pair} AND (t{number % 7} IS NULL OR y >= 0)",
        f"x = {pair} AND s > '{'a' * (number % 120)}b'",
        f"(x = {pair} OR x = {-pair - 1}) AND s <> 'w{number:05}' AND s > 'a{number:05}'",
    ]
    return texts[number % len(texts)]


EVENT = {"y": 1, "n": 5, "s": "in common with all"}


@pytest.mark.parametrize("changes", [400])
def test_each_result_is_true_for_one_moment(changes: int, cases: Callable[[int], int]) -> None:
    store = EngineStore(limits=MERGE_OFTEN)
    matcher = matcher_over(store)
    matcher.add_many([f"p{pair}" for pair in range(PAIRS)], [side(pair, 0) for pair in range(PAIRS)])
    results = [0]

    def write() -> None:
        chance = random.Random(5)
        for number in range(cases(changes)):
            pair = chance.randrange(PAIRS)
            matcher.replace(f"p{pair}", side(pair, number))
            if number % 4 == 0:  # Each constant is between the last two, so labels move.
                matcher.add(f"narrow{number}", f"z < 0 AND s > 'a{('bd' * number)[: number // 4]}c'")
            if number % 5 == 0:
                matcher.add(f"extra{number}", f"z = {number} OR s LIKE '%e{number}%'")
            if number % 50 == 49:
                for old in range(number - 49, number + 1, 5):
                    matcher.remove(f"extra{old}")

    def one_by_one() -> None:
        for pair in range(PAIRS):
            assert matcher.match({"x": pair, **EVENT}) == [f"p{pair}"]
            results[0] += 1

    def in_batches() -> None:
        events = [{"x": pair, **EVENT} for pair in range(PAIRS)]
        for threads in (1, 2):
            table = matcher.match_batch(events, threads=threads)
            assert table["subscription"].to_pylist() == [f"p{pair}" for pair in range(PAIRS)]
            assert matcher.match_batch(events, threads, k=1)["event"].to_pylist() == list(range(PAIRS))
            results[0] += 2 * PAIRS

    in_threads(write, [one_by_one, in_batches, in_batches])
    assert results[0] >= 3 * PAIRS
    assert store.keyed.moves > 0
    assert store.engine.merges > 0


def test_many_change_at_one_moment() -> None:
    """Subscriptions swap expressions, and some are added and removed together. Every event finds half of the subscriptions."""
    matcher: tamis.Matcher[int] = matcher_that_merges_often()
    ids = list(range(20))
    matcher.add_many(ids, [f"x = {number % 2}" for number in ids])

    def write() -> None:
        for turn in range(60):
            matcher.replace_many(ids, [f"x = {(number + turn) % 2}" for number in ids])
            matcher.add_many(range(100, 110), [f"x = 0 OR y = {turn}"] * 10)
            matcher.remove_many(range(100, 110))

    def read() -> None:
        for found in (matcher.match({"x": 0}), matcher.match_batch([{"x": 0}])["subscription"].to_pylist()):
            assert len(found) in (10, 20)
            assert len({number % 2 for number in found if number < 100}) == 1
        assert len(matcher.ids()) in (20, 30)

    in_threads(write, [read, read])


def test_matching_while_everything_is_removed_and_added_again() -> None:
    matcher = matcher_that_merges_often()

    def write() -> None:
        for number in range(100):
            names = [f"n{number}.{i}" for i in range(1 + number % 30)]
            matcher.add_many(names, ["x = 1"] * len(names), weights=range(len(names)))
            for name in names:
                matcher.remove(name)

    def read() -> None:
        for k in (None, 1, 5):
            found = matcher.match({"x": 1}, k=k)
            numbers = {str(name).split(".")[0] for name in found}
            assert len(numbers) <= 1
            table = matcher.match_batch([{"x": 1}, {"x": 2}, {"x": 1}], threads=2, k=k)
            assert set(table["event"].to_pylist()) <= {0, 2}

    in_threads(write, [read, read])
    assert matcher.match({"x": 1}) == []
    assert matcher.stats()["dimensions"] == 0


def test_a_thread_sees_what_it_added() -> None:
    matcher = matcher_that_merges_often()
    matcher.add("first", "x = -1")

    def write() -> None:
        for number in range(100):
            matcher.add(f"a{number}", f"x = {number} AND s LIKE '%{number}%'")
            assert matcher.match({"x": number, "s": str(number)}) == [f"a{number}"]

    in_threads(write, [lambda: none(matcher.match({"x": -2})), lambda: none(matcher.match_batch([{"x": -2}]))])


def none(found: Any) -> None:
    assert len(found) == 0


def test_removed_at_once_and_added_at_once() -> None:
    """Some random expressions are toggled. The others are always found if true. False ones are never found."""
    cases = RandomCases(7)
    expressions = [cases.expression() for _ in range(80)]
    events = [cases.event() for _ in range(12)]
    truth = [{number for number, each in enumerate(expressions) if matches(each, event)} for event in events]
    stays, comes = set(range(0, 80, 2)), list(range(1, 80, 2))
    matcher = matcher_that_merges_often()
    matcher.add_many(sorted(stays), [expressions[number] for number in sorted(stays)])

    def write() -> None:
        for _ in range(12):
            for number in comes:
                matcher.add(number, expressions[number])
            for number in comes:
                matcher.remove(number)

    def read() -> None:
        for event, true in zip(events, truth, strict=True):
            found = matcher.match(event)
            assert len(set(found)) == len(found)
            assert true & stays <= set(found) <= true

    in_threads(write, [read, read])


@pytest.mark.parametrize("occasion", ["adding a table", "labels that move", "a sweep", "optimize"])
def test_matching_does_not_wait_for_compiling_and_building(occasion: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = EngineStore(limits=MERGE_OFTEN)
    matcher = matcher_over(store)
    matcher.add_many(range(2000), [f"a{number // 50} = {number}" for number in range(2000)])
    matcher.add(5000, "name IN ('m', 'n')")
    assert matcher.match({"name": "m"}) == [5000]
    found: list[list[Any]] = []

    def match_aside() -> None:
        found.append(matcher.match({"name": "m"}))
        found.append(matcher.match_batch([{"name": "n"}])["subscription"].to_pylist())

    def meanwhile(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            thread = threading.Thread(target=match_aside, daemon=True)
            thread.start()
            thread.join(60)
            assert not thread.is_alive()
            return function(*arguments)

        return called

    keyed = store.keyed
    for owner, name in (
        (keyed, "compile_any"),
        (keyed, "compile_rows"),
        (keyed.engine, "living"),
        (keyed.engine, "build"),
    ):
        monkeypatch.setattr(owner, name, meanwhile(getattr(owner, name)))
    if occasion == "adding a table":
        predicates = [[{"attribute": "name", "operator": "=", "values": [str(number)]}] for number in range(50)]
        matcher.add_table(pa.table({"id": range(6000, 6050), "predicates": predicates}))
    elif occasion == "labels that move":
        for length in range(1, 80):  # each constant is between the last two, alternately above and below
            matcher.add_many([6000 + length], [f"name = 'm{('bd' * length)[:length]}c'"])
        assert store.keyed.moves > 0
    elif occasion == "a sweep":
        for number in range(1990):
            matcher.remove(number)
        assert matcher.stats()["dimensions"] < 40
    else:
        matcher.optimize()
    assert len(found) > 0
    assert all(each == [5000] for each in found)
