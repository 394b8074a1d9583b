"""Sigma rules on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tamis.errors import FrameError, OptionError
from tamis.sigma.on_spark import match, usable
from tests.sigma.reading import read, rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORRELATION = """
title: many
correlation: {type: event_count, rules: [plain], group-by: [u], timespan: 1m, condition: {gte: 5}}
"""
PLAIN = rule(
    "selection: {Image|endswith: cmd.exe}",
    title="plain",
    more="name: plain\nlevel: high\ntags: [attack.t1]\nlogsource: {product: windows}",
)
NOT = rule("selection: {Image: '*'}\nfilter: {User: bob}", title="not", condition="selection and not filter")


def test_matches_have_what_the_rules_say(spark: SparkSession, tmp_path: Path) -> None:
    rules = read(tmp_path, PLAIN, NOT, log_sources="match")
    source = "named_struct('product', 'windows') AS logsource"
    events = spark.sql(
        f"SELECT 7 AS id, 'C:/CMD.exe' AS Image, 'Bob' AS User, {source} UNION ALL SELECT 8, 'cmd.exe', NULL, NULL"
    )
    found = match(events, rules, keep=["User"])
    assert found.columns == ["id", "rule", "User", "title", "level", "tags"]
    assert [tuple(row) for row in found.collect()] == [(7, "plain", "Bob", "plain", "high", ["attack.t1"])]
    anywhere = match(events, read(tmp_path, PLAIN, NOT))
    assert sorted((row.id, row.title) for row in anywhere.collect()) == [(7, "plain"), (8, "not"), (8, "plain")]


def test_attributes_are_computed(spark: SparkSession, tmp_path: Path) -> None:
    rules = read(
        tmp_path,
        rule("selection: [foo, 12]", title="words"),
        rule("selection: {at|hour: 3}", title="night"),
        rule("selection: {a|fieldref: b.c}", title="same"),
    )
    events = spark.sql(
        "SELECT 1 AS id, 'a Foo' AS text, '2026-11-14T03:05:00Z' AS at, 'x' AS a, named_struct('c', 'X') AS b "
        "UNION ALL SELECT 2, 'b', '2026-11-14T04:05:00Z', 'x', named_struct('c', 'y') "
        "UNION ALL SELECT 3, NULL, NULL, NULL, NULL"
    )
    found = match(events, rules)
    assert sorted((row.id, row.title) for row in found.collect()) == [(1, "night"), (1, "same"), (1, "words")]
    with pytest.raises(FrameError, match="events have a column 'sigma', but it is computed"):
        match(spark.sql("SELECT 1 AS id, 2 AS sigma"), rules)
    with pytest.raises(FrameError, match="only from events whose attributes are columns"):
        match(spark.sql("SELECT 1 AS id, map('a', 'x') AS event"), rules)


def test_correlations_are_left_out(tmp_path: Path) -> None:
    found, left_out = usable(read(tmp_path, PLAIN, CORRELATION))
    assert found == []
    assert str(left_out[0]).endswith("'many': correlations are not supported on Spark")


def test_wrong_arguments(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(FrameError, match="events must be a DataFrame of Spark"):
        match([{"id": 1}], read(tmp_path, PLAIN))
    with pytest.raises(OptionError, match="no rule can be used on Spark: 1 are left out"):
        match(spark.range(1), read(tmp_path, PLAIN, CORRELATION))
