"""What the engine's store promises in addition to other stores."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis import attr
from tamis.language.evaluate import matches
from tamis.language.expression import Expression
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.ids import Ids
from tamis.matcher.matcher import matcher_over
from tests.matcher.small import small_limits, small_matcher


def narrowing(count: int) -> list[Expression]:
    """Expressions whose constants each fall in the narrowest gap of the earlier constants. Labels move after some fifty."""
    return [attr("s") > "a" + "a" * k + "b" for k in range(count)]


@pytest.mark.parametrize("last", ["add_many", "add_table", "replace"])
@pytest.mark.parametrize("compiled", range(44, 64, 4))
def test_labels_move_while_expressions_wait_to_be_compiled(compiled: int, last: str) -> None:
    """When the last two are compiled, some thirty expressions wait. For one of these numbers, their constants find no room."""
    expressions = [
        attr("s") > "b",
        attr("s") > "a",
        *narrowing(compiled + 30),
        attr("s") <= "aaab",
        attr("s") == "aaaaaab",
    ]
    late = len(expressions) - 2
    matcher = tamis.Matcher()
    if last == "replace":
        matcher.add(late, "s = 'x'")
    for number, expression in enumerate(expressions[:late]):
        matcher.add(number, expression)
        if number < compiled:
            matcher.match({})
    if last == "replace":
        matcher.replace(late, expressions[late])
        matcher.add(late + 1, expressions[late + 1])
    elif last == "add_many":
        matcher.add_many([late, late + 1], expressions[late:])
    else:
        literals = [("<=", "aaab"), ("=", "aaaaaab")]
        column = [[{"attribute": "s", "operator": operator, "values": [text]}] for operator, text in literals]
        matcher.add_table(pa.table({"id": [late, late + 1], "predicates": column}))
    for text in ("", "a", "aab", "aaab", "aaaab", "aaaaaab", "aaaaaaab", "b", "c"):
        expected = [number for number, each in enumerate(expressions) if matches(each, {"s": text})]
        assert sorted(matcher.match({"s": text})) == expected


def test_slots_of_expressions_that_are_never_true_are_reused() -> None:
    store = EngineStore()
    matcher = matcher_over(store)
    matcher.add("stays", "a = 1")
    for number in range(50):
        matcher.add(f"n{number}", "FALSE")
        matcher.remove(f"n{number}")
    assert len(store.contents().alive) < 5
    assert matcher.match({"a": 1}) == ["stays"]


def test_a_dictionary_of_results_has_each_name_once() -> None:
    matcher = tamis.Matcher()
    matcher.add_many(["x", "y", "z"], ["a > 0"] * 3)
    for _ in range(5):
        matcher.replace("y", "a > 0")
        table = matcher.match_batch([{"a": 1}])
        assert sorted(table["subscription"].to_pylist()) == ["x", "y", "z"]
        names = table["subscription"].chunk(0).dictionary.to_pylist()
        assert len(set(names)) == len(names)
        assert sorted(table.to_pandas()["subscription"]) == ["x", "y", "z"]


def test_a_result_keeps_its_names() -> None:
    matcher = tamis.Matcher()
    matcher.add_many(["x", "y", "z"], ["a > 0"] * 3)
    table = matcher.match_batch([{"a": 1}])
    results = matcher.match_iter([[{"a": 1}]] * 2)
    first = next(results)
    for name in ("x", "y"):
        matcher.remove(name)
    gc.collect()
    matcher.add_many(["u", "v"], ["a > 0"] * 2)
    assert sorted(table["subscription"].to_pylist()) == sorted(first["subscription"].to_pylist()) == ["x", "y", "z"]
    assert sorted(next(results)["subscription"].to_pylist()) == ["u", "v", "z"]


def test_a_dictionary_made_while_ids_were_added_is_not_kept() -> None:
    slots = np.array([0, 1], np.int32)

    class Growing(Ids):
        """More ids come while the first dictionary is made."""

        def texts_by_slot(self) -> pa.Array:
            texts = super().texts_by_slot()
            if len(self) == 2:
                self.add(["c", "d"], slots + 2)
            return texts

    names = Growing()
    names.add(["a", "b"], slots)
    for slot, name in enumerate("abcd"):
        found = names.names(2)
        assert found is not None
        assert found.column(found.place[[slot]]).to_pylist() == [name]


def test_replacing_by_many_clauses_names_the_subscription_once() -> None:
    matcher = small_matcher()
    matcher.add("x", "a > 0")
    for size in (3, 30, 2, 50):
        matcher.replace("x", " OR ".join(f"(a > {i} AND b{i} IS NULL)" for i in range(size)))
        assert matcher.match({"a": 100}) == ["x"]
    matcher.remove("x")
    stats = matcher.stats()
    assert (stats["subscriptions"], stats["conjunctions"], stats["dimensions"], stats["bytes"]) == (0, 0, 0, 0)


def test_a_sweep_forgets_only_unused_constants() -> None:
    store = EngineStore(limits=small_limits(swept=16))
    matcher = matcher_over(store)
    kept = {f"k{i}": tamis.parse(f"s > 'm{i:02}' AND s <> 'q{i}' OR u LIKE '%k{i}%'") for i in range(20)}
    matcher.add_many(kept, kept.values())
    for number in range(400):
        matcher.add("new", f"s = 'v{number}' AND u LIKE '%{number}x%' AND only{number} = 1")
        assert matcher.match({"s": f"v{number}", "u": f"-{number}x", f"only{number}": 1, "z": 1})
        matcher.remove("new")
    assert len(store.dimensions) < 60
    text = next(each for each in store.dimensions if each.attribute == "s")
    assert text.words() < 100
    for event in ({"s": "m05"}, {"s": "m05x"}, {"s": "q7"}, {"s": "zz"}, {"u": "a k11 k3"}, {"s": "v1", "u": "k1"}):
        expected = sorted(name for name, each in kept.items() if matches(each, event))
        assert sorted(matcher.match(event)) == expected


def test_a_few_plain_expressions_get_the_rows_that_the_compiler_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adding them needs no compiler if all of them are plain. Otherwise the compiler takes all of them."""
    known = [attr("a") < 3, (attr("a") == 5) & (attr("b") > 1.5), attr("s") == "x"]
    few: list[Expression] = [
        (attr("b") >= 2) & (attr("a") == 5) & (attr("a") == 5),
        attr("s").isin(["x"]) & (attr("a") > 0),
        attr("b").between(1, 7) & (attr("a") != 4),
    ]
    store = EngineStore()
    matcher = matcher_over(store)
    matcher.add_many(range(len(known)), known)
    laid_out, compiled = store.compile(few), store.keyed.compile_any(few)
    for ours, theirs in zip(laid_out.rows[:4], compiled.rows[:4], strict=True):
        np.testing.assert_equal(ours, theirs)
    events: list[dict[str, Any]] = [{"a": 5, "b": 2, "s": "x"}, {"a": 4, "b": 3}, {"b": [1, 9], "a": [4, 5]}]
    by_number = dict(enumerate([*known, *few, attr("new") > 1, attr("a").is_null()]))
    with monkeypatch.context() as patched:
        patched.setattr(store.keyed, "compile_any", None)
        matcher.add_many([3, 4, 5], few)
        with pytest.raises(TypeError):
            matcher.add_many([6, 7], [by_number[6], by_number[7]])
    matcher.add_many([6, 7], [by_number[6], by_number[7]])
    for event in [*events, {"new": 2}]:
        expected = [number for number, each in by_number.items() if matches(each, event)]
        assert sorted(matcher.match(event)) == expected
