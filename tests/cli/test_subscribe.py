"""`tamis subscribe`: one subscription, or those of a file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.broker_running import events_of, failure, lines, listed, publish, records
from tests.cli.running import run, write, write_jsonl

LATER = "2999-01-01"


def test_subscribe_makes_the_folder_and_list_prints_what_is_there(tmp_path: Path) -> None:
    alerts = tmp_path / "new" / "alerts"
    words = ["--weight", "2", "--valid-until", "2999-12-24T18:00+01:00"]
    assert run("subscribe", alerts, "ann", "crime", "price < 20 AND genre = 'crime'", *words).output == ""
    assert records("subscribe", alerts, "--list") == [
        {
            "subscriber": "ann",
            "name": "crime",
            "expression": "price < 20 AND genre = 'crime'",
            "weight": 2.0,
            "valid_from": None,
            "valid_until": "2999-12-24T17:00:00Z",
            "paused": False,
        }
    ]


def test_what_is_not_given_stays(alerts: Path) -> None:
    run("subscribe", alerts, "ann", "cheap", "--weight", "3", "--valid-from", "2020-01-01", "--valid-until", LATER)
    run("subscribe", alerts, "ann", "cheap", "price < 5")
    run("subscribe", alerts, "ann", "cheap", "--valid-until", "none")
    found = listed(alerts)["ann", "cheap"]
    assert (found.text, found.weight, found.valid_until) == ("price < 5", 3.0, None)
    assert found.valid_from.replace(tzinfo=None) == datetime(2020, 1, 1)


def test_an_expression_in_the_json_form(alerts: Path) -> None:
    run("subscribe", alerts, "ann", "old", '[["year", "<", 1900]]')
    assert listed(alerts)["ann", "old"].text == "year < 1900"


def test_pause_resume_and_remove(alerts: Path) -> None:
    run("subscribe", alerts, "ann", "cheap", "--pause")
    assert records("subscribe", alerts, "--list", "ann", "cheap")[0]["paused"]
    publish(alerts, {"price": 1})
    run("subscribe", alerts, "ann", "cheap", "--resume")
    publish(alerts, {"price": 2})
    run("subscribe", alerts, "ann", "cheap", "--remove")
    publish(alerts, {"price": 3})
    assert events_of(alerts) == [{"price": 2}]
    assert records("subscribe", alerts, "--list", "ann") == []
    run("subscribe", alerts, "ann", "--remove-subscriber")
    assert failure("subscribe", alerts, "--list", "ann") == "Error: no subscriber 'ann'"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Give SUBSCRIBER and NAME."),
        (["ann"], "Give SUBSCRIBER and NAME."),
        (["ann", "cheap"], "Give EXPRESSION, or an option that says what to do."),
        (["ann", "cheap", "price < 1", "more"], "'more' is one argument too many."),
        (["ann", "--pause"], "Give SUBSCRIBER and NAME with --pause."),
        (["ann", "cheap", "--remove-subscriber"], "'cheap' is one argument too many with --remove-subscriber."),
        (["ann", "cheap", "--pause", "--resume"], "Give --pause or --resume, not both."),
        (
            ["ann", "cheap", "--pause", "--weight", "1"],
            "--weight, --valid-from and --valid-until do not go with --pause.",
        ),
        (["ann", "cheap", "price < 1", "--format", "csv"], "--format and --errors are about --file."),
        (["--file", "a", "--errors", "a"], "bad lines need a file of their own"),
        (["ann", "cheap", "--valid-until", "soon"], "'soon' is not a moment. Hint: 2026-12-24"),
    ],
)
def test_wrong_command_lines_of_subscribe(alerts: Path, words: list[str], message: str) -> None:
    assert message in failure("subscribe", alerts, *words, status=2)


def test_wrong_subscriptions(alerts: Path) -> None:
    assert failure("subscribe", alerts, "ann", "new", "--weight", "2") == "Error: no subscription ('ann', 'new')"
    assert failure("subscribe", alerts, "ann", "new", "price <").startswith(
        "Error: an attribute or a literal is missing"
    )
    assert failure("subscribe", alerts, "ann", "new", "[1").startswith("Error: not JSON")
    assert failure("subscribe", alerts, "ann", "old", "--list") == "Error: no subscription ('ann', 'old')"
    assert failure("subscribe", alerts, "ann", "new", "a = 1", "--weight", "nan").startswith("Error: a weight must be")


def test_no_folder_is_made_for_a_subscription_that_is_not_there(tmp_path: Path) -> None:
    for words in (["--pause"], ["--weight", "2"]):
        message = failure("subscribe", tmp_path / "typo", "ann", "cheap", *words)
        assert message.endswith("has no broker. Hint: check the name; `tamis subscribe` makes a broker")
    assert not (tmp_path / "typo").exists()
    assert "needs a folder" in failure("subscribe", ":memory:", "ann", "cheap", "a = 1")


# -- files of subscriptions


WISHES = [
    {"subscriber": "ann", "name": "cheap", "weight": 4},
    {"subscriber": "ben", "name": "old", "predicates": [["year", "<", 1900]], "valid_until": LATER},
    {"subscriber": "ben", "name": "crime", "expression": "genre = 'crime'", "valid_from": None, "paused": False},
]


def check_wishes(alerts: Path) -> None:
    found = listed(alerts)
    assert [(*names, each.text, each.weight) for names, each in found.items()] == [
        ("ann", "cheap", "price < 20", 4.0),
        ("ben", "old", "year < 1900", 1.0),
        ("ben", "crime", "genre = 'crime'", 1.0),
    ]
    assert found["ben", "old"].valid_until.replace(tzinfo=None) == datetime(2999, 1, 1)


def test_a_jsonl_file_of_subscriptions(alerts: Path, tmp_path: Path) -> None:
    result = run("subscribe", alerts, "--file", write_jsonl(tmp_path / "wishes.jsonl", WISHES))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("3 subscriptions in ")
    check_wishes(alerts)


def test_a_csv_file_of_subscriptions(alerts: Path, tmp_path: Path) -> None:
    wishes = write(
        tmp_path / "wishes.csv",
        "subscriber,name,expression,weight,valid_until",
        "ann,cheap,,4,",
        f"ben,old,year < 1900,,{LATER}",
        "ben,crime,genre = 'crime',,none",
    )
    assert run("subscribe", alerts, "--file", wishes, "--quiet").output == ""
    check_wishes(alerts)


@pytest.mark.parametrize("form", ["expression", "predicates"])
def test_a_parquet_file_of_subscriptions(alerts: Path, tmp_path: Path, form: str) -> None:
    predicate = pa.struct([("attribute", pa.string()), ("operator", pa.string()), ("values", pa.list_(pa.int64()))])
    old: Any = "year < 1900"
    kind = pa.string()
    if form == "predicates":
        old, kind = [{"attribute": "year", "operator": "<", "values": [1900]}], pa.list_(predicate)
    table = pa.table(
        {
            "subscriber": ["ann", "ben"],
            "name": ["cheap", "old"],
            form: pa.array([None, old], kind),
            "weight": [4.0, None],
            "valid_until": pa.array([None, datetime(2999, 1, 1)], pa.timestamp("us")),
        }
    )
    pq.write_table(table, tmp_path / "wishes.parquet")
    assert run("subscribe", alerts, "--file", tmp_path / "wishes.parquet", "-q").output == ""
    run("subscribe", alerts, "ben", "crime", "genre = 'crime'")
    check_wishes(alerts)


def test_the_list_of_one_broker_is_a_file_for_another(alerts: Path, tmp_path: Path) -> None:
    run("subscribe", alerts, "--file", write_jsonl(tmp_path / "wishes.jsonl", WISHES))
    printed = run("subscribe", alerts, "--list").stdout
    assert run("subscribe", tmp_path / "other", "--file", "-", stdin=printed).exit_code == 0
    assert run("subscribe", tmp_path / "other", "--list").stdout == printed


BAD_WISHES = {
    '{"subscriber": "ann"}': "a subscription needs 'name'; it has: subscriber",
    '{"subscriber": "ann", "name": ""}': "the name of a subscription must be a string with at least one character",
    '{"subscriber": 7, "name": "x0", "expression": "a = 1"}': "the name of a subscriber must be a str",
    '{"subscriber": "ann", "name": "x1", "expression": "a ="}': "an attribute or a literal is missing",
    '{"subscriber": "ann", "name": "x2", "weight": 1}': "no subscription ('ann', 'x2')",
    '{"subscriber": "ann", "name": "x3", "expression": 5}': "expression must be a text or a list of predicates, not 5",
    '{"subscriber": "ann", "name": "x4", "predicates": "a = 1"}': "predicates must be a list of predicates",
    '{"subscriber": "ann", "name": "x5", "expression": "a = 1", "predicates": []}': "two forms of the same",
    '{"subscriber": "ann", "name": "x6", "expression": "a = 1", "weight": "2"}': "a weight must be a finite number",
    '{"subscriber": "ann", "name": "x7", "valid_untill": null}': "unknown key 'valid_untill'; did you mean 'valid_until'?",
    '{"subscriber": "ann", "name": "x8", "expression": "a = 1", "valid_until": "soon"}': "valid_until: 'soon' is not a",
    '{"subscriber": "ann", "name": "x9", "expression": "a = 1", "valid_until": 5}': "valid_until must be a moment",
    '{"subscriber": "ann", "name": "x10", "expression": "a = 1", "paused": true}': "cannot be added as paused",
    '{"subscriber": "ann", "name": "x11", "expression": "a < ALL (SELECT a FROM history)"}': "earlier events",
    '{"subscriber": "ann", "name": "first"}': "line 1 already has a subscription 'first' of 'ann'",
    "oops": "not JSON",
    "[]": "a subscription must be a JSON object, not a list",
}


def test_bad_lines_of_subscriptions_are_skipped(alerts: Path, tmp_path: Path) -> None:
    first = '{"subscriber": "ann", "name": "first", "expression": "a = 1"}'
    last = '{"subscriber": "ann", "name": "last", "expression": "a = 2"}'
    wishes = write(tmp_path / "wishes.jsonl", first, *BAD_WISHES, "", last)
    result = run("subscribe", alerts, "--file", wishes, "--on-error", "skip", "--errors", tmp_path / "bad.jsonl")
    assert result.exit_code == 3
    assert result.stderr.splitlines()[-1].endswith(f"; {len(BAD_WISHES)} bad lines skipped")
    bad = lines((tmp_path / "bad.jsonl").read_text())
    assert [each["line"] for each in bad] == list(range(2, 2 + len(BAD_WISHES)))
    for found, (line, message) in zip(bad, BAD_WISHES.items(), strict=True):
        assert message in found["message"], line
    assert {name for _, name in listed(alerts)} == {"cheap", "first", "last"}


@pytest.mark.parametrize("bad", ["oops", '{"subscriber": "ann", "name": "b", "expression": "a ="}'])
def test_a_bad_line_of_subscriptions_stops_the_work(alerts: Path, bad: str) -> None:
    good = [f'{{"subscriber": "ann", "name": "{name}", "expression": "a = 1"}}' for name in "acde"]
    result = run("subscribe", alerts, "--file", "-", stdin="\n".join([good[0], good[1], bad, *good[2:]]))
    assert result.exit_code == 1
    message, *_, stopped = result.stderr.splitlines()
    assert message.startswith("stdin:3: ")
    assert stopped == "stopped: 2 subscriptions stored"
    assert {name for _, name in listed(alerts)} == {"cheap", "a", "c"}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("name,expression", "1: the column 'subscriber' is missing; it has: name, expression"),
        ("subscriber,name,wait", "1: unknown column 'wait'"),
        ("subscriber,name,name", "1: two columns are called 'name'. Hint: rename one of them"),
        ("", "1: the column 'subscriber' is missing; it has: no column"),
    ],
)
def test_wrong_headers(alerts: Path, tmp_path: Path, header: str, message: str) -> None:
    assert message in failure("subscribe", alerts, "--file", write(tmp_path / "w.csv", header), "-q")


LOWEST = "price < ALL (SELECT price FROM history)"


def test_a_history_is_given_once(tmp_path: Path) -> None:
    prices, options = tmp_path / "prices", ["--history-age", "2h", "--history-order", "at", "--history-key", "sku"]
    refused = failure("subscribe", prices, "ann", "lowest", LOWEST)
    assert "Hint: --history-rows makes it keep them" in refused
    assert run("subscribe", prices, "ann", "lowest", LOWEST, *options).output == ""
    run("subscribe", prices, "ann", "again", "price = ANY (SELECT price FROM history)", *options)
    for price in (3, 4, 2):
        publish(prices, {"sku": "a", "price": price, "at": datetime(2026, 1, 1)})
    assert [event["price"] for event in events_of(prices)] == [3, 2]
    other = failure("subscribe", prices, "ann", "more", LOWEST, "--history-rows", "3")
    assert "has the history" in other
    assert "Hint: leave out the options of the history" in other


def test_a_history_for_the_subscriptions_of_a_file(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "wishes.jsonl", [{"subscriber": "ann", "name": "lowest", "expression": LOWEST}])
    run("subscribe", tmp_path / "prices", "--file", path, "--history-rows", "5", "--quiet")
    assert listed(tmp_path / "prices")["ann", "lowest"].text == LOWEST


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--history-key", "sku"], "needs --history-rows or --history-age"),
        (["--history-age", "2h"], "needs --history-order"),
        (["--history-age", "soon", "--history-order", "at"], "is not an age such as 90s"),
        (["--history-age", "9999999999999d", "--history-order", "at"], "is too long"),
        (["--history-age", "0", "--history-order", "at"], "above 0"),
        (["--history-rows", "0"], "x>=1"),
    ],
)
def test_wrong_options_of_a_history(tmp_path: Path, options: list[str], message: str) -> None:
    result = run("subscribe", tmp_path / "prices", "ann", "lowest", LOWEST, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "prices").exists()


def test_a_history_goes_with_an_expression(alerts: Path) -> None:
    for words in (["ann", "cheap", "--pause"], ["--list"], ["ann", "cheap", "--weight", "2"]):
        result = run("subscribe", alerts, *words, "--history-rows", "5")
        assert (result.exit_code, "go with EXPRESSION or --file" in result.stderr) == (2, True)
