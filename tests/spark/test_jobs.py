"""Workloads, statistics and the pipeline as jobs."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import tamis
import tamis.spark
from tamis.cli.main import main
from tamis.spark.raw_files import read_raw
from tamis.workload import EVENT_BLOCK, generate, preset
from tests.spark.frames import frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("shape", ["dense", "alerts", "detection"])
def test_generated_subscriptions_are_the_same_as_without_spark(spark: SparkSession, shape: str) -> None:
    config = preset(shape, subscriptions=25_000 if shape == "dense" else 500)
    made = tamis.spark.generate_subscriptions(spark, config, partitions=2).toArrow().sort_by("id")
    assert made.to_pydict() == generate(config).subscriptions().to_pydict()


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("other", [True, False])
def test_generated_events_are_the_same_as_without_spark(spark: SparkSession, wide: bool, other: bool) -> None:
    config = preset("dense", subscriptions=100, dimensions=40)
    count = EVENT_BLOCK + 7
    partitions = 1 if wide else 3  # which does not matter
    generated = tamis.spark.generate_events(spark, config, count, wide=wide, other=other, partitions=partitions)
    made = generated.toArrow().sort_by("id")
    workload = generate(config)
    events = workload.other_events(count, wide=wide) if other else workload.events(count, wide=wide)
    assert made["id"].to_pylist() == list(range(count))
    assert made.drop_columns(["id"]).to_pydict() == events.to_pydict()


def test_statistics(spark: SparkSession) -> None:
    rows = [
        (number, number % 4, "x" if number % 5 else None, [1.5, 2.5], datetime(2026, 1, 1 + number % 3))
        for number in range(100)
    ]
    events = spark.createDataFrame(rows, "id int, a int, `b.c` string, d array<double>, e timestamp_ntz")
    found = {row.attribute: row for row in tamis.spark.statistics(events, ["a", "b.c", "d", "e"]).collect()}
    assert set(found) == {"a", "b.c", "d", "e"}
    a, b, d = found["a"], found["b.c"], found["d"]
    assert (a.kind, a.events, a.presence, a.distinct) == ("number", 100, 1.0, 4)
    assert (a.quantiles[0], a.quantiles[10], a.quantiles[-1]) == (0.0, 1.0, 3.0)
    assert [(each.value, each["count"]) for each in a.frequent] == [(str(value), 25) for value in range(4)]
    assert (b.kind, b.events, b.presence, b.quantiles) == ("string", 80, 0.8, None)
    assert (d.events, [each["count"] for each in d.frequent]) == (100, [100, 100])
    assert found["e"].kind == "timestamp"
    assert found["e"].frequent[0].value.startswith("2026-01-01")


def test_statistics_of_maps_and_of_nothing(spark: SparkSession) -> None:
    rows = [(7, {"a": 1, "b": 2}), (8, {"a": 3}), (9, None)]
    events = spark.createDataFrame(rows, "id int, event map<string, int>")
    found = {row.attribute: (row.events, row.presence) for row in tamis.spark.statistics(events).collect()}
    assert found == {"a": (2, 2 / 3), "b": (1, 1 / 3)}
    assert tamis.spark.statistics(events.where("false")).collect() == []


def test_the_subscriptions_of_an_index(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"id": f"s{number}", "expression": "a = 1" if number else "a =", "tag": f"t{number}"} for number in range(6)
    ]
    tamis.spark.build(frame(spark, rows, "id string, expression string, tag string"), tmp_path, shards=2)
    gone = spark.createDataFrame([("removed", "s2")], "change string, id string")
    tamis.spark.update(tmp_path, gone)
    there = tamis.spark.subscriptions(spark, tmp_path)
    assert there.columns == ["id", "expression", "weight", "tag"]
    assert sorted(map(tuple, there.collect())) == [(f"s{each}", "a = 1", 0.0, f"t{each}") for each in (1, 3, 4, 5)]
    assert tamis.spark.subscriptions(spark, tmp_path, version=1).count() == 5
    assert [row.id for row in tamis.spark.rejections(spark, tmp_path, version=1).collect()] == ["s0"]
    assert tamis.spark.rejections(spark, tmp_path).collect() == []


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Raw files: subscriptions as CSV, events as JSON lines. Each file has an error."""
    (tmp_path / "rules.csv").write_text(
        "id,expression,owner\nr1,price < 20,ann\nr2,\"price > 10 AND shop = 'x'\",bob\nr3,price >,cid\nr4,price > 999,dan\n"
    )
    events: list[dict[str, Any]] = [{"id": number, "price": number, "shop": "xy"[number % 2]} for number in range(30)]
    lines = [json.dumps(event) for event in events] + ["{broken"]
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_pipeline(spark: SparkSession, raw: Path) -> None:
    out = raw / "out"
    summary = tamis.spark.run_pipeline(
        spark, raw / "rules.csv", raw / "events.jsonl", out, keep=["price"], carry=["owner"]
    )
    matches = spark.read.parquet(str(out / "matches"))
    assert matches.columns == ["id", "subscription", "price", "owner"]
    expected = {(n, "r1") for n in range(20)} | {(n, "r2") for n in range(12, 30, 2)}
    assert {(row.id, row.subscription) for row in matches.collect()} == expected
    counts = spark.read.parquet(str(out / "counts"))
    assert {tuple(row) for row in counts.collect()} == {("r1", 20, "ann"), ("r2", 9, "bob"), ("r4", 0, "dan")}
    assert [row.id for row in spark.read.parquet(str(out / "rejected")).collect()] == ["r3"]
    (bad,) = spark.read.parquet(str(out / "bad_events")).collect()
    assert (Path(bad.file).name, bad.line, bad.reason) == ("events.jsonl", "{broken", "it is not a JSON object")
    figures = json.loads((out / "summary.json").read_text())
    assert figures == summary.figures
    wanted = {
        "subscriptions": 3,
        "events": 30,
        "matches": 29,
        "rejected subscriptions": 1,
        "bad lines of events": 1,
        "bad lines of subscriptions": 0,
        "subscriptions without a match": 1,
    }
    assert {name: figures[name] for name in wanted} == wanted
    page = (out / "summary.html").read_text()
    assert "<b>29</b><span>matches</span>" in page
    assert summary.sizes == [("none", 1), ("1 to 9", 1), ("10 to 99", 1)]
    with pytest.raises(tamis.FileError, match="the folder has the results of an earlier run"):
        tamis.spark.run_pipeline(spark, raw / "rules.csv", raw / "events.jsonl", out)
    # The same events in another form.
    maps = spark.read.json(str(raw / "events.jsonl")).where("id IS NOT NULL")
    maps.selectExpr("id AS number", "shop", "map('price', price) AS event").write.parquet(str(raw / "maps.parquet"))
    again = tamis.spark.run_pipeline(
        spark, raw / "rules.csv", raw / "maps.parquet", out, event_id="number", keep=["shop"], overwrite=True
    )
    assert again.figures["matches"] == 20
    assert [each["attribute"] for each in again.attributes] == ["price"]


def test_inputs_that_the_pipeline_cannot_read(spark: SparkSession, raw: Path) -> None:
    def refused(message: str, subscriptions: Path, events: Path, **options: Any) -> None:
        with pytest.raises((tamis.FileError, tamis.OptionError, tamis.FrameError), match=message):
            tamis.spark.run_pipeline(spark, subscriptions, events, raw / "out", overwrite=True, **options)

    refused("there is no such file or folder", raw / "none.csv", raw / "events.jsonl")
    (raw / "notes.txt").touch()
    refused(
        "cannot tell its format: the name of notes.txt does not end in one of", raw / "notes.txt", raw / "events.jsonl"
    )
    refused(
        "the format must be one of parquet, json, csv, not 'xml'",
        raw / "rules.csv",
        raw / "events.jsonl",
        event_format="xml",
    )
    refused("events have no column 'uuid'", raw / "rules.csv", raw / "events.jsonl", event_id="uuid")


def test_events_in_a_map_with_a_column_to_keep(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rules.csv").write_text("id,expression\nr1,price < 20\n")
    events = spark.createDataFrame(
        [(1, "x", {"price": 5}), (2, "y", {"price": 50})], "id int, shop string, v map<string, int>"
    )
    events.write.parquet(str(tmp_path / "events.parquet"))
    summary = tamis.spark.run_pipeline(
        spark, tmp_path / "rules.csv", tmp_path / "events.parquet", tmp_path / "out", keep=["shop"]
    )
    assert summary.figures["matches"] == 1
    assert [row["attribute"] for row in summary.attributes] == ["price"]


def test_broken_lines_of_csv(spark: SparkSession, tmp_path: Path) -> None:
    lines = {
        "1,2.5,x,2026-01-01": "",
        '2,3,"y, ""z""",2026-01-02': "",
        "7,,,": "",
        "3,4": "it does not have the 4 fields of the first line: id, price, shop, day",
        "4,5,x,2026-01-03,extra": "it does not have the 4 fields of the first line: id, price, shop, day",
        '5,6,"open,2026-01-01': "a quote is not closed in its line",
        '6,7,x,"open': "a quote is not closed in its line",
    }
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "first.csv").write_text("\ufeffid,price,shop,day\n" + "\n".join(list(lines)[:4]) + "\n\n")
    (folder / "second.csv").write_text("id,price,shop,day\r\n" + "\r\n".join(list(lines)[4:]))
    (folder / "empty.csv").touch()
    read = read_raw(spark, folder)
    day = date(2026, 1, 1)
    assert read.rows.dtypes == [("id", "bigint"), ("price", "double"), ("shop", "string"), ("day", "date")]
    rows = {tuple(row) for row in read.rows.collect()}
    assert rows == {(1, 2.5, "x", day), (2, 3.0, 'y, "z"', day + timedelta(1)), (7, None, None, None)}
    assert read.bad is not None
    bad = read.bad.collect()
    assert {row.line: row.reason for row in bad} == {line: reason for line, reason in lines.items() if reason}
    assert {Path(row.file).name for row in bad} == {"first.csv", "second.csv"}


def test_names_of_digits_quotes_and_packed_files(spark: SparkSession, tmp_path: Path) -> None:
    text = 'id,zip,rule\n007,01234,"a = \'C:\\temp\' AND ""my col"" = 1"\n008,12345,x\n'
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(text.encode()))
    rows = read_raw(spark, tmp_path).rows
    assert [tuple(row) for row in rows.collect()] == [
        ("007", "01234", "a = 'C:\\temp' AND \"my col\" = 1"),
        ("008", "12345", "x"),
    ]
    with pytest.raises(tamis.FileError, match="which Spark reads from any address"):
        read_raw(spark, "s3a://bucket/events/")


def test_results_stay_if_a_file_is_missing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "summary.html").write_text("earlier")
    with pytest.raises(tamis.FileError, match="there is no such file or folder"):
        tamis.spark.run_pipeline(spark, tmp_path / "none", tmp_path / "none", tmp_path, overwrite=True)
    assert (tmp_path / "summary.html").read_text() == "earlier"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"keep": ["nothing"]}, "no column 'nothing'"),
        ({"carry": ["nothing"]}, "no column 'nothing' to carry"),
        ({"time_column": "price"}, "a timestamp or a date"),
        ({"k": 0}, "0"),
    ],
)
def test_results_stay_if_an_option_is_wrong(
    spark: SparkSession, raw: Path, options: dict[str, Any], reason: str
) -> None:
    (raw / "summary.html").write_text("earlier")
    with pytest.raises((tamis.FrameError, tamis.OptionError), match=reason):
        tamis.spark.run_pipeline(
            spark, raw / "rules.csv", raw / "events.jsonl", raw, overwrite=True, event_id="id", **options
        )
    assert (raw / "summary.html").read_text() == "earlier"


def test_folders_within_folders(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would silently read nothing from folders that are not partitions."""
    for day in ("one", "two"):
        (tmp_path / "plain" / day).mkdir(parents=True)
        (tmp_path / "plain" / day / "a.csv").write_text(f"id,day\n1,{day}\n")
        (tmp_path / "parts" / f"day={day}").mkdir(parents=True)
        (tmp_path / "parts" / f"day={day}" / "a.csv").write_text("id,x\n1,2\n")
    read = read_raw(spark, tmp_path / "plain")
    assert sorted(map(tuple, read.rows.collect())) == [(1, "one"), (1, "two")]
    read = read_raw(spark, tmp_path / "parts")
    assert sorted(tuple(row.asDict().items()) for row in read.rows.collect()) == [
        (("id", 1), ("x", 2), ("day", "one")),
        (("id", 1), ("x", 2), ("day", "two")),
    ]
    (tmp_path / "parts" / "others").mkdir()
    (tmp_path / "parts" / "others" / "a.csv").write_text("id,x\n1,2\n")
    with pytest.raises(tamis.FileError, match="such as day=one, and others are not, such as others"):
        read_raw(spark, tmp_path / "parts")


def test_predicates_in_json_of_several_kinds(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would convert the numbers to strings, which are equal to no number."""

    def written(*values: Any) -> Path:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        rows = [
            {"id": f"r{place}", "predicates": [{"attribute": "a", "operator": "=", "values": [value]}]}
            for place, value in enumerate(values)
        ]
        path.write_text("\n".join(map(json.dumps, rows)))
        return path

    assert read_raw(spark, written("x", "y")).rows.count() == 2
    assert read_raw(spark, written(1, 2)).rows.count() == 2
    with pytest.raises(tamis.FileError, match="Hint: use a column `expression`"):
        read_raw(spark, written("x", 2))


def test_infinite_values_and_columns_with_our_names(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out [1]"
    rows = [(1, float("inf")), (2, 1.0), (3, -1.7e308), (4, 1.7e308)]
    spark.createDataFrame(rows, "id int, price double").write.parquet(str(tmp_path / "events.parquet"))
    given = [("a", "price > 0", "x", 5)]
    frame = spark.createDataFrame(given, "id string, expression string, subscription string, matches int")
    frame.write.parquet(str(tmp_path / "rules.parquet"))
    summary = tamis.spark.run_pipeline(spark, tmp_path / "rules.parquet", tmp_path / "events.parquet", out)
    assert summary.most == [("a", 3)]
    assert "price" in (out / "summary.html").read_text()


def test_text_among_numbers(spark: SparkSession, tmp_path: Path) -> None:
    """Without a schema, the column is text, and a message says so. With a schema, the line is bad."""
    rules, out = tmp_path / "rules.csv", tmp_path / "out"
    rules.write_text("id,expression\nr1,price < 20\nr2,\"price > 1\nr3,shop = 'x'\n")
    events = tmp_path / "events.csv"
    events.write_text("id,price\n1,2.5\n2,cheap\n3,1e1\n")
    summary = tamis.spark.run_pipeline(spark, rules, events, out)
    assert [note.partition(".")[0] for note in summary.notes] == [
        "Of 3 values of 'price', only 2 are numbers, so all of them are read as text"
    ]
    assert summary.notes[0].partition(".")[0].replace("'", "&#x27;") in (out / "summary.html").read_text()
    assert (summary.figures["matches"], summary.figures["bad lines of subscriptions"]) == (0, 1)
    assert [row.line for row in spark.read.parquet(str(out / "bad_subscriptions")).collect()] == ['r2,"price > 1']
    declared = read_raw(spark, events, schema="id long, price double")
    assert {tuple(row) for row in declared.rows.collect()} == {(1, 2.5), (3, 10.0)}
    assert declared.bad is not None
    assert [(row.line, row.reason) for row in declared.bad.collect()] == [
        ("2,cheap", "price must be double, not cheap")
    ]
    lines = tmp_path / "events.jsonl"
    lines.write_text('{"id": 1, "price": 2}\n{"id": 2, "price": "cheap"}\n7\n')
    declared = read_raw(spark, lines, schema="id long, price double")
    assert [tuple(row) for row in declared.rows.collect()] == [(1, 2.0)]
    assert declared.bad is not None
    assert {row.line for row in declared.bad.collect()} == {'{"id": 2, "price": "cheap"}', "7"}


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({"a.csv": ""}, {}, r"a\.csv: is empty\. Hint: write the names of the columns into the first line"),
        ({"a.jsonl": ""}, {}, r"a\.jsonl: is empty\. Hint: write one JSON object per line"),
        ({"a.jsonl": "{broken\n"}, {}, r"a\.jsonl: none of its lines is JSON"),
        ({"a.parquet": "PAR1 and no more"}, {}, r"a\.parquet: is not a Parquet file, or is cut off"),
        ({"a.csv": "id,id\n1,2\n"}, {}, r"a\.csv:1: two columns have the same name: 'id,id'"),
        ({"a.csv": "id,\n1,2\n"}, {}, r"a\.csv:1: a column has no name"),
        ({"a.csv": "id,a\n"}, {"schema": "id long, b long"}, "its columns are id, a, but the schema has id, b"),
        ({"a.csv": "id,a\n"}, {"schema": "id lung"}, "the schema 'id lung' cannot be read"),
        ({"a.csv.gz": "id,a\n"}, {"form": "csv"}, r"a\.csv\.gz: cannot be read"),
        ({"a.csv": "id\n", "b.jsonl": "{}\n"}, {}, r"several formats: .*b\.jsonl is json"),
        ({"a.csv": "id\n", "notes.txt": "hm\n"}, {}, r"the name of notes\.txt does not end in one of"),
        ({"a.csv": "id,a\n", "b.csv": "a,id\n"}, {}, r"b\.csv:1: its first line is 'a,id', but .* of a\.csv is 'id,a'"),
        ({"a.csv": "id\n", "b.jsonl": "{}\n"}, {"form": "csv"}, r"b\.jsonl:1: its first line is '{}', but .* is 'id'"),
        ({"a/.hidden": "x"}, {"form": "json"}, "has no files, or only empty ones"),
    ],
)
def test_files_that_cannot_be_read(
    spark: SparkSession, tmp_path: Path, files: dict[str, str], options: dict[str, Any], message: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    only = tmp_path / next(iter(files))
    with pytest.raises((tamis.FileError, tamis.OptionError), match=message):
        read_raw(spark, only if len(files) == 1 and only.is_file() and only.name[0] != "." else tmp_path, **options)


@pytest.mark.spark
@pytest.mark.own_spark
def test_the_command(raw: Path) -> None:
    wrong = CliRunner().invoke(main, ["pipeline", "a", "b", "c", "--conf", "nothing"])
    assert wrong.exit_code == 2
    assert "'nothing' is not NAME=VALUE" in wrong.output
    command = [sys.executable, "-m", "tamis", "pipeline", "rules.csv", "events.jsonl", "out", "--keep", "price"]
    done = subprocess.run(command, cwd=raw, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr  # r3 is rejected, a line of events is bad
    assert "2 lines could not be used; out has them with the reasons\n" in done.stderr
    assert re.search(r"matches +29\n", done.stdout)
    assert (raw / "out" / "summary.html").exists()
    again = subprocess.run(command, cwd=raw, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "the folder has the results of an earlier run" in again.stderr
    assert "WARN" not in again.stderr  # Spark has not started.
