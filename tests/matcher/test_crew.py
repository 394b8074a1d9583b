"""Work in parts: done once each, in order, by as many threads as were asked for, and errors come through."""

from __future__ import annotations

import threading

import pytest

from tamis.matcher.crew import _pool, each


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_order(threads: int) -> None:
    assert each(lambda item: item * item, range(50), threads) == [item * item for item in range(50)]
    assert each(str, [], threads) == []


@pytest.mark.parametrize("threads", [2, 5])
def test_the_largest_are_begun_first(threads: int) -> None:
    sizes = [3, 9, 1, 8, 20, 0, 4]
    meeting = threading.Barrier(threads, timeout=60)
    first: list[int] = []

    def work(item: int) -> int:
        if len(first) < threads:  # Nobody comes here a second time before all have been here.
            first.append(sizes[item])
            meeting.wait()
        return item

    assert each(work, range(7), threads, sizes) == list(range(7))
    assert sorted(first) == sorted(sizes)[-threads:]


def test_the_caller_and_others_work() -> None:
    meeting = threading.Barrier(3, timeout=60)

    def work(item: int) -> int:
        meeting.wait()
        return threading.get_ident()

    workers = each(work, range(3), 3)
    assert len(set(workers)) == 3
    assert threading.get_ident() in workers


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_comes_through_and_ends_the_work(threads: int) -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item == 7:
            raise KeyError("seven")
        done.append(item)

    with pytest.raises(KeyError, match="seven"):
        each(work, range(10_000), threads)
    assert len(done) < 10_000
    assert each(str, range(3), threads) == ["0", "1", "2"]


def test_work_may_ask_for_work() -> None:
    assert each(lambda item: sum(each(int, range(item), 3)), range(20), 3) == [
        item * (item - 1) // 2 for item in range(20)
    ]


def test_many_callers_at_once() -> None:
    results: list[list[int]] = []
    callers = [threading.Thread(target=lambda: results.append(each(int, range(100), 4))) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [list(range(100))] * 8


def test_a_fork_begins_without_threads() -> None:
    assert each(str, range(4), 2) == ["0", "1", "2", "3"]
    before = _pool._threads
    _pool.forget()
    assert each(str, range(4), 2) == ["0", "1", "2", "3"]
    assert _pool._threads is not before
