"""Work in parts: each part is done once, results are in order, the number of threads is as requested, errors are raised."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest

from tamis.matcher.crew import Crew, each, largest_first, pool, shares_of, tapering


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_order(threads: int) -> None:
    assert each(lambda item: item * item, range(50), threads) == [item * item for item in range(50)]
    assert each(str, [], threads) == []


def test_the_largest_parts_come_first() -> None:
    assert largest_first([3, 9, 1, 9, 20]) == [4, 1, 3, 0, 2]


def test_the_caller_and_other_threads_work() -> None:
    meeting = threading.Barrier(3, timeout=60)

    def work(item: int) -> int:
        meeting.wait()
        return threading.get_ident()

    workers = each(work, range(3), 3)
    assert len(set(workers)) == 3
    assert threading.get_ident() in workers


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_is_raised_and_ends_the_work(threads: int) -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item == 7:
            raise KeyError("seven")
        done.append(item)

    with pytest.raises(KeyError, match="seven"):
        each(work, range(10_000), threads)
    assert len(done) < 10_000
    assert each(str, range(3), threads) == ["0", "1", "2"]


def test_work_begins_while_items_are_made() -> None:
    begun = threading.Event()

    def work(item: int) -> int:
        begun.set()
        return item

    with Crew(work, 2) as workers:
        workers.begin()
        workers.give(5, 50)
        assert begun.wait(60)
        for place in (7, 1, 3):
            workers.give(place, 10 * place)
        assert workers.results() == [10, 30, 50, 70]


def test_no_thread_works_after_making_items_failed() -> None:
    begun, may_end = threading.Event(), threading.Event()
    done: list[int] = []

    def work(item: int) -> None:
        begun.set()
        assert may_end.wait(60)
        done.append(item)

    def interrupted() -> None:
        with Crew(work, 2) as workers:
            workers.begin()
            for place in range(100):
                workers.give(place, place)
            assert begun.wait(60)
            threading.Timer(0.1, may_end.set).start()
            raise KeyError("made")

    with pytest.raises(KeyError, match="made"):
        interrupted()
    assert done == [0]


def test_an_error_that_comes_while_items_are_made_is_raised() -> None:
    raised = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            raised.set()
            raise KeyError("nought")
        return item

    with Crew(work, 3) as workers:
        workers.begin()
        workers.give(0, 0)
        assert raised.wait(60)
        for place in range(1, 9):
            workers.give(place, place)
        with pytest.raises(KeyError, match="nought"):
            workers.results()


def test_a_crew_that_ends_at_once_keeps_no_threads() -> None:
    with Crew(str, 3) as workers:
        workers.begin()
        workers.give(0, 0)
    assert not any(shift.has_begun() and not shift.is_done for shift in workers.shifts)


def test_threads_do_not_wait_for_a_lost_caller() -> None:
    """As when a second interrupt prevents the end of a crew."""
    forsaken = Crew(str, 4, patience=0.05)
    forsaken.begin()
    for shift in forsaken.shifts:
        shift.wait()
    # A slow caller does the work alone.
    for place in range(9):
        forsaken.give(place, place)
    assert forsaken.results() == list(map(str, range(9)))


def test_the_caller_does_the_work_if_there_are_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def hold(item: int) -> None:
        begun.set()
        assert may_end.wait(60)

    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    pool.forget()
    busy = Crew(hold, 2)
    busy.begin()
    busy.give(0, 0)
    assert begun.wait(60)
    with monkeypatch.context() as patched:
        patched.setattr("_thread.start_new_thread", refuse)
        assert each(str, range(9), 3) == list(map(str, range(9)))
    may_end.set()
    assert busy.results() == [None]
    assert each(str, range(9), 3) == list(map(str, range(9)))


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_parts_become_smaller_and_cover_all_rows(threads: int) -> None:
    for count in (0, 1, 2, 5, 100, 1001):
        for bounds in (list(tapering(count, threads)), shares_of(count, threads)):
            assert [row for first, last in bounds for row in range(first, last)] == list(range(count))
        sizes = [last - first for first, last in tapering(count, threads)]
        assert sizes == sorted(sizes, reverse=True)
        assert all(sizes)
        assert sizes[:1] == [-(-count // threads)][: len(sizes)]


def test_work_may_start_more_work() -> None:
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


def test_a_forked_process_begins_without_threads() -> None:
    assert each(str, range(4), 2) == ["0", "1", "2", "3"]
    while not pool.free:  # A thread is free a moment after its work is done.
        pass
    pool.forget()
    assert not pool.free
    assert each(str, range(4), 2) == ["0", "1", "2", "3"]


def test_threads_are_used_again() -> None:
    pool.forget()
    workers: set[int] = set()
    for _ in range(50):
        meeting = threading.Barrier(3, timeout=60)

        def work(item: int, meeting: threading.Barrier = meeting) -> int:
            meeting.wait()
            return threading.get_ident()

        workers.update(each(work, range(3), 3))
        while len(pool.free) < len(workers) - 1:  # A thread is free a moment after its work is done.
            pass
    assert len(workers) == 3


def test_results_do_not_outlive_a_crew() -> None:
    class Large:
        pass

    def work(item: int) -> Large:
        return Large()

    pool.forget()
    gc.disable()
    try:
        kept = [weakref.ref(large) for large in each(work, range(20), 3)]
        while len(pool.free) < 2:  # A thread is free a moment after its work is done.
            pass
        assert [each() for each in kept] == [None] * 20
    finally:
        gc.enable()
