"""JSON as text means what `json.loads` and `match` of the mapping mean."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis import EventError, History, Matcher, Schema, WrongEventsError
from tamis.matcher.limits import USUAL_STORE_LIMITS
from tamis.matcher.matcher import matcher_over, new_store
from tests.json_texts import ASKED, JsonTexts, WrongTextError, meaning

pytestmark = pytest.mark.kernels

EXPRESSIONS = (
    *(
        "a = 5",
        "a <> 5",
        "a < 12",
        "a >= 0.1",
        "a = 9007199254740993",
        "a IN (5, 'x', TRUE)",
        "a IS NULL",
        "NOT (a > 3)",
    ),
    *("a = 'x'", "a LIKE 'x%'", "a LIKE '%y%'", "a ILIKE '%XY'", "a RLIKE 'x.*e'", "a > 'w'", "a = TRUE", "a <> 'xy'"),
    *("b = 0.1", "b > 1e300", "b < 0", "b IS NOT NULL", "b = 'ä€😀'", "b LIKE '%€%'", "b BETWEEN -1 AND 3", "NOT b"),
    *(
        "c = 3.0000000000000004",
        "c = 0.30000000000000004",
        "c = 0",
        "(c = 1) IS UNKNOWN",
        "lower(c) = 'xy'",
        "c NOT LIKE '%x%'",
    ),
    *(
        '"a.b" = 5',
        "a.b IS NULL",
        "a.b LIKE '%exe'",
        "b.c > 5",
        "b.c <> 'x'",
        "b.c IN (5, 12) AND a IS NOT NULL",
        "a.b.c = 5",
    ),
    *(
        "a.b.c IS NOT NULL",
        '"x y" = 5 OR "x y" = \'x\'',
        "ä = TRUE",
        "ip_in(a, '10.0.0.0/8')",
        "a_longer_name_than_eight > 0",
    ),
)


def matcher_of(**limits: Any) -> Matcher[int]:
    matcher: Matcher[int] = matcher_over(new_store(limits=USUAL_STORE_LIMITS._replace(**limits)))
    for number, expression in enumerate(EXPRESSIONS):
        matcher.add(number, expression)
    return matcher


def expected_of(matcher: Matcher[int], data: bytes) -> list[int] | None:
    """The matches of a text by way of a mapping; None if it is wrong."""
    try:
        return sorted(matcher.match(meaning(data, ASKED)))
    except (WrongTextError, EventError):
        return None


def compare(seed: int, lines: int, threads: int) -> int:
    """Compare the matches of random lines; returns the number of decisions."""
    texts = JsonTexts(seed)
    data = [texts.line() for _ in range(lines)]
    reference, matcher = matcher_of(), matcher_of(json_share_bytes=2_000)
    expected = {at: expected_of(reference, line) for at, line in enumerate(data) if line.strip()}
    for given in (data, b"\n".join(data)):
        wrong: list[EventError] = []
        pairs = matcher.match_json_batch(given, threads, wrong=wrong).to_pydict()
        found: dict[int, list[int]] = {at: [] for at in expected}
        for event, subscription in zip(pairs["event"], pairs["subscription"], strict=True):
            found[event].append(subscription)
        problems = {error.row: error for error in wrong}
        for at, ids in expected.items():
            assert (at in problems) == (ids is None), (data[at], problems.get(at))
            assert ids is None or sorted(found[at]) == ids, data[at]
    return len(expected) * len(EXPRESSIONS)


def test_lines_mean_what_mappings_mean() -> None:
    assert sum(compare(seed, 90, threads=1 + seed % 3) for seed in range(6)) > 20_000


@pytest.mark.long
@pytest.mark.compiled
def test_many_lines_mean_what_mappings_mean() -> None:
    assert sum(compare(seed, 5_000, threads=1 + seed % 3) for seed in range(100, 140)) > 8_000_000


def test_one_text() -> None:
    texts, matcher = JsonTexts(1), matcher_of()
    for _ in range(100):
        line = texts.line()
        expected = expected_of(matcher, line)
        if expected is None:
            with pytest.raises(EventError):
                matcher.match_json(line)
        else:
            assert sorted(matcher.match_json(line)) == expected
    assert matcher.match_json('{"a": 5}', k=1) == matcher.match({"a": 5}, k=1)
    with pytest.raises(EventError, match="must be str or bytes, not dict"):
        matcher.match_json({"a": 5})  # type: ignore[arg-type]


LINES = b'{"a": 5}\n\n{"a": 6}\r\n{"a": 5, "b": 1}'


@pytest.mark.parametrize(
    "given",
    [
        LINES,
        LINES.decode(),
        b"\xef\xbb\xbf" + LINES + b"\n",
        bytearray(LINES),
        memoryview(LINES),
        LINES.split(b"\n"),
        LINES.decode().split("\n"),
        ['{"a":\n5}', "", '{"a": 6}', b'{"a": 5}\n'],
        pa.array(['{"a": 5}', None, '{"a": 6}', '{"a": 5}']),
        pa.chunked_array([[b'{"a": 5}', None], [b'{"a": 6}', b'{"a": 5}']]),
        pa.array(['{"a": 5}', None, '{"a": 6}', '{"a": 5}']).dictionary_encode(),
        io.BytesIO(LINES),
        io.StringIO(LINES.decode()),
    ],
)
def test_many_things_hold_lines(given: Any) -> None:
    matcher = Matcher[str]()
    matcher.add("five", "a = 5")
    assert matcher.match_json_batch(given).to_pydict() == {"event": [0, 3], "subscription": ["five", "five"]}


def test_files(tmp_path: Path) -> None:
    matcher = Matcher[str]()
    matcher.add("five", "a = 5")
    path = tmp_path / "events.jsonl"
    path.write_bytes(LINES)
    assert matcher.match_json_batch(path)["event"].to_pylist() == [0, 3]
    empty: list[Any] = [b"", b"\n", [], b" \n\t"]
    for nothing in empty:
        assert matcher.match_json_batch(nothing).num_rows == 0
    with pytest.raises(EventError, match="not int"):
        matcher.match_json_batch(5)
    with pytest.raises(EventError, match="not a column of int64"):
        matcher.match_json_batch(pa.array([1]))
    with pytest.raises(FileNotFoundError):
        matcher.match_json_batch(tmp_path / "missing")


PROBLEMS = {
    b"[1]": "an event must be a JSON object, not a list",
    b"{": "not JSON: expecting property name",
    b'{"a": 1, "a": 1}': "the key 'a' is given twice in one object",
    b'{"a": {"b": 1}, "a.b": 2}': "attribute 'a.b': given twice",
    b'{"a": 123456789012345678901}': "attribute 'a': the integer 123456789012345678901 is beyond 64 bits",
    b'{"a": "\xff"}': "not UTF-8: byte 0xff at column 8",
    b'{"a": "\\ud800"}': "lone surrogate",
}


@pytest.mark.parametrize("index", ["auto", "scan", "history"])
def test_wrong_lines_have_numbers(index: str) -> None:
    matcher: Matcher[str] = Matcher(history=History(rows=5)) if index == "history" else Matcher(index)
    matcher.add("five", "a = 5 OR a.b = 5")
    lines = [b'{"a": 5}', b"", *PROBLEMS, b'{"a": 5, "c": 1, "c": 2}']
    with pytest.raises(WrongEventsError) as caught:
        matcher.match_json_batch(lines)
    assert list(caught.value.problems) == list(range(2, 2 + len(PROBLEMS)))
    assert str(caught.value).startswith("event 2: an event must be")
    wrong: list[EventError] = []
    assert matcher.match_json_batch(b"\n".join(lines), wrong=wrong)["event"].to_pylist() == [0, len(lines) - 1]
    for error, (line, problem) in zip(wrong, enumerate(PROBLEMS.values(), 2), strict=True):
        assert error.row == line
        assert problem in str(error)


def test_names_given_twice_matter_if_someone_asks() -> None:
    matcher = Matcher[str]()
    matcher.add("deep", "a.b = 1")
    for line, problem in {
        b'{"c": 1, "c": 2, "a": {"b": 1, "c": 1, "c": 2}}': None,
        b'{"a": {"b": 1, "b": 1}}': "'b'",
        b'{"a": {"b": 1}, "a": {"c": 1}}': "'a'",
        b'{"a": [{"b": 1}, {"b": 2}]}': None,
        b'{"a": [{"b": 1, "b": 2}]}': "'b'",
        b'{"x": {"a": {"b": 1}, "a": {"b": 1}}, "a": {"b": 1}}': None,
    }.items():
        if problem is None:
            assert matcher.match_json(line) == ["deep"]
            assert matcher.match_json_batch(line).num_rows == 1
        else:
            for call in (matcher.match_json, matcher.match_json_batch):
                with pytest.raises(EventError, match=f"the key {problem} is given twice in one object"):
                    call(line)
    matcher.add("other", "c = 2")
    with pytest.raises(EventError, match="'c' is given twice"):
        matcher.match_json_batch(b'{"c": 1, "c": 2}')


def test_threads_name_the_errors_that_one_thread_names() -> None:
    declared = {"a": "number", "b": "string", "c": "number", "x y": "string", "ä": "boolean"}
    texts = JsonTexts(11)
    data = [texts.line() for _ in range(120)]
    answers = []
    for threads in (1, 3):
        limits = USUAL_STORE_LIMITS._replace(json_share_bytes=1_000)
        matcher: Matcher[int] = matcher_over(new_store(schema=Schema.of(declared), limits=limits))
        matcher.add_many(range(4), ["a >= 0.1", "b LIKE '%€%'", "c <> 3", '"x y" IS NULL OR ä'])
        wrong: list[EventError] = []
        pairs = matcher.match_json_batch(data, threads, wrong=wrong).to_pydict()
        matches = sorted(zip(pairs["event"], pairs["subscription"], strict=True))
        answers.append((matches, [(error.row, str(error)) for error in wrong], matcher.stats()["mismatched"]))
    assert answers[0] == answers[1]
    assert min(map(len, answers[0][:2])) > 10


def test_a_schema_checks_lines() -> None:
    matcher = Matcher[str](schema={"a": "number", "b": "string"})
    matcher.add("five", "a = 5")
    wrong: list[EventError] = []
    found = matcher.match_json_batch(b'{"a": 5}\n{"a": "x"}\n{"b": 1, "a": 5}\n{"a": 5, "b": "x"}', wrong=wrong)
    assert found["event"].to_pylist() == [0, 3]
    with pytest.raises(EventError) as caught:
        matcher.match_batch(pa.table({"a": ["x"]}))
    assert [(error.row, error.attribute) for error in wrong] == [(1, "a"), (2, "b")]
    assert wrong[0].reason == caught.value.reason


def test_a_history_retains_right_lines() -> None:
    matcher = Matcher[str](history=History(rows=5))
    matcher.add("higher", "a > ALL (SELECT a FROM history)")
    wrong: list[EventError] = []
    lines = b'{"a": 5}\n{"a": 4}\n{"a": 9, "a": 9}\n{"a": 6}\n{'
    assert matcher.match_json_batch(lines, wrong=wrong)["event"].to_pylist() == [0, 3]
    assert [error.row for error in wrong] == [2, 4]
    assert matcher.match_json('{"a": 6}') == []
    assert matcher.match_json('{"a": 7}') == ["higher"]


def test_room_grows_with_values() -> None:
    """A line with far more values than bytes would suggest."""
    matcher = Matcher[str]()
    matcher.add("last", "a = 1999")
    many = ",".join(map(str, range(2000)))
    lines = [f'{{"a":[{many}]}}', '{"a":[' + ",".join("1" * 5000) + "]}", f'{{"a":[{many}]}}'] * 3
    assert matcher.match_json_batch(lines)["event"].to_pylist() == [0, 2, 3, 5, 6, 8]


def test_the_root_has_the_error() -> None:
    assert issubclass(tamis.WrongEventsError, EventError)
