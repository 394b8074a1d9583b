"""Where SQL engines differ from each other or surprise: what we do, and that the engines do otherwise.

One section for each row of the table in the description of the language, in its order. An engine is asked in words that
DuckDB and Spark have in common, wherever they have some.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import tamis
from tamis.language.engine_sql import to_sql
from tamis.language.evaluate import evaluate
from tamis.language.expression import Predicate
from tamis.language.operators import NULL_TESTS, RANGES, Operator
from tamis.language.parser import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNKNOWN = None
NAN = float("nan")
EXACT = 2**53
Ask = Callable[[str], Any]
"""The value of an SQL expression."""


def truth(text: str, value: Any) -> bool | None:
    """Of a predicate on attribute `a` for the event {"a": value}; the matcher must say the same."""
    event = {"a": value}
    found = evaluate(parse(text), event)
    matcher = tamis.Matcher()
    matcher.add("it", text)
    assert matcher.match(event) == (["it"] if found else [])
    return found


@pytest.fixture
def duck() -> Iterator[Ask]:
    with duckdb.connect() as connection:
        yield lambda text: connection.execute(f"SELECT {text}").fetchall()[0][0]


@pytest.fixture
def spark_sql(spark: SparkSession) -> Ask:
    return lambda text: spark.sql(f"SELECT {text}").collect()[0][0]


@pytest.fixture(params=["duck", pytest.param("spark_sql", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Ask:
    """DuckDB, then Spark."""
    ask: Ask = request.getfixturevalue(request.param)
    return ask


# NaN


def test_nan_is_missing() -> None:
    assert truth("a IS NULL", NAN) is True
    for text in ["a = 1", "a <> 1", "a > 1", "NOT a > 1", "a IN (1)", "a NOT IN (1)", "a BETWEEN 0 AND 2"]:
        assert truth(text, NAN) is UNKNOWN
    assert truth("a <> 1", [NAN, 2]) is True
    with pytest.raises(tamis.LiteralError, match="finite"):
        Predicate("a", "=", [NAN])
    with pytest.raises(tamis.ParseError):
        parse("a = NaN")


def test_nan_is_a_number_to_engines(engine: Ask) -> None:
    assert engine("CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)") is True
    assert engine("CAST('NaN' AS DOUBLE) > CAST('Infinity' AS DOUBLE)") is True


# -0.0 and 0.0


def test_zeros_are_equal(engine: Ask) -> None:
    for text, value in itertools.product(["a = 0.0", "a = -0.0", "a = 0", "a IN (1, -0.0)"], [0.0, -0.0, 0]):
        assert truth(text, value) is True
    assert truth("a < 0.0", -0.0) is False
    assert engine("-0.0e0 = 0.0e0") is True
    assert engine("-0.0e0 < 0.0e0") is False


# int64 against float


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a = 9007199254740992.0", EXACT + 1, False),
        ("a > 9007199254740992.0", EXACT + 1, True),
        ("a = 9007199254740993", float(EXACT), False),
        ("a IN (9007199254740993, 0.5)", EXACT + 1, True),
        ("a IN (9007199254740993, 0.5)", EXACT, False),
        ("a < 9223372036854775807", 2.0**63, False),
        ("a <= 9223372036854775807", 2.0**63, False),
    ],
)
def test_integers_and_floats_are_compared_exactly(text: str, value: float, expected: bool) -> None:
    assert truth(text, value) is expected


def test_engines_round_the_integer(engine: Ask) -> None:
    assert engine("CAST(9007199254740993 AS BIGINT) = CAST(9007199254740992 AS DOUBLE)") is True
    assert engine("CAST(9007199254740992 AS BIGINT) IN (9007199254740993, 0.5e0)") is True


# Decimal literals

LONG = "0.1000000000000000055511151231257827"


def test_a_decimal_literal_is_the_nearest_double() -> None:
    assert truth("a = 0.1", 0.1) is True
    assert truth(f"a = {LONG}", 0.1) is True
    assert truth("a = 0.3", 0.1 + 0.2) is False


@pytest.mark.parametrize("literal", ["9223372036854775808", "-9223372036854775809", "1e400", "-1e400"])
def test_a_literal_out_of_range_is_refused(literal: str) -> None:
    with pytest.raises(tamis.ExpressionError, match="beyond"):
        parse(f"a = {literal}")


def test_a_decimal_literal_is_a_decimal_to_engines(engine: Ask) -> None:
    assert engine("typeof(0.1)").lower().startswith("decimal")
    assert engine(f"0.1 = {LONG}") is False
    assert engine("9223372036854775808 > 0") is True


def test_duckdb_takes_a_float_that_overflows_for_infinity(duck: Ask) -> None:
    assert duck("1e400 = CAST('Infinity' AS DOUBLE)") is True


# Number against string, boolean against number


@pytest.mark.parametrize(
    ("text", "value"), [("a = 5", "5"), ("a = '5'", 5), ("a < 5", "4"), ("a = TRUE", 1), ("a = 1", True), ("a", "true")]
)
def test_another_kind_is_unknown_and_counted(text: str, value: Any) -> None:
    assert truth(text, value) is UNKNOWN
    assert truth(f"NOT ({text})", value) is UNKNOWN
    matcher = tamis.Matcher()
    matcher.add("it", text)
    matcher.match_batch([{"a": value}])
    assert matcher.stats()["mismatched"] == 1


def test_another_kind_is_an_error_with_a_schema() -> None:
    matcher = tamis.Matcher(schema={"a": "number"})
    with pytest.raises(tamis.KindError, match="'a' is a number"):
        matcher.add("it", "a = '5'")
    with pytest.raises(tamis.TamisError, match="number"):
        matcher.match({"a": "5"})


def test_engines_cast_strings_or_fail(engine: Ask) -> None:
    assert engine("'5' = 5") is True
    with pytest.raises(Exception, match=r"(?i)could not convert|cannot be cast"):
        engine("'x' = 5")


def test_engines_do_not_agree_on_a_boolean_against_a_number(duck: Ask, spark_sql: Ask) -> None:
    assert duck("TRUE = 1") is True
    with pytest.raises(Exception, match="DATATYPE_MISMATCH"):
        spark_sql("TRUE = 1")


# Strings


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a < '\U00010000'", "\uffff", True),  # the other way round in UTF-16
        ("a = 'a'", "a ", False),
        ("a = 'a'", "A", False),
        ("a < 'a'", "B", True),
        ("a = '\u00e9'", "e\u0301", False),
    ],
)
def test_strings_are_compared_by_code_point(text: str, value: str, expected: bool, engine: Ask) -> None:
    assert truth(text, value) is expected
    assert engine(text.replace("a ", f"'{value}' ", 1)) is expected


# ILIKE

ASCII_VALUES = ["", "a", "A", "aBc", "ABC", "a%b", "A_B", "b\nA", "[a]", "z"]
ASCII_PATTERNS = ["", "A", "a%", "%C", "%B%", "_", "a_B", "A%b", "[A]", "%\nA"]


def test_engines_agree_on_ilike_of_ascii(engine: Ask) -> None:
    pairs = list(itertools.product(ASCII_VALUES, ASCII_PATTERNS))
    theirs = ", ".join(f"CAST('{value}' ILIKE '{pattern}' AS STRING)" for value, pattern in pairs)
    ours = [evaluate(Predicate("a", "ilike", [pattern]), {"a": value}) for value, pattern in pairs]
    assert engine(f"concat_ws(' ', {theirs})") == " ".join(str(truth).lower() for truth in ours)


@pytest.mark.parametrize(("pattern", "value"), [("i\u0307", "İ"), ("ας", "ΑΣ")])
def test_ilike_lowers_both_sides(pattern: str, value: str, duck: Ask) -> None:
    assert truth(f"a ILIKE '{pattern}'", value) is True
    assert duck(f"'{value}' ILIKE '{pattern}'") is False


# LIKE


@pytest.mark.parametrize(
    ("pattern", "value", "expected"), [("x\\%", "x%", False), ("x\\%", "x\\yz", True), ("\\_", "\\z", True)]
)
def test_a_backslash_in_like_is_a_backslash(
    pattern: str, value: str, expected: bool, duck: Ask, spark_sql: Ask
) -> None:
    assert truth(f"a LIKE '{pattern}'", value) is expected
    assert duck(f"'{value}' LIKE '{pattern}'") is expected
    # In Spark it is the escape, and to be doubled in a string literal.
    value, pattern = value.replace("\\", "\\\\"), pattern.replace("\\", "\\\\")
    assert spark_sql(f"'{value}' LIKE '{pattern}'") is not expected


def test_the_text_for_spark_means_what_ours_means(spark: SparkSession) -> None:
    expression = parse("a LIKE 'x\\%'")
    for value in ["x%", "x\\yz"]:
        frame = spark.createDataFrame([(value,)], ["a"])
        assert frame.where(to_sql(expression, "spark")).count() == bool(evaluate(expression, {"a": value}))


@pytest.mark.parametrize(("pattern", "value"), [("a!%", "a%"), ("a!%", "ab"), ("!_!!%", "_!x"), ("%!_", "a_")])
def test_engines_agree_on_an_escape_that_is_written(pattern: str, value: str, engine: Ask) -> None:
    ours = truth(f"a LIKE '{pattern}' ESCAPE '!'", value)
    assert engine(f"'{value}' LIKE '{pattern}' ESCAPE '!'") is ours


# RLIKE


def test_rlike_finds_anywhere(duck: Ask, spark_sql: Ask) -> None:
    assert truth("a RLIKE 'b+'", "abbc") is True
    assert spark_sql("'abbc' RLIKE 'b+'") is True
    assert duck("regexp_matches('abbc', 'b+')") is True
    assert duck("'abbc' SIMILAR TO 'b+'") is False


@pytest.mark.parametrize("pattern", ["a(?=b)", "(?<=a)b", "(a)\\1"])
def test_patterns_that_are_not_regular_are_refused(pattern: str, duck: Ask, spark_sql: Ask) -> None:
    with pytest.raises(tamis.ExpressionError, match="RE2"):
        parse(f"a RLIKE '{pattern}'")
    with pytest.raises(duckdb.Error):
        duck(f"regexp_matches('aab', '{pattern}')")
    doubled = pattern.replace("\\", "\\\\")
    assert spark_sql(f"'aab' RLIKE '{doubled}'") is True


def test_the_end_of_the_text_is_before_a_last_line_break_only_in_java(duck: Ask, spark_sql: Ask) -> None:
    assert truth("a RLIKE 'b$'", "b\n") is False
    assert duck("regexp_matches('b\n', 'b$')") is False
    assert spark_sql("'b\n' RLIKE 'b$'") is True


# IN with NULL in the list


@pytest.mark.parametrize("text", ["a IN (1, NULL)", "a NOT IN (1, NULL)", "a IN (NULL)"])
def test_null_in_a_list_is_refused(text: str) -> None:
    with pytest.raises(tamis.ExpressionError, match="NULL"):
        parse(text)
    with pytest.raises(tamis.LiteralError, match="NULL"):
        Predicate("a", "in", [1, None])


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(tamis.ExpressionError):
        parse("a IN ()")
    with pytest.raises(tamis.ExpressionError, match="at least one"):
        Predicate("a", "in", [])


def test_null_in_a_list_surprises_in_engines(engine: Ask) -> None:
    assert engine("2 NOT IN (1, NULL)") is UNKNOWN
    assert engine("2 IN (1, NULL)") is UNKNOWN


# DATE against TIMESTAMP

MIDNIGHT = datetime(2026, 11, 14)
ZONE = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    "value",
    [date(2026, 11, 14), MIDNIGHT, MIDNIGHT.replace(tzinfo=UTC), datetime(2026, 11, 14, 2, tzinfo=ZONE)],
)
def test_a_date_is_its_midnight_in_utc(value: date) -> None:
    for literal in ["DATE '2026-11-14'", "TIMESTAMP '2026-11-14 00:00:00'", "TIMESTAMP '2026-11-14 02:00:00+02:00'"]:
        assert truth(f"a = {literal}", value) is True
        assert truth(f"a < {literal}", value) is False
    assert truth("a < TIMESTAMP '2026-11-14 00:00:00.000001'", value) is True


def test_engines_agree_on_midnight(engine: Ask) -> None:
    assert engine("DATE '2026-11-14' = TIMESTAMP '2026-11-14 00:00:00'") is True
    assert engine("DATE '2026-11-14' < TIMESTAMP '2026-11-14 00:00:00.000001'") is True


@pytest.mark.parametrize(("zone", "equal"), [("UTC", True), ("America/New_York", False)])
def test_a_date_depends_on_the_session_in_duckdb(zone: str, equal: bool) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        query = "SELECT TIMESTAMPTZ '2026-11-14 00:00:00+00:00' = DATE '2026-11-14'"
        assert connection.execute(query).fetchall() == [(equal,)]


# a = NULL


@pytest.mark.parametrize("text", ["a = NULL", "a <> NULL", "NULL = a", "a < NULL"])
def test_comparing_with_null_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(tamis.ExpressionError, match="IS NULL"):
        parse(text)


@pytest.mark.parametrize("operator", sorted(set(Operator) - NULL_TESTS))
def test_no_literal_is_null(operator: Operator) -> None:
    count = 2 if operator in RANGES else 1
    with pytest.raises(tamis.LiteralError, match="Hint: use IS NULL"):
        Predicate("a", operator, [None] * count)


def test_comparing_with_null_is_unknown_in_engines(engine: Ask) -> None:
    assert engine("1 = NULL") is UNKNOWN
    assert engine("1 <> NULL") is UNKNOWN
