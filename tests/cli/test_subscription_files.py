"""Each format gives the same subscriptions; a bad line is an error with its number, and the rest is still read."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.cli.subscription_files import SubscriptionFile
from tamis.cli.subscription_lines import Subscription, expression_of
from tamis.errors import ExpressionError, FileError
from tests.cli.running import write

UNCLOSED = "not CSV: a double quote that opens in this record is never closed; all lines after it belong to it"
SQL = ["price < 5", "genre = 'crime' AND price BETWEEN 1 AND 2"]


def read(path: Path, format: str | None = None) -> list[Any]:
    """(line, id, expression) of what is right, (line, message) of what is wrong."""
    found: list[Any] = []
    for item in SubscriptionFile(str(path), format):
        if isinstance(item, Subscription):
            try:
                found.append((item.line, item.id, str(expression_of(item))))
            except ExpressionError as error:
                found.append((item.line, str(error)))
        else:
            assert item.line is not None
            found.append((item.line, str(item).removeprefix(f"{path}:{item.line}: ")))
    return found


def test_jsonl(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        '{"id": "a", "expression": "price < 5", "owner": "is ignored"}',
        "",
        '{"id": "b", "predicates": [["genre", "=", "crime"], ["price", "between", [1, 2]]]}',
        '{"id": "c", "expression": [["a", "=", 1]]}',
    )
    assert read(path) == [(1, "a", SQL[0]), (3, "b", SQL[1]), (4, "c", "a = 1")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("price < 5", "not JSON: expecting value (column 1)"),
        ("[1]", "a subscription must be a JSON object, not a list"),
        (
            '{"id": "a"}',
            "a subscription needs the keys id and either expression or predicates (weight is optional); it has: id",
        ),
        (
            "{}",
            "a subscription needs the keys id and either expression or predicates (weight is optional); it has: none",
        ),
        ('{"id": 1, "expression": "a = 1", "predicates": []}', "a subscription needs the keys id and either"),
        ('{"id": 1.5, "expression": "a = 1"}', "an id must be a str or an int, not float"),
        ('{"id": null, "expression": "a = 1"}', "an id must be a str or an int"),
        ('{"id": 99999999999999999999, "expression": "a = 1"}', "the integer 99999999999999999999 is beyond 64 bits"),
        ('{"id": "\\ud800", "expression": "a = 1"}', "the id '\\ud800' holds a lone surrogate"),
        ('{"id": 1, "expression": 5}', "expression must be a text or a list of predicates"),
        ('{"id": 1, "predicates": "a = 1"}', "predicates must be a list of predicates"),
        ('{"id": 1, "id": 2, "expression": "a = 1"}', "the key 'id' is given twice"),
    ],
)
def test_bad_lines_of_jsonl(tmp_path: Path, line: str, message: str) -> None:
    good = '{"id": 7, "expression": "a = 1"}'
    first, bad, last = read(write(tmp_path / "s.ndjson", good, line, good))
    assert first[0] == 1
    assert last == (3, 7, "a = 1")
    assert bad[0] == 2
    assert bad[1].startswith(message)


def test_text(tmp_path: Path) -> None:
    path = write(tmp_path / "s.sql", "-- alerts", "price < 5", "   ", "  -- more", "genre = 'crime' -- why not", "")
    assert read(path) == [(2, 2, "price < 5"), (5, 5, "genre = 'crime'")]


def test_csv(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.csv",
        "expression,owner,id",
        "price < 5,x,a",
        "",
        '"genre = \'crime\'\nAND price BETWEEN 1 AND 2",y,"b"',
        '"t IN (\'a\', \'say ""b""\')",z,7',
    )
    assert read(path) == [(2, "a", SQL[0]), (4, "b", SQL[1]), (6, "7", "t IN ('a', 'say \"b\"')")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a", "the header has 2 fields, the line has 1"),
        (
            "a,t IN (1, 2)",
            "the header has 2 fields, the line has 3. Hint: an expression with a comma needs double quotes",
        ),
        ('a,"b" c', "not CSV: "),
    ],
)
def test_bad_lines_of_csv(tmp_path: Path, line: str, message: str) -> None:
    _, bad, last = read(write(tmp_path / "s.csv", "id,expression", "x,a = 1", line, "y,a = 2"))
    assert bad[0] == 3
    assert bad[1].startswith(message)
    assert last == (4, "y", "a = 2")


def test_a_quote_without_end_is_reported_where_it_begins(tmp_path: Path) -> None:
    found = read(write(tmp_path / "s.csv", "id,expression", "x,a = 1", 'y,"a = 2', "z,a = 3"))
    assert found == [(2, "x", "a = 1"), (3, UNCLOSED)]


def test_long_fields_of_csv(tmp_path: Path) -> None:
    text = " OR ".join(f"a = {number}" for number in range(20_000))
    [(_, _, expression)] = read(write(tmp_path / "s.csv", "id,expression", f"x,{text}"))
    assert len(expression) > 131_072


@pytest.mark.parametrize(
    ("header", "found"), [("id,expr", "it is id,expr"), ("id,expression,id", "it is"), ("", "there is none")]
)
def test_a_header_without_the_columns_is_an_error_of_the_file(tmp_path: Path, header: str, found: str) -> None:
    path = write(tmp_path / "s.csv", header)
    with pytest.raises(FileError, match=f"s.csv:1: the header must have the columns id and expression; {found}"):
        read(path)


@pytest.mark.parametrize(("name", "header"), [("s.jsonl", []), ("s.txt", []), ("s.csv", ["id,expression"])])
def test_bytes_that_are_not_utf8(tmp_path: Path, name: str, header: list[str]) -> None:
    path = tmp_path / name
    path.write_bytes("".join(f"{line}\n" for line in header).encode() + b"caf\xe9,x\n")
    line, message = read(path)[0]
    assert line == len(header) + 1
    assert message.startswith("not UTF-8: byte 0xe9 at column 4")


def test_a_header_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_bytes(b"\x1f\xff\xfe,id\n")
    with pytest.raises(FileError, match=r"s\.csv:1: not UTF-8: byte 0xff at column 2"):
        read(tmp_path / "s.csv")


@pytest.mark.parametrize("ids", [["a", "b"], [3, 4]])
def test_parquet_of_texts(tmp_path: Path, ids: list[Any]) -> None:
    pq.write_table(pa.table({"note": ["x", "y"], "id": ids, "expression": SQL}), tmp_path / "s.parquet")
    assert read(tmp_path / "s.parquet") == [(1, ids[0], SQL[0]), (2, ids[1], SQL[1])]


def predicate_table(rows: list[Any], ids: list[Any]) -> pa.Table:
    kind = pa.list_(pa.struct({"attribute": pa.string(), "operator": pa.string(), "values": pa.list_(pa.int64())}))
    return pa.table({"id": ids, "predicates": pa.array(rows, kind)})


def test_parquet_of_predicates(tmp_path: Path) -> None:
    rows = [
        [{"attribute": "a", "operator": "=", "values": [1]}],
        None,
        [{"attribute": "a", "operator": "between", "values": [1]}],
        [{"attribute": "b", "operator": "<", "values": [2]}, {"attribute": "c", "operator": "in", "values": [1, 2]}],
    ]
    pq.write_table(predicate_table(rows, [10, 11, 12, 13]), tmp_path / "s.pq")
    first, null, wrong, last = read(tmp_path / "s.pq")
    assert first == (1, 10, "a = 1")
    assert null == (2, "predicates is null")
    assert wrong[0] == 3
    assert "BETWEEN takes two literals" in wrong[1]
    assert last == (4, 13, "b < 2 AND c IN (1, 2)")


def test_nulls_in_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", None], "expression": [None, "a = 1"]}), tmp_path / "s.parquet")
    (_, first), (_, second) = read(tmp_path / "s.parquet")
    assert first == "expression is null"
    assert second == "id is null"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"id": [1]}), "the columns must be 'id', either"),
        (pa.table({"id": [1.5], "expression": ["a = 1"]}), "'id' must be strings or integers"),
        (pa.table({"id": [1], "expression": [5]}), "'expression' must be strings"),
        (pa.table({"id": [1], "predicates": [5]}), "'predicates' must be list<struct"),
    ],
)
def test_parquet_with_other_columns(tmp_path: Path, table: pa.Table, message: str) -> None:
    pq.write_table(table, tmp_path / "s.parquet")
    with pytest.raises(FileError, match=r"s\.parquet: ") as caught:
        read(tmp_path / "s.parquet")
    assert message in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"PAR1 and then nothing", b"x" * 1000])
def test_damaged_parquet(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "s.parquet").write_bytes(data)
    with pytest.raises(FileError, match="is not Parquet, or is damaged"):
        read(tmp_path / "s.parquet")


def test_parquet_is_not_read_from_a_pipe() -> None:
    with pytest.raises(FileError, match="stdin: Parquet must be read from a file"):
        SubscriptionFile("-", "parquet")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("s.jsonl", "jsonl"),
        ("s.JSON", "jsonl"),
        ("s.jsonl.gz", "jsonl"),
        ("s.csv", "csv"),
        ("s.csv.gz", "csv"),
        ("s.txt", "text"),
        ("s.sql", "text"),
        ("jsonl", "text"),
    ],
)
def test_the_format_follows_from_the_name(tmp_path: Path, name: str, format: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b"a") if name.endswith(".gz") else b"a")
    assert SubscriptionFile(str(tmp_path / name)).format == format


def test_a_given_format_wins(tmp_path: Path) -> None:
    assert read(write(tmp_path / "s.jsonl", "a = 1"), "text") == [(1, 1, "a = 1")]
