"""What a field of CSV says: its text, and the number, boolean or moment that it may be."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tamis.cli.csv_values import reader_of, readings
from tamis.cli.lines import LineError
from tamis.language.schema import Schema


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12), ("-7", -7), ("+7", 7), ("0", 0), ("1.50", 1.5), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), (" 12 ", 12),
        ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)), ("9223372036854775808", 2.0**63),
        ("true", True), ("FALSE", False), ("2026-11-14", datetime(2026, 11, 14)),
        ("2026-11-14T10:00:00+01:00", datetime(2026, 11, 14, 9)),
    ],
)  # fmt: skip
def test_two_readings(text: str, value: Any) -> None:
    found = readings(text)
    assert found == [value, text]
    assert type(found[0]) is type(value)


@pytest.mark.parametrize(
    "text", ["Emma", "01234", "12a", "1,5", "NaN", "inf", "1e999", "t", "yes", "-", " ", "2026-13-01", "1_000", "٣"]
)
def test_only_text(text: str) -> None:
    assert readings(text) == text


def test_an_empty_field_is_missing() -> None:
    assert readings("") is None


SCHEMA = Schema({"n": "number", "s": "string", "b": "boolean", "t": "timestamp", "l": "list<number>"})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("n", "12", 12), ("s", "12", "12"), ("b", "True", True), ("t", "2026-11-14", datetime(2026, 11, 14)),
        ("l", "3", 3), ("n", "", None), ("other", "12", [12, "12"]),
    ],
)  # fmt: skip
def test_a_schema_decides(name: str, text: str, value: Any) -> None:
    assert reader_of(name, SCHEMA)(text) == value


@pytest.mark.parametrize(("name", "text"), [("n", "x"), ("b", "1"), ("t", "12")])
def test_a_field_of_another_kind(name: str, text: str) -> None:
    with pytest.raises(LineError, match=f"attribute '{name}': '{text}' is not a .*, but the schema declares a "):
        reader_of(name, SCHEMA)(text)
