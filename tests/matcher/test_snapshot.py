"""A matcher is the same after it was saved and loaded, and a damaged file is refused."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.errors import SnapshotError
from tamis.language.evaluate import matches
from tamis.language.expression import Expression
from tamis.language.values import Interval
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.load import load_store
from tamis.matcher.matcher import matcher_over
from tamis.storage import container
from tests.random_cases import RandomCases

Model = dict[Any, Expression]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alerts.tamis"


def reloaded(matcher: tamis.Matcher, path: Path, mmap: bool = True) -> tamis.Matcher:
    matcher.save(path)
    return tamis.load(path, mmap=mmap)


def check(matcher: tamis.Matcher, model: Model, events: list[dict[str, Any]]) -> None:
    """Check that the matcher gives the evaluator's answers, for single events and a batch, and has every expression."""
    assert len(matcher) == len(model)
    expected = [{identifier for identifier, each in model.items() if matches(each, event)} for event in events]
    assert [set(matcher.match(event)) for event in events] == expected
    found: list[set[Any]] = [set() for _ in events]
    for row in matcher.match_batch(events).to_pylist():
        found[row["event"]].add(row["subscription"])
    assert found == expected
    assert all(identifier in matcher for identifier in model)
    assert {each: matcher[each].expression for each in model} == model


def filled(
    seed: int, count: int, name: Any = int, store: EngineStore | None = None
) -> tuple[tamis.Matcher, Model, RandomCases]:
    cases = RandomCases(seed)
    model = {name(number): cases.expression() for number in range(count)}
    matcher = matcher_over(EngineStore() if store is None else store)
    matcher.add_many(model, model.values())
    return matcher, model, cases


# -- round trips


@pytest.mark.kernels
@pytest.mark.parametrize("name", [int, "sub-{}".format], ids=["int", "str"])
@pytest.mark.parametrize("mmap", [True, False])
def test_expressions_of_every_kind(path: Path, name: Any, mmap: bool) -> None:
    matcher, model, cases = filled(1, 60, name)
    check(reloaded(matcher, path, mmap), model, [cases.event() for _ in range(10)])


@pytest.mark.parametrize(("seed", "name"), [(1, int), (2, "é{}".format)], ids=["int", "str"])
def test_segments_and_delta_with_the_dead(path: Path, seed: int, name: Any) -> None:
    store = EngineStore()
    matcher, model, cases = filled(seed, 1500, name, store)
    for number in range(1500, 1800):
        model[name(number)] = cases.expression()
        matcher.add(name(number), model[name(number)])
    for number in range(0, 1800, 5):
        del model[name(number)]
        matcher.remove(name(number))
    for number in range(1, 1800, 50):
        model[name(number)] = cases.expression()
        matcher.replace(name(number), model[name(number)])
    store.engine.wait()
    loaded = reloaded(matcher, path)
    figures = loaded.stats()["index_stats"]
    assert figures["segments"]
    assert figures["dead"]
    check(loaded, model, [cases.event() for _ in range(4)])


@pytest.mark.kernels
@pytest.mark.parametrize("name", [int, str], ids=["int", "str"])
def test_a_loaded_matcher_is_changed_and_saved_again(path: Path, name: Any) -> None:
    matcher, model, cases = filled(4, 80, name)
    events = [cases.event() for _ in range(6)]
    for generation in range(3):
        matcher = reloaded(matcher, path)
        first = 1000 * (generation + 1)
        for number in range(first, first + 10):
            model[name(number)] = cases.expression()
            matcher.add(name(number), model[name(number)])
        for identifier in list(model)[:: 7 + generation]:
            matcher.remove(identifier)
            del model[identifier]
        for identifier in list(model)[::9]:
            model[identifier] = cases.expression()
            matcher.replace(identifier, model[identifier])
        check(matcher, model, events)
        with pytest.raises(tamis.DuplicateIdError):
            matcher.add(next(iter(model)), "a = 1")
        with pytest.raises(tamis.IdTypeError):
            matcher.add("x" if name is int else 1, "a = 1")
    matcher.optimize()
    check(reloaded(matcher, path), model, events)


def test_changes_after_loading_reuse_slots(path: Path) -> None:
    matcher, model, cases = filled(5, 1200)
    for number in range(700):
        matcher.remove(number)
        del model[number]
    loaded = reloaded(matcher, path)
    loaded.optimize()
    for number in range(5000, 5900):
        model[number] = cases.expression()
        loaded.add(number, model[number])
    check(loaded, model, [cases.event() for _ in range(6)])
    check(reloaded(loaded, path), model, [cases.event() for _ in range(6)])


@pytest.mark.kernels
def test_an_empty_matcher(path: Path) -> None:
    emptied = tamis.Matcher()
    emptied.add("ann", "a = 1")
    emptied.remove("ann")
    for matcher in (tamis.Matcher(), emptied):
        loaded = reloaded(matcher, path)
        assert len(loaded) == 0
        assert loaded.match({"a": 1}) == []
        assert loaded.match_batch([{"a": 1}]).num_rows == 0
        loaded.add(7, "a = 1")
        assert reloaded(loaded, path).match({"a": 1}) == [7]


@pytest.mark.kernels
def test_subscriptions_without_rows(path: Path) -> None:
    matcher = tamis.Matcher()
    matcher.add_many(["never", "always"], ["FALSE", "TRUE"])
    loaded = reloaded(matcher, path)
    assert loaded.match({}) == ["always"]
    loaded.remove("never")
    assert len(reloaded(loaded, path)) == 1


@pytest.mark.kernels
def test_weights(path: Path) -> None:
    matcher = tamis.Matcher()
    matcher.add_many(["a", "b", "c"], ["x > 0"] * 3, [1.0, 3.0, 2.0])
    loaded = reloaded(matcher, path)
    assert loaded.match({"x": 1}, k=2) == ["b", "c"]
    loaded.add("d", "x > 0", 9.0)
    assert reloaded(loaded, path).match({"x": 1}, k=2) == ["d", "b"]


@pytest.mark.kernels
def test_the_schema(path: Path) -> None:
    declared = {"price": "number", "tags": "list<string>", "user": {"age": "number"}, "at": "timestamp"}
    matcher = tamis.Matcher(schema=declared)
    matcher.add(1, "price < 5 AND at > DATE '2026-01-01'")
    loaded = reloaded(matcher, path)
    assert loaded.schema == matcher.schema
    assert loaded.match({"price": 4, "at": datetime(2026, 2, 1)}) == [1]
    with pytest.raises(tamis.UnknownAttributeError):
        loaded.add(2, "prise < 5")
    with pytest.raises(tamis.EventError):
        loaded.match({"price": "4"})
    assert tamis.load(path).schema == matcher.schema


@pytest.mark.kernels
def test_trees_patterns_and_regular_expressions(path: Path) -> None:
    clauses = " AND ".join(f"(a{n} = 1 OR b{n} = 2 OR c{n} LIKE '%x{n}%')" for n in range(12))
    texts = {
        "tree": clauses,
        "needle": "title LIKE '%Sea%'",
        "any case": "title ILIKE '%SEA%'",
        "suffix": "title LIKE '%Wolf'",
        "regex": "title RLIKE '^The .*f$'",
        "neither": "title NOT LIKE '%Land%' AND title NOT RLIKE 'xyz'",
    }
    matcher = tamis.Matcher()
    matcher.add_many(texts, texts.values())
    matcher.add("gone", "title LIKE '%gone%'")
    matcher.remove("gone")
    event = {"title": "The Sea-Wolf", **{f"a{n}": 1 for n in range(12)}}
    loaded = reloaded(matcher, path)
    assert set(loaded.match(event)) == set(texts)
    loaded.add("new", "title LIKE '%The%' AND title RLIKE 'Sea'")
    again = reloaded(loaded, path)
    assert set(again.match(event)) == {*texts, "new"}
    assert again.match_batch(pa.table({"title": ["The Sea-Wolf"] * 100})).num_rows == 100 * len(texts)


def test_tables_in_predicate_form(path: Path) -> None:
    value = pa.struct({"integer": pa.int64(), "number": pa.float64(), "string": pa.string(), "boolean": pa.bool_()})
    kind = pa.list_(pa.struct({"attribute": pa.string(), "operator": pa.string(), "values": pa.list_(value)}))
    cases: list[list[tuple[str, str, list[dict[str, Any]]]]] = [
        [("price", "<", [{"integer": number}]), ("genre", "=", [{"string": f"g{number % 3}"}])] for number in range(40)
    ]
    cases += [[("signed", "=", [{"boolean": True}])], [("price", "between", [{"number": 1.5}, {"number": 9.5}])], []]
    rows = [[dict(zip(("attribute", "operator", "values"), each, strict=True)) for each in case] for case in cases]
    matcher = tamis.Matcher()
    matcher.add_table(pa.table({"id": range(len(rows)), "predicates": pa.array(rows, kind)}))
    matcher.add(100, "price > 3")
    matcher.remove(1)
    model = {identifier: matcher[identifier].expression for identifier in matcher}
    events: list[dict[str, Any]] = [{"price": 5, "genre": "g2"}, {"signed": True}, {"price": 30, "genre": "g1"}, {}]
    loaded = reloaded(matcher, path)
    check(loaded, model, events)
    loaded.remove(3)
    loaded.add(101, "genre = 'g1'")
    del model[3]
    model[101] = tamis.parse("genre = 'g1'")
    check(reloaded(loaded, path), model, events)
    check(tamis.load(path), model, events)


@pytest.mark.kernels
def test_forms_of_events(path: Path) -> None:
    matcher = tamis.Matcher()
    matcher.add_many(["num", "text", "tag"], ["a BETWEEN 2 AND 4", "s >= 'm'", "array_contains(t, 'x')"])
    loaded = reloaded(matcher, path)
    assert loaded.match({"a": Interval(4, 9)}) == ["num"]
    forms: list[Any] = [
        [{"a": 3, "s": "zz", "t": ["x", "y"]}, {"a": 5}],
        pa.table({"a": [3, 5], "s": ["zz", None], "t": [["x", "y"], None]}),
        pa.record_batch({"a": [3, 5], "s": ["zz", None], "t": [["x", "y"], None]}),
    ]
    for events in forms:
        assert loaded.count_batch(events).tolist() == [3, 0]
        assert loaded.exists_batch(events).tolist() == [True, False]
        found = loaded.match_batch(events)
        assert sorted(found["subscription"].to_pylist()) == ["num", "tag", "text"]
        assert found.schema == matcher.match_batch(events).schema


@pytest.mark.kernels
def test_large_integers_and_many_strings_keep_their_labels(path: Path) -> None:
    numbers = [2**53 + 1, 2**60 + 1, -(2**60) - 3, 2**63 - 1, -(2**63)]
    matcher = tamis.Matcher()
    matcher.add_many(range(5), [f"n >= {number}" for number in numbers])
    matcher.add_many(range(5, 45), [f"s < 'k{n:02d}'" for n in range(40)])
    loaded = reloaded(matcher, path)
    loaded.add_many([90, 91], [f"n > {2**60}", "s < 'k0a'"])
    events: list[dict[str, Any]] = [{"n": number + step} for number in numbers[:3] for step in (-1, 0, 1)]
    events += [{"s": text} for text in ("", "k0", "k05", "k050", "k39", "z")]
    for event in events:
        assert set(loaded.match(event)) - {90, 91} == set(matcher.match(event))
        assert (90 in loaded.match(event)) == (event.get("n", 0) > 2**60)


@pytest.mark.kernels
def test_text_in_a_comment_that_is_not_unicode(path: Path) -> None:
    matcher = tamis.Matcher()
    matcher.add("ann", "a = 1 -- \ud800")
    loaded = reloaded(matcher, path)
    assert loaded.match({"a": 1}) == ["ann"]
    assert loaded.explain("ann", {"a": 1}).matched


# -- when parts of a matcher are made


def test_ids_of_a_snapshot_become_python_objects_when_they_are_needed(path: Path) -> None:
    for name in (int, str):
        matcher, model, cases = filled(6, 1100, name)
        matcher.save(path)
        store = load_store(path)
        loaded = matcher_over(store)
        event = cases.event()
        assert len(loaded) == len(model)
        assert set(loaded.match(event)) == set(matcher.match(event))
        assert loaded.match_batch([event] * 3).num_rows == 3 * len(matcher.match(event))
        assert store.ids.are_unread()
        for segment in store.engine.version.segments:
            assert not segment.body.entry.flags.owndata
            assert not segment.table.predicates.lo.flags.writeable
        assert next(iter(model)) in loaded
        assert not store.ids.are_unread()


@pytest.mark.compiled
def test_loading_compiles_no_kernel_again(path: Path) -> None:
    from tamis.engine.matching.match import match_rows

    matcher, _, cases = filled(7, 1100)
    events = [cases.event() for _ in range(3)]
    matcher.match_batch(events)
    kernel: Any = match_rows
    before = set(kernel.signatures)
    reloaded(matcher, path).match_batch(events)
    assert set(kernel.signatures) == before


def test_saving_while_others_match_and_change(path: Path) -> None:
    matcher, model, cases = filled(8, 1500)
    events = [cases.event() for _ in range(4)]
    new = {number: cases.expression() for number in range(2000, 2300)}
    stop = threading.Event()

    def keep_matching() -> None:
        while not stop.is_set():
            matcher.match_batch(events)

    def change() -> None:
        for number, expression in new.items():
            matcher.add(number, expression)
            matcher.remove(number - 2000)

    threads = [threading.Thread(target=work) for work in (keep_matching, change)]
    for thread in threads:
        thread.start()
    sizes: list[int] = []
    while threads[1].is_alive() or not sizes:
        loaded = reloaded(matcher, path)
        there = {identifier for identifier in new if identifier in loaded}
        sizes.append(len(there))
        # Each state has the new ids in order, and the same number of old ids removed, or one less.
        assert there == set(range(2000, 2000 + len(there)))
        assert len(loaded) in (1500, 1501)
        gone = 1500 + len(there) - len(loaded)
        state = {**{key: each for key, each in model.items() if key >= gone}, **{key: new[key] for key in there}}
        check(loaded, state, events[:2])
    stop.set()
    for thread in threads:
        thread.join()
    state = {**{key: each for key, each in model.items() if key >= 300}, **new}
    check(reloaded(matcher, path), state, events)


# -- processes


def run_python(program: str, *words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *[str(word) for word in words]]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_open_one_file(path: Path) -> None:
    matcher, _, _ = filled(9, 200)
    matcher.save(path)
    program = "import sys, tamis; print(sorted(tamis.load(sys.argv[1]).match({'a': 1, 'b': 'ab'})))"
    answers = [process.communicate()[0] for process in [run_python(program, path) for _ in range(2)]]
    assert answers == [f"{sorted(matcher.match({'a': 1, 'b': 'ab'}))}\n"] * 2


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
@pytest.mark.parametrize("after", [1, 12])
def test_a_process_that_is_killed_while_it_saves(path: Path, after: int) -> None:
    matcher, model, cases = filled(10, 100)
    matcher.save(path)
    before = path.read_bytes()
    program = (
        "import os, signal, sys, tamis\n"
        "from tamis.storage import container\n"
        "write, left = container.write_array, [int(sys.argv[2])]\n"
        "def write_and_die(stream, *rest):\n"
        "    left[0] -= 1\n"
        "    if left[0] == 0:\n"
        "        stream.flush()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return write(stream, *rest)\n"
        "container.write_array = write_and_die\n"
        "matcher = tamis.load(sys.argv[1])\n"
        "matcher.add(10**6, 'a = 1')\n"
        "matcher.save(sys.argv[1])\n"
    )
    process = run_python(program, path, after)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert len(os.listdir(path.parent)) == 2
    check(reloaded(tamis.load(path), path), model, [cases.event() for _ in range(3)])
    assert os.listdir(path.parent) == [path.name]


# -- damage


@pytest.mark.parametrize("mmap", [True, False])
def test_a_damaged_file_is_refused_or_right(path: Path, mmap: bool) -> None:
    matcher, model, cases = filled(11, 40, str)
    events = [cases.event() for _ in range(2)]
    expected = [set(matcher.match(event)) for event in events]
    matcher.save(path)
    sound = path.read_bytes()
    damaged_path = path.with_name("damaged.tamis")
    chance = random.Random(0)
    refused = 0
    for _ in range(150):
        damaged = bytearray(sound)
        for _ in range(chance.choice([1, 1, 3, 40])):
            damaged[chance.randrange(len(damaged))] ^= chance.randrange(1, 256)
        damaged_path.write_bytes(damaged)
        try:
            loaded = tamis.load(damaged_path, mmap=mmap)
            assert [set(loaded.match(event)) for event in events] == expected
            check(loaded, model, events)
        except SnapshotError:
            refused += 1
    # A checksum covers every byte.
    assert refused == 150


def test_expressions_of_a_file_are_checked_when_they_are_read(path: Path) -> None:
    matcher = tamis.Matcher()
    matcher.add("ann", "price < 20 AND genre = 'a text that is found in the file'")
    matcher.save(path)
    damaged = path.read_bytes().replace(b"price < 20", b"price < 30")
    path.write_bytes(damaged)
    loaded = tamis.load(path)
    assert loaded.match({"price": 1, "genre": "a text that is found in the file"}) == ["ann"]
    with pytest.raises(SnapshotError, match="'sources/texts' is damaged"):
        loaded.explain("ann", {"price": 1})
    with pytest.raises(SnapshotError, match="'sources/texts' is damaged"):
        loaded.save(path)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.999])
def test_a_file_that_is_cut_off(path: Path, share: float) -> None:
    filled(12, 20)[0].save(path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(SnapshotError):
        tamis.load(path)


@pytest.mark.kernels
def test_other_files(path: Path) -> None:
    with pytest.raises(SnapshotError, match="no such file"):
        tamis.load(path)
    path.write_text("id,expression\n")
    with pytest.raises(SnapshotError):
        tamis.load(path)
    container.write(path, {"start": np.arange(3)})
    with pytest.raises(SnapshotError, match="does not hold a matcher: name a file that"):
        tamis.load(path)
    container.write(path, {}, {"content": "matcher", "content_version": 8})
    with pytest.raises(
        SnapshotError, match="is a matcher of version 8, but this Tamis reads versions 6 and 7: use a newer Tamis"
    ):
        tamis.load(path)


@pytest.mark.kernels
def test_matchers_that_cannot_be_saved(path: Path) -> None:
    with pytest.raises(tamis.CapabilityError, match="a matcher with the index 'scan' cannot be saved"):
        tamis.Matcher(index="scan").save(path)
    with pytest.raises(SnapshotError, match="its folder does not exist"):
        tamis.Matcher().save(path / "nowhere" / "x")
    shutil.copy(__file__, path)
    filled(13, 5)[0].save(path)
    assert len(tamis.load(path)) == 5
