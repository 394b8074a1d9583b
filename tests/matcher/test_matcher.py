"""The public API of the matcher."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis import attr
from tamis.language.evaluate import matches
from tests.matcher.small import small_matcher

pytestmark = pytest.mark.kernels


def test_three_ways_to_write_an_expression() -> None:
    matcher = tamis.Matcher()
    matcher.add("text", "price BETWEEN 20 AND 40 AND genre = 'classics'")
    matcher.add("built", attr("price").between(20, 40) & (attr("genre") == "classics"))
    matcher.add("json", [["price", "between", [20, 40]], ["genre", "=", "classics"]])
    assert sorted(matcher.match({"price": 26, "genre": "classics"})) == ["built", "json", "text"]
    assert matcher.match({"price": 41, "genre": "classics"}) == []
    assert (len(matcher), "text" in matcher, "other" in matcher, 5 in matcher, None in matcher) == (
        3,
        True,
        False,
        False,
        False,
    )


def test_results_in_all_forms() -> None:
    matcher = tamis.Matcher()
    matcher.add_many(["x", "y"], ["a >= 1", "a >= 2"])
    events = [{"a": 2}, {"a": 0}, {"a": 1}]
    table = matcher.match_batch(events)
    assert table.schema == pa.schema([("event", pa.int64()), ("subscription", pa.dictionary(pa.int32(), pa.string()))])
    assert sorted(map(tuple, table.to_pandas().to_numpy().tolist())) == [(0, "x"), (0, "y"), (2, "x")]
    counts = matcher.count_batch(events)
    assert counts.dtype == np.int64
    assert counts.tolist() == [2, 0, 1]
    numbered = tamis.Matcher()
    numbered.add(np.int32(7), "a = 1")  # type: ignore[arg-type]
    assert numbered.match_batch([{"a": 1}]).schema.field("subscription").type == pa.int64()
    assert numbered.match({"a": 1}) == [7]
    assert 7 in numbered


@pytest.mark.parametrize("identifier", [None, 1.5, True, b"x", ("a",), 2**63, "\ud800"])
def test_ids_of_wrong_types(identifier: Any) -> None:
    matcher = tamis.Matcher()
    for call in (matcher.add, matcher.replace):
        with pytest.raises(tamis.IdTypeError):
            call(identifier, "a = 1")
    with pytest.raises(tamis.IdTypeError):
        matcher.add_many(["x", identifier], ["a = 1", "a = 1"])
    with pytest.raises(tamis.IdTypeError):
        matcher.remove(identifier)
    assert identifier not in matcher
    assert len(matcher) == 0


def test_ids_are_all_str_or_all_int() -> None:
    matcher = tamis.Matcher()
    matcher.add("1", "a = 1")
    with pytest.raises(tamis.IdTypeError, match="the ids of this matcher are str"):
        matcher.add(1, "a = 1")
    with pytest.raises(tamis.IdTypeError, match="the ids of this matcher are str"):
        matcher.add_many(["2", 3], ["a = 1"] * 2)
    with pytest.raises(tamis.IdTypeError, match="the ids of this matcher are str"):
        matcher.remove(1)
    with pytest.raises(tamis.IdTypeError):
        tamis.Matcher().add_many([1, "2"], ["a = 1"] * 2)
    assert 1 not in matcher
    matcher.remove("1")
    matcher.add(1, "a = 1")  # an empty matcher takes either
    assert matcher.match_batch([{"a": 1}])["subscription"].to_pylist() == [1]


def test_integers_too_long_to_be_written_out() -> None:
    endless = 10**5000
    matcher = tamis.Matcher()
    with pytest.raises(tamis.LiteralError, match="an integer of 16610 bits"):
        matcher.add("x", [["a", "=", endless]])
    assert matcher.match({"a": endless}) == []
    matcher.add("x", "a = 1")
    with pytest.raises(tamis.EventError, match="an integer of 16610 bits"):
        matcher.match({"a": endless})
    with pytest.raises(tamis.IdTypeError, match="an integer of 16610 bits"):
        matcher.add(endless, "a = 1")
    assert endless not in matcher


def test_duplicate_and_unknown_ids() -> None:
    matcher = tamis.Matcher()
    matcher.add("x", "a = 1")
    with pytest.raises(tamis.DuplicateIdError, match="'x' already exists"):
        matcher.add("x", "a = 2")
    with pytest.raises(tamis.DuplicateIdError, match="'y'"):
        matcher.add_many(["y", "y"], ["a = 1", "a = 1"])
    for call in (matcher.remove, lambda i: matcher.replace(i, "a = 1"), lambda i: matcher.explain(i, {})):
        with pytest.raises(tamis.UnknownIdError, match="no subscription 'z'"):
            call("z")
    with pytest.raises(KeyError):
        matcher.remove("z")
    assert matcher.match({"a": 1}) == ["x"]


def test_a_call_that_adds_many_adds_all_or_none() -> None:
    matcher = tamis.Matcher()
    with pytest.raises(tamis.ParseError, match="subscription 'b'"):
        matcher.add_many(["a", "b", "c"], ["x = 1", "x = = 2", "x = 3"])
    with pytest.raises(tamis.ExpressionError, match="ids and expressions differ in number: 2 and 1"):
        matcher.add_many(["a", "b"], ["x = 1"])
    with pytest.raises(tamis.ExpressionError, match="not an expression"):
        matcher.add_many(["a", "b"], ["x = 1", 5])
    assert len(matcher) == 0
    assert matcher.match({"x": 1}) == []
    matcher.add_many([], [])
    assert len(matcher) == 0


@pytest.mark.parametrize("wrong", [5, None, "ab", b"ab", 1.5, np.array(3)])
def test_arguments_that_are_not_lists(wrong: Any) -> None:
    matcher = tamis.Matcher()
    with pytest.raises(tamis.IdTypeError, match="ids must be a list"):
        matcher.add_many(wrong, ["a = 1", "a = 2"])
    with pytest.raises(tamis.ExpressionError, match="expressions must be a list"):
        matcher.add_many(["a", "b"], wrong)
    with pytest.raises(tamis.TableError):
        matcher.add_table(wrong)
    assert [wrong] not in matcher
    assert len(matcher) == 0


def test_results_before_the_first_subscription_and_after_the_last() -> None:
    matcher = tamis.Matcher()
    assert matcher.match_batch([{"a": 1}]).num_rows == 0
    matcher.add("x", "a = 1")
    assert matcher.match_batch([{"a": 1}])["subscription"].to_pylist() == ["x"]
    matcher.remove("x")
    assert matcher.match_batch([{"a": 1}]).num_rows == 0
    matcher.add(5, "a = 1")
    assert matcher.match_batch([{"a": 1}])["subscription"].to_pylist() == [5]


def test_replace_keeps_the_old_expression_when_the_new_one_is_wrong() -> None:
    matcher = tamis.Matcher()
    matcher.add("x", "a = 1")
    with pytest.raises(tamis.ParseError):
        matcher.replace("x", "a = ")
    assert matcher.match({"a": 1}) == ["x"]
    matcher.replace("x", "a = 2")
    assert (matcher.match({"a": 1}), matcher.match({"a": 2}), len(matcher)) == ([], ["x"], 1)
    assert "a = 2" in str(matcher.explain("x", {"a": 2}))


@pytest.mark.parametrize("index", ["auto", "scan"])
def test_equal_conjunctions_are_stored_once_and_outlive_one_owner(index: str) -> None:
    matcher = small_matcher(index, delta_rows=32, swept=1024)
    matcher.add_many(range(50), ["a = 1 AND b = 2", "b = 2 AND a = 1"] * 25)
    assert matcher.stats()["conjunctions"] == 1
    for number in [0, 49, *range(10, 30)]:
        matcher.remove(number)
    assert sorted(matcher.match({"a": 1, "b": 2})) == [*range(1, 10), *range(30, 49)]
    for number in range(1, 10):
        matcher.remove(number)
        matcher.add(number, "a = 1 AND b = 2")
    assert sorted(matcher.match({"a": 1, "b": 2})) == [*range(1, 10), *range(30, 49)]


def test_a_subscription_whose_clauses_overlap_is_named_once() -> None:
    matcher = tamis.Matcher()
    matcher.add("x", "a = 1 OR b = 1 OR a > 0 AND c = 1")
    matcher.add("y", "a = 1")
    assert sorted(matcher.match({"a": 1, "b": 1, "c": 1})) == ["x", "y"]
    assert matcher.count_batch([{"a": 1, "b": 1}, {"b": 1}]).tolist() == [2, 1]
    matcher.remove("x")
    assert matcher.match({"a": 1, "b": 1}) == ["y"]


def test_expressions_that_keep_their_tree_are_verified() -> None:
    text = "z = 1 AND " + " AND ".join(f"(a{i} = 1 OR b{i} > 1 AND c{i} <> 3)" for i in range(20))
    matcher = tamis.Matcher()
    matcher.add("tree", text)
    matcher.add("plain", "z = 1")
    event = {"z": 1, **{f"a{i}": 1 for i in range(20)}}
    assert sorted(matcher.match(event)) == ["plain", "tree"]
    assert matcher.match({**event, "a19": 2}) == ["plain"]
    assert sorted(matcher.match({**event, "a19": 2, "b19": 5, "c19": 4})) == ["plain", "tree"]
    assert matcher.match_batch([event, {"z": 1}, {}]).num_rows == 3
    assert matcher.stats()["compared"] > 0


def test_true_and_false() -> None:
    matcher = tamis.Matcher()
    matcher.add_many(["always", "never", "contradiction"], ["TRUE", "FALSE", "a < 3 AND a > 5"])
    assert matcher.match({}) == ["always"]
    assert sorted(matcher.match({"a": [1, 9]})) == ["always", "contradiction"]  # two values satisfy both
    assert len(matcher) == 3
    matcher.remove("never")
    assert matcher.match({}) == ["always"]


def test_history_is_refused_with_a_reason() -> None:
    matcher = tamis.Matcher()
    for text in ("x < ANY (SELECT x FROM history)", "NOT EXISTS (SELECT 1 FROM history h WHERE h.a = a)"):
        with pytest.raises(tamis.HistoryError, match="earlier events"):
            matcher.add("x", text)
        with pytest.raises(tamis.HistoryError, match=r"subscription 'x'.*earlier events"):
            matcher.add_many(["x"], [text])
    assert len(matcher) == 0


def test_explain() -> None:
    matcher = tamis.Matcher()
    matcher.add("x", "price < 5 AND genre = 'classics'")
    explanation = matcher.explain("x", {"price": 7, "genre": "classics"})
    assert not explanation.matched
    assert "FALSE" in str(explanation)
    assert "7" in str(explanation)
    assert matcher.explain("x", {"price": 1, "genre": "classics"}).matched


def test_indexes_by_name() -> None:
    assert "scan" in tamis.indexes()
    assert tamis.Matcher(index="scan").stats()["index"] == "scan"
    with pytest.raises(tamis.UnknownIndexError, match="did you mean 'scan'"):
        tamis.Matcher(index="scam")
    with pytest.raises(tamis.UnknownIndexError):
        tamis.Matcher(index=5)  # type: ignore[arg-type]


def test_labels_are_spaced_again_when_room_is_used_up() -> None:
    """Each new constant falls in the narrowest gap, so room is used up as fast as possible."""
    matcher = tamis.Matcher()
    texts = ["b", "a"] + ["a" + "a" * k + "b" for k in range(100)]
    expressions = [attr("s") > text for text in texts]
    numbers = [2**53 + 2**40 // 2**k for k in range(40)] + [2**53 + 10**6 + k for k in range(60)]
    expressions += [attr("n") <= number for number in numbers]
    expressions += [(attr("s").startswith("aab") | (attr("n") == 2**53 + 1)) & attr("z").is_null()]
    for number, expression in enumerate(expressions):
        matcher.add(number, expression)
    for text, number in zip(
        [*texts, "aab", "aaba", "", "zz"], [*numbers, 2**53 + 1, 0, -(2**60), 2**63 - 1], strict=False
    ):
        event = {"s": text, "n": number}
        assert sorted(matcher.match(event)) == [i for i, each in enumerate(expressions) if matches(each, event)], event


@pytest.mark.parametrize("index", ["auto", "scan"])
def test_a_sweep_keeps_the_living_subscriptions(index: str) -> None:
    matcher = small_matcher(index, swept=10)
    matcher.add_table(
        pa.table(
            {
                "id": [f"t{i}" for i in range(40)],
                "predicates": [[{"attribute": "a", "operator": "=", "values": [i % 5]}] for i in range(40)],
            }
        )
    )
    tree = " AND ".join(f"(a = {i} OR b = 1 OR c{i} > 1)" for i in range(9))
    matcher.add_many([f"m{i}" for i in range(30)], [f"a = {i % 5} OR b = {i % 3}" for i in range(30)])
    matcher.add("tree", tree)
    before = matcher.stats()["bytes"]
    for i in range(40):
        if i % 7:
            matcher.remove(f"t{i}")
        if i < 30 and i % 4:
            matcher.remove(f"m{i}")
    events = [{"a": a, "b": b} for a in range(6) for b in range(4)]
    for event in events:
        expected = [f"t{i}" for i in range(0, 40, 7) if i % 5 == event["a"]]
        expected += [f"m{i}" for i in range(0, 30, 4) if i % 5 == event["a"] or i % 3 == event["b"]]
        expected += ["tree"] if event["b"] == 1 else []
        assert sorted(matcher.match(event)) == sorted(expected)
    assert sorted(set(matcher.match_batch(events)["subscription"].to_pylist())) == sorted(
        [f"t{i}" for i in range(0, 40, 7)] + [f"m{i}" for i in range(0, 30, 4)] + ["tree"]
    )
    assert str(matcher.explain("t7", {"a": 2}).expression) == "a = 2"
    assert "b = 2" in str(matcher.explain("m8", {"a": 2}).expression)
    assert matcher.stats()["bytes"] <= before


@pytest.mark.parametrize("index", ["auto", "scan"])
def test_a_sweep_forgets_constants_patterns_and_dimensions(index: str) -> None:
    matcher = small_matcher(index, delta_rows=1 << 14, swept=8)
    matcher.add("stays", "s LIKE '%keep%' OR s RLIKE '^k+$' OR t > 'm' OR n = 9007199254740993")
    tree = " AND ".join(f"(q{i} = 1 OR r{i} LIKE '%x%')" for i in range(8))
    matcher.add("tree", tree)
    matcher.add("moves", "a = 1")
    for i in range(200):
        matcher.replace(
            "moves", f"s LIKE '%drop{i}%' AND s RLIKE 'd{i}+' AND t = 'w{i:03}' AND n < {2**53 + 2 * i} AND z{i} = 1"
        )
    assert matcher.stats()["dimensions"] < 16 + 8 + 60
    truth = {"s": "drop199 d1999", "t": "w199", "n": 5, "z199": 1}
    cases: list[tuple[dict[str, Any], list[str]]] = [
        (truth, ["moves", "stays"]),
        ({**truth, "t": "w198"}, ["stays"]),
        ({"s": "we keep it"}, ["stays"]),
        ({"s": "kkk"}, ["stays"]),
        ({"s": "drop7 d77", "t": "m"}, []),
        ({"t": "ma"}, ["stays"]),
        ({"n": 2**53 + 1}, ["stays"]),
        ({"n": 2**53}, []),
        ({f"q{i}": 1 for i in range(8)}, ["tree"]),
        ({f"r{i}": "axb" for i in range(8)}, ["tree"]),
        ({f"r{i}": "axb" for i in range(7)}, []),
    ]
    for event, expected in cases:
        assert sorted(matcher.match(event)) == expected, event
        assert sorted(matcher.match_batch([event])["subscription"].to_pylist()) == expected


@pytest.mark.parametrize("index", ["auto", "scan"])
def test_removing_everything_forgets_everything(index: str) -> None:
    matcher = tamis.Matcher(index)
    empty = matcher.stats()["bytes"]
    matcher.add_many(range(1000), [f"a{i} = {i} AND s LIKE '%x{i}%'" for i in range(1000)])
    for number in range(1000):
        matcher.remove(number)
    stats = matcher.stats()
    assert (stats["subscriptions"], stats["conjunctions"], stats["dimensions"], stats["bytes"]) == (0, 0, 0, empty)
    matcher.add(1, "a = 1")
    assert matcher.match({"a": 1}) == [1]


class TestDefectsOfOthers:
    """Cases that other systems got wrong."""

    def test_a_shared_predicate(self) -> None:
        matcher = tamis.Matcher()
        matcher.add(1, "b IN (1, 2, 3) AND a = 1")
        matcher.add(2, "b IN (1, 2, 3)")
        assert matcher.match({"a": 2, "b": 1}) == [2]

    def test_a_simple_range(self) -> None:
        matcher = tamis.Matcher()
        matcher.add_many(range(3), ["score > 20", "score > 25", "score > 30"])
        assert sorted(matcher.match({"score": 30})) == [0, 1]

    def test_two_conditions_on_one_attribute(self) -> None:
        matcher = tamis.Matcher()
        matcher.add(1, "a > 1 AND a <> 3 AND a < 5")
        assert [matcher.match({"a": a}) for a in (1, 2, 3, 4, 5)] == [[], [1], [], [1], []]

    def test_many_values(self) -> None:
        matcher = tamis.Matcher()
        matcher.add(1, f"a IN ({', '.join(map(str, range(0, 200_000, 2)))})")
        matcher.add(2, "a = 77777")
        assert matcher.match({"a": list(range(1, 1001, 2))}) == []
        assert matcher.match({"a": list(range(1, 1002))}) == [1]
        assert sorted(matcher.match({"a": [1, 77777, 199_998]})) == [1, 2]

    def test_a_negation_on_a_missing_attribute(self) -> None:
        matcher = tamis.Matcher()
        matcher.add_many(range(4), ["a <> 1", "NOT (a = 1)", "a NOT IN (1)", "a NOT LIKE 'x'"])
        assert matcher.match({"b": 1}) == []


@pytest.mark.kernels
def test_subscriptions_without_attributes() -> None:
    matcher = tamis.Matcher()
    matcher.add_many(range(3), ["TRUE", "FALSE", "TRUE"])
    assert matcher.match_batch([{"a": 1}, {}]).to_pydict() == {"event": [0, 0, 1, 1], "subscription": [0, 2, 0, 2]}
