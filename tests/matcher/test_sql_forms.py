"""Truth tests, functions and networks in matchers: all forms of events, changes, snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.language.evaluate import matches

EVENTS: list[dict[str, Any]] = [
    {"x": 1, "s": "Emma", "ip": "10.1.2.3"},
    {"x": "a", "s": "EMMA", "ip": "localhost"},
    {"x": 2.5, "s": "straße", "ip": "2001:DB8::1"},
    {"s": None, "ip": "::ffff:10.0.0.1"},
    {"x": [1, "a"], "s": ["x", "Emma"], "ip": ["no", "11.0.0.1", "10.0.0.1"]},
    {"x": [], "s": "", "ip": ["no", "neither"]},
    {"x": True, "s": 5, "ip": 5},
    {},
]
EXPRESSIONS = [
    "(x = 1) IS UNKNOWN",
    "(x = 1) IS NOT UNKNOWN",
    "x IS DISTINCT FROM 1",
    "x IS NOT DISTINCT FROM 1",
    "(x = 1 OR s = 'Emma') IS FALSE",
    "(x = 1 AND s = 'Emma') IS UNKNOWN",
    "NOT (x < 2) IS TRUE AND (s LIKE '%m%') IS NOT FALSE",
    "(x IN (1, 'a')) IS NOT TRUE",
    "x IS NOT FALSE",
    "1 = ALL (x)",
    "1 <> ANY (x)",
    "lower(s) = 'emma'",
    "upper(s) IN ('STRASSE', 'X')",
    "upper(s) NOT LIKE '%M%'",
    "contains(upper(s), 'TRASS')",
    "lower(s) LIKE 'e__a' AND upper(s) LIKE '%A'",
    "lower(s) = 'Emma'",
    "ip_in(ip, '10.0.0.0/8')",
    "NOT ip_in(ip, '10.0.0.0/8')",
    "ip_in(ip, '10.0.0.0/16', '2001:db8::/32', '11.0.0.1')",
    "ip_in(ip, '0.0.0.0/0') IS UNKNOWN",
    "ip_in(ip, '::/0') OR x IS DISTINCT FROM 2.5",
]
TRUTH = [[number for number, text in enumerate(EXPRESSIONS) if matches(text, event)] for event in EVENTS]


def filled(**options: Any) -> tamis.Matcher:
    matcher = tamis.Matcher(**options)
    matcher.add_many(range(len(EXPRESSIONS)), EXPRESSIONS)
    return matcher


def pairs(table: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


@pytest.mark.parametrize("index", ["auto", "scan", "counting", "be-tree", "op-index"])
def test_every_event_finds_its_subscriptions(index: str) -> None:
    matcher = filled(index=index)
    assert [sorted(matcher.match(event)) for event in EVENTS] == TRUTH
    assert pairs(matcher.match_batch(EVENTS)) == [(row, number) for row, found in enumerate(TRUTH) for number in found]


def test_one_by_one_and_without_some() -> None:
    matcher = tamis.Matcher()
    for number, text in enumerate(EXPRESSIONS):
        matcher.add(number, text)
    for number in range(0, len(EXPRESSIONS), 3):
        matcher.remove(number)
    assert [sorted(matcher.match(event)) for event in EVENTS] == [[n for n in found if n % 3] for found in TRUTH]


def test_a_snapshot(tmp_path: Path) -> None:
    filled().save(tmp_path / "forms.tamis")
    loaded = tamis.load(tmp_path / "forms.tamis")
    assert [sorted(loaded.match(event)) for event in EVENTS] == TRUTH


def test_columns_of_strings() -> None:
    columns = {"s": ["Emma", "STRASSE", None, "É"] * 300, "ip": ["10.0.0.1", "no", "::1", None] * 300}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    by_table, by_row = filled(), filled()
    assert pairs(by_table.match_batch(pa.table(columns))) == pairs(by_row.match_batch(rows))
    assert by_table.stats()["mismatched"] == by_row.stats()["mismatched"]


def test_strings_that_are_not_addresses_are_counted() -> None:
    for value, count in [("no", 1), (["no", "::1"], 0), (["no", "nor"], 1), (5, 1), (None, 0)]:
        for events in ([{"ip": value}], pa.table({"ip": [value]})):
            matcher = tamis.Matcher()
            matcher.add("inside", "ip_in(ip, '10.0.0.0/8')")
            assert matcher.match_batch(events).num_rows == 0
            assert matcher.stats()["mismatched"] == count


def test_more_networks_than_labels_fit_between() -> None:
    matcher = tamis.Matcher()
    networks = [f"10.{i // 256}.{i % 256}.0/24" for i in range(2000)]
    matcher.add_many(range(2000), [f"ip_in(a, '{network}')" for network in networks])
    matcher.add(2000, "ip_in(a, '10.0.0.0/8')")
    assert sorted(matcher.match({"a": "10.3.7.9"})) == [3 * 256 + 7, 2000]
    assert matcher.match({"a": "11.0.0.0"}) == []


def test_a_table_of_predicates() -> None:
    value = pa.struct({"attribute": pa.string(), "operator": pa.string(), "values": pa.list_(pa.string())})
    rows = [[{"attribute": "ip", "operator": "ip_in", "values": ["10.0.0.0/8", "::1"]}]]
    matcher = tamis.Matcher()
    matcher.add_table(pa.table({"id": [7], "predicates": pa.array(rows, pa.list_(value))}))
    assert matcher.match({"ip": "10.0.0.1"}) == matcher.match({"ip": "::1"}) == [7]
    assert matcher.match({"ip": "::2"}) == []


def test_a_schema() -> None:
    matcher = tamis.Matcher(schema={"ip": "string", "x": "number"})
    matcher.add("a", "ip_in(ip, '10.0.0.0/8') AND ip_in(ip, '10.0.0.1') AND x IS DISTINCT FROM 1")
    assert matcher.match({"ip": "10.0.0.1"}) == ["a"]
    assert matcher.match({"ip": "10.0.0.2"}) == []
    with pytest.raises(tamis.KindError):
        matcher.add("b", "ip_in(x, '10.0.0.0/8')")
