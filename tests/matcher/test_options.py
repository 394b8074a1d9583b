"""Weights, limits and threads; results all at once, part by part, and counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.errors import OptionError
from tamis.language.evaluate import matches
from tamis.matcher.limits import StoreLimits
from tests.matcher.small import matcher_with
from tests.random_cases import RandomCases

pytestmark = pytest.mark.usefixtures("each_index")

SUBSCRIPTIONS = 120


class Case:
    """A matcher with weights, and its expected matches."""

    def __init__(self, seed: int) -> None:
        cases = RandomCases(seed)
        expressions = [cases.expression() for _ in range(SUBSCRIPTIONS)]
        self.events = [cases.event() for _ in range(300)]
        self.truth = [[n for n, each in enumerate(expressions) if matches(each, event)] for event in self.events]
        self.weights = np.random.default_rng(seed).choice([-1.0, 0.0, 0.5, 0.5, 3.0], SUBSCRIPTIONS).tolist()
        self.ids = [f"s{number:03}" for number in range(SUBSCRIPTIONS)]
        self.matcher = matcher_with(StoreLimits(events_at_once=64))
        half = SUBSCRIPTIONS // 2
        self.matcher.add_many(self.ids[:half], expressions[:half], self.weights[:half])
        for number in range(half, SUBSCRIPTIONS):
            self.matcher.add(self.ids[number], expressions[number], weight=self.weights[number])

    def expected(self, row: int, k: int | None = None) -> list[str]:
        """The matches of an event, the heaviest first. Matches of equal weight are in the order of addition."""
        ranked = sorted(self.truth[row], key=lambda number: (-self.weights[number], number))
        return [self.ids[number] for number in ranked[:k]]


@pytest.fixture(scope="module")
def shared() -> dict[str, Case]:
    return {}


@pytest.fixture
def case(shared: dict[str, Case], request: pytest.FixtureRequest) -> Case:
    name = request.node.callspec.params["each_index"]
    if name not in shared:
        shared[name] = Case(1)
    return shared[name]


def grouped(table: pa.Table, events: int) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in range(events)]
    for row, identifier in zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True):
        found[row].append(identifier)
    return found


@pytest.mark.parametrize("threads", [1, 2, 3, None])
def test_threads_change_nothing(case: Case, threads: int | None) -> None:
    expected = [sorted(case.expected(row)) for row in range(len(case.events))]
    found = grouped(case.matcher.match_batch(case.events, threads=threads), len(case.events))
    assert [sorted(each) for each in found] == expected
    counts = [len(each) for each in expected]
    assert case.matcher.count_batch(case.events, threads=threads).tolist() == counts
    assert case.matcher.exists_batch(case.events, threads=threads).tolist() == [count > 0 for count in counts]
    for few in (0, 1, 2, 5):
        assert case.matcher.count_batch(case.events[:few], threads=threads).tolist() == counts[:few]


@pytest.mark.parametrize("k", [1, 3, 1000, 2**70])
def test_the_heaviest_matches_come_first(case: Case, k: int) -> None:
    rows = range(0, len(case.events), 7)
    events = [case.events[row] for row in rows]
    expected = [case.expected(row, k) for row in rows]
    assert [case.matcher.match(event, k=k) for event in events] == expected
    for threads in (1, 3):
        assert grouped(case.matcher.match_batch(events, threads, k), len(events)) == expected
        parts = list(case.matcher.match_iter([events[:20], events[20:]], threads, k))
        assert grouped(pa.concat_tables(parts), len(events)) == expected


def test_part_by_part(case: Case) -> None:
    expected = [sorted(case.expected(row)) for row in range(len(case.events))]
    batches = [case.events[:100], [], case.events[100:101], case.events[101:]]
    parts = list(case.matcher.match_iter(iter(batches), threads=2))
    assert len(parts) == 2 + 1 + 4
    whole = pa.concat_tables(parts)
    assert whole.schema.field("event").type == pa.int64()
    assert [sorted(each) for each in grouped(whole, len(case.events))] == expected
    tables = [pa.table({"a": list(range(start, start + 150))}) for start in (0, 150)]
    plain = matcher_with(StoreLimits(events_at_once=64))
    plain.add_many(range(300), [f"a = {number}" for number in range(300)])
    assert pa.concat_tables(plain.match_iter(tables))["subscription"].to_pylist() == list(range(300))


@pytest.mark.parametrize("threads", [1, 3])
def test_no_table_has_too_many_matches(case: Case, threads: int) -> None:
    expected = [sorted(case.expected(row)) for row in range(len(case.events))]
    batches = [case.events[:150], [], case.events[150:]]
    counts = [len(each) for each in expected]
    for most in (1, max(counts), 10 * max(counts), 1 << 70):
        parts = list(case.matcher.match_iter(batches, threads=threads, most=most))
        assert [sorted(each) for each in grouped(pa.concat_tables(parts), len(expected))] == expected
        for part in parts:
            assert len(part) <= most or len(set(part["event"].to_pylist())) == 1
    with pytest.raises(
        OptionError,
        match=r"`most` is the largest number of matches in a table and must be .* at least 1, not 0",
    ):
        case.matcher.match_iter(batches, most=0)


def test_match_iter_counts_the_rows_of_errors_over_all_batches() -> None:
    matcher = tamis.Matcher(schema={"x": "number"})
    matcher.add(1, "x = 1")
    right: list[dict[str, Any]] = [{"x": 1}] * 2
    moment = pa.array([0, 2**60], pa.int64()).cast(pa.timestamp("us"))
    wrong: list[Any] = [[{"x": 1}, {5: 1}], [{"x": 1}, {"x": "a"}], [{"x": 1}, {"x": b"x"}], pa.table({"x": moment})]
    for batch in wrong:
        with pytest.raises(tamis.EventError) as raised:
            list(matcher.match_iter([right, batch]))
        assert raised.value.row in (3, None)
        assert raised.value.row == 3 or "event" not in str(raised.value)


def test_batches_are_read_when_results_are_needed(case: Case) -> None:
    taken = []

    def batches() -> Any:
        for number in range(3):
            taken.append(number)
            yield case.events[:5]

    results = case.matcher.match_iter(batches())
    assert taken == []
    next(results)
    assert taken == [0]
    assert sum(1 for _ in results) == 2


def test_a_weight_changes_with_the_expression() -> None:
    matcher = tamis.Matcher()
    matcher.add_many(["a", "b", "c"], ["x = 1"] * 3, weights=[1, 2, 3])
    assert matcher.match({"x": 1}, k=2) == ["c", "b"]
    matcher.replace("a", "x > 0", weight=9)
    assert matcher.match({"x": 1}, k=2) == ["a", "c"]
    matcher.replace("a", "x > 0", weight=0)
    assert matcher.match({"x": 1}, k=3) == ["c", "b", "a"]
    matcher.remove("c")
    assert matcher.match_batch([{"x": 1}], k=1)["subscription"].to_pylist() == ["b"]


def test_a_weight_stays_unless_another_is_given() -> None:
    matcher = tamis.Matcher()
    matcher.add_many(["a", "b", "c"], ["x = 1"] * 3, weights=[1, 2, 3])
    matcher.replace("c", "x > 0")
    matcher.upsert("b", "x > 0")
    matcher.replace_many(["a"], ["x > 0"])
    assert matcher.match({"x": 1}, k=3) == ["c", "b", "a"]
    assert [matcher[each].weight for each in "abc"] == [1, 2, 3]
    matcher.upsert("a", "x > 0", weight=4)
    matcher.replace_many(["b", "c"], ["x > 0"] * 2, weights=[6, 5])
    assert matcher.match({"x": 1}, k=3) == ["b", "c", "a"]


def test_weights_of_tables() -> None:
    table = pa.table({"id": [1, 2, 3], "expression": ["x = 1"] * 3, "weight": [0.5, None, 7]})
    matcher = tamis.Matcher()
    matcher.add_table(table)
    assert matcher.match({"x": 1}, k=3) == [3, 1, 2]
    for wrong in (["1", "2", "3"], [1.0, float("nan"), 2.0], [[1.0], [2.0], [3.0]]):
        with pytest.raises(OptionError, match="weight"):
            tamis.Matcher().add_table(table.set_column(2, "weight", pa.array(wrong)))


@pytest.mark.parametrize(
    "weight", ["1", None, True, float("nan"), float("inf"), pytest.param(10**400, id="huge"), [1], 1j]
)
def test_wrong_weights(weight: Any) -> None:
    matcher = tamis.Matcher()
    matcher.add("there", "x = 1", weight=2)
    calls: list[Callable[[], object]] = [
        lambda: matcher.add("new", "x = 1", weight=weight),
        lambda: matcher.replace_many(["there"], ["x = 2"], weights=[weight]),
        lambda: matcher.add_many(["new", "other"], ["x = 1"] * 2, weights=[1, weight]),
    ]
    for call in calls:
        with pytest.raises(OptionError, match="a weight must be a finite number"):
            call()
    with pytest.raises(OptionError, match="ids and weights differ in number: 2 and 1"):
        matcher.add_many(["new", "other"], ["x = 1"] * 2, weights=[1])
    with pytest.raises(OptionError, match="weights must be a list"):
        matcher.add_many(["new"], ["x = 1"], weights=5)  # type: ignore[call-overload]
    assert matcher.match({"x": 1}, k=5) == ["there"]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True, [1]])
def test_wrong_limits_and_numbers_of_threads(wrong: Any) -> None:
    matcher = tamis.Matcher()
    matcher.add("x", "x = 1")
    for call in (matcher.match_batch, lambda events, **options: list(matcher.match_iter([events], **options))):
        with pytest.raises(OptionError, match="k is the number of matches"):
            call([{"x": 1}], k=wrong)
        with pytest.raises(OptionError, match="threads is the number"):
            call([{"x": 1}], threads=wrong)
    with pytest.raises(OptionError, match="k is the number of matches"):
        matcher.match({"x": 1}, k=wrong)
    for count in (matcher.count_batch, matcher.exists_batch):
        with pytest.raises(OptionError, match="threads is the number"):
            count([{"x": 1}], threads=wrong)
