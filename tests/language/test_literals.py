"""Numbers, dates and timestamps as they are written in SQL."""

from __future__ import annotations

import math
from datetime import date, datetime

import pytest

from tamis.errors import LiteralError
from tamis.language.literals import is_number, read_date, read_decimal, read_integer, read_timestamp
from tamis.language.values import INT64_MAX, INT64_MIN


@pytest.mark.parametrize("text", ["0", "5", "007", "1.5", "5.", ".5", "1e5", "1E5", "1.5e-3", "1.e+5", ".5e3"])
def test_numbers(text: str) -> None:
    assert is_number(text)


@pytest.mark.parametrize(
    "text", ["", ".", "e5", "1e", "1e+", "1.5.2", "..5", "1_000", "0x1f", "-5", "+5", "٣", "5 ", "nan", "inf"]
)
def test_texts_that_are_not_numbers(text: str) -> None:
    assert not is_number(text)


def test_integers_up_to_64_bits() -> None:
    assert read_integer("9223372036854775807") == INT64_MAX
    assert read_integer("9223372036854775808", negative=True) == INT64_MIN
    assert read_integer("0" * 5000 + "7") == 7


@pytest.mark.parametrize(
    ("text", "negative"),
    [("9223372036854775808", False), ("9223372036854775809", True), ("9" * 20, False), ("9" * 9999, True)],
)
def test_integers_beyond_64_bits(text: str, negative: bool) -> None:
    with pytest.raises(LiteralError, match="beyond 64 bits"):
        read_integer(text, negative=negative)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.1", 0.1), ("5.", 5.0), ("1e22", 1e22), ("1e-999", 0.0), ("1.7976931348623157e308", 1.7976931348623157e308)],
)
def test_decimals_are_the_nearest_double(text: str, value: float) -> None:
    assert read_decimal(text) == value
    assert type(read_decimal(text)) is float
    assert read_decimal(text, negative=True) == -value


def test_zero_keeps_its_sign() -> None:
    assert math.copysign(1, read_decimal("0.0", negative=True)) == -1


def test_decimals_beyond_doubles() -> None:
    with pytest.raises(LiteralError, match="beyond the largest double"):
        read_decimal("1e999")


def test_date() -> None:
    assert read_date("2026-11-14") == date(2026, 11, 14)
    assert type(read_date("2026-11-14")) is date


@pytest.mark.parametrize(
    "text",
    ["", "2026-11", "2026-1-4", "20261114", "2026-W46-6", "2026-11-14 10:00", " 2026-11-14", "٢٠٢٦-11-14", "x" * 99],
)
def test_dates_are_written_in_full(text: str) -> None:
    with pytest.raises(LiteralError, match="DATE cannot read"):
        read_date(text)


@pytest.mark.parametrize("text", ["2026-02-30", "2026-13-01", "0000-01-01"])
def test_impossible_days(text: str) -> None:
    with pytest.raises(LiteralError, match="no such day"):
        read_date(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-14 10:00:00", datetime(2026, 11, 14, 10)),
        ("2026-11-14T10:00:00", datetime(2026, 11, 14, 10)),
        ("2026-11-14 10:30", datetime(2026, 11, 14, 10, 30)),
        ("2026-11-14", datetime(2026, 11, 14)),
        ("2026-11-14 10:00:00.5", datetime(2026, 11, 14, 10, 0, 0, 500_000)),
        ("2026-11-14 10:00:00.123456", datetime(2026, 11, 14, 10, 0, 0, 123_456)),
        ("2026-11-14 10:00:00Z", datetime(2026, 11, 14, 10)),
        ("2026-11-14 10:00:00 UTC", datetime(2026, 11, 14, 10)),
        ("2026-11-14 00:30:00+01:00", datetime(2026, 11, 13, 23, 30)),
        ("2026-11-14 10:00:00-0530", datetime(2026, 11, 14, 15, 30)),
        ("2026-11-14 10:00:00 +01", datetime(2026, 11, 14, 9)),
    ],
)
def test_timestamps_are_naive_and_in_utc(text: str, moment: datetime) -> None:
    assert read_timestamp(text) == moment
    assert read_timestamp(text).tzinfo is None


@pytest.mark.parametrize(
    "text", ["", "10:00", "2026-11-14 10", "2026-11-14 10:00:00.1234567", "2026-11-14 10:00 CET", "1763114400"]
)
def test_timestamps_are_written_in_full(text: str) -> None:
    with pytest.raises(LiteralError, match="TIMESTAMP cannot read"):
        read_timestamp(text)


@pytest.mark.parametrize(
    "text",
    ["2026-02-30 10:00", "2026-11-14 24:00", "2026-11-14 10:00:60", "0001-01-01 00:00+01:00", "9999-12-31 23:59-01:00"],
)
def test_impossible_moments(text: str) -> None:
    with pytest.raises(LiteralError, match="no such moment"):
        read_timestamp(text)
