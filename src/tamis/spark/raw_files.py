"""Raw files as DataFrames. Lines that cannot be read are returned too, with the file and the reason: no line is lost.

Parquet     as it is
JSON        one object per line; any other line is bad
CSV         one row per line, below a first line of names that all files share; a line with too few or too many fields, or
            with a quote that is not closed, is bad. A column gets the type that all its good lines have

If a schema is given, a line with a value of another type is bad too. Spark by itself would fail with a stack trace, or turn a
column of numbers into text because of one bad line, or set unreadable values to null.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from tamis.errors import FileError, IndexFolderError, OptionError, shortened
from tamis.spark.addresses import local_path, pattern
from tamis.spark.frames import REASON, quoted
from tamis.spark.segment_files import PREDICATES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import DataType, StructType

FORMATS = ("parquet", "json", "csv")
FILE, LINE = "file", "line"
"""Columns of bad lines."""

_ENDINGS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}
_FIELDS, _BROKEN, _OF_FILE = "__tamis_fields", "__tamis_broken", "__tamis_of_file"
# Digits with a leading zero are a name, not a number.
_WHOLE = r"^\s*[+-]?(0|[1-9]\d*)\s*$"
_NUMBER = r"^\s*[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$"
_DATE = r"^\d{4}-\d{2}-\d{2}"


class RawRows(NamedTuple):
    """The contents of raw files.

    Attributes
    ----------
    rows : DataFrame
        The readable rows.
    bad : DataFrame or None
        The other lines: `file`, `line` and `reason`; None if there are none.
    guessed : bool
        Whether types of columns were guessed from text.
    """

    rows: DataFrame
    bad: DataFrame | None
    guessed: bool


def read_raw(
    spark: SparkSession, path: str | os.PathLike[str], form: str | None = None, schema: str | None = None
) -> RawRows:
    """Read a file or a folder.

    Parameters
    ----------
    spark : SparkSession
    path : path
    form : str, optional
        One of `FORMATS`. By default, the names of files decide.
    schema : str, optional
        Columns and types as Spark writes them: ``id long, price double``. By default, they are guessed.

    Raises
    ------
    FileError, OptionError
    """
    place, kind, files = check_raw(path, form)
    declared = None if schema is None else _declared(schema)
    with failures_of_spark(f"cannot read it as {kind}", place):
        reader = spark.read.option("recursiveFileLookup", _has_plain_folders(place, files))
        if kind == "parquet":
            reader = reader if declared is None else reader.schema(declared)
            return RawRows(reader.parquet(pattern(place)), None, guessed=False)
        if kind == "json":
            return _json(reader, place, declared)
        return _csv(reader.text(pattern(place)), place, _header(files), declared)


def check_raw(path: str | os.PathLike[str], form: str | None = None) -> tuple[Path, str, list[Path]]:
    """Check a file or a folder, as far as possible without Spark; returns its path, its format and its files.

    Raises
    ------
    FileError, OptionError
    """
    place = _local_place(path)
    if not place.exists():
        raise FileError("there is no such file or folder", path=str(place))
    kind = _format(place) if form is None else form
    if kind not in FORMATS:
        raise OptionError(f"the format must be one of {', '.join(FORMATS)}, not {shortened(kind)}")
    files = _files(place)
    try:
        if not any(file.stat().st_size for file in files):
            what = "is empty" if place.is_file() else "has no files, or only empty ones"
            raise FileError(f"{what}. Hint: {_HINTS[kind]}", path=str(place))
        _has_plain_folders(place, files)
        if kind == "parquet":
            _check_parquet(files)
        elif kind == "csv":
            _header(files)
        else:
            _check_opened(files)
    except OSError as error:
        raise FileError(f"cannot be opened: {error.strerror or error}", path=str(error.filename or place)) from None
    return place, kind, files


def _check_opened(files: list[Path]) -> None:
    """Raise an OSError if the system does not open one of the files."""
    for file in files:
        file.open("rb").close()


@contextmanager
def failures_of_spark(what: str, place: Path) -> Iterator[None]:
    """Report failures of Spark with the file or folder, without the stack trace of Java."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise FileError(f"Spark {what}: {_first_line_of(error)}", path=str(place)) from None


def _local_place(path: str | os.PathLike[str]) -> Path:
    try:
        return local_path(path)
    except IndexFolderError:
        raise FileError(
            "the driver and all executors must see raw files as a file or folder. Hint: tamis.spark.build and match take "
            "DataFrames, which Spark reads from any address",
            path=str(path),
        ) from None


def _check_parquet(files: list[Path]) -> None:
    """Check that files are Parquet. Spark would log a Java stack trace for each file that is not."""
    for file in files:
        with open(file, "rb") as stream:
            starts = stream.read(len(_MAGIC)) == _MAGIC
            stream.seek(-min(len(_MAGIC), file.stat().st_size), os.SEEK_END)
            if file.stat().st_size and not (starts and stream.read() == _MAGIC):
                raise FileError("is not a Parquet file, or is cut off", path=str(file))


_MAGIC = b"PAR1"


def _first_line_of(error: Exception) -> str:
    """The message of a Spark error, without the stack trace of Java."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    # The first line of Py4J is the call, the second is `: class: message`.
    second = lines[1] if len(lines) > 1 else ""
    told = second.removeprefix(": ").partition(": ")[2] if second.startswith(": ") else ""
    return shortened(told or lines[0], quoted=False, most=400)


_HINTS = {
    "parquet": "even a Parquet file without rows contains its schema",
    "json": "write one JSON object per line",
    "csv": "write the names of the columns into the first line, then one line per row",
}


def _files(place: Path) -> list[Path]:
    """The files that Spark reads: all but hidden ones."""
    if place.is_file():
        return [place]
    found = [file for file in sorted(place.rglob("*")) if file.is_file()]
    return [file for file in found if not any(p.startswith((".", "_")) for p in file.relative_to(place).parts)]


def _has_plain_folders(place: Path, files: list[Path]) -> bool:
    """Whether files are in folders that are not partitions (``NAME=VALUE``): Spark would read nothing from these."""
    folders = {part for file in files if file != place for part in file.relative_to(place).parts[:-1]}
    partitions = {name for name in folders if "=" in name}
    if partitions and folders != partitions:
        raise FileError(
            f"some of its folders are values of a column, such as {min(partitions)}, and others are not, such as "
            f"{min(folders - partitions)}. Hint: separate the two kinds of folders",
            path=str(place),
        )
    return bool(folders - partitions)


def _format(place: Path) -> str:
    of_file = {file: _ENDINGS.get(Path(file.name.lower().removesuffix(".gz")).suffix) for file in _files(place)}
    found = {kind: file.name for file, kind in reversed(of_file.items())}
    if len(found) == 1 and None not in found:
        return str(next(iter(found)))
    ends = ", ".join(_ENDINGS)
    if not found:
        raise FileError("is a folder without files", path=str(place))
    if None in found:
        problem = f"the name of {found[None]} does not end in one of {ends}"
    else:
        problem = "it has files of several formats: " + ", ".join(f"{name} is {kind}" for kind, name in found.items())
    hint = f"Hint: use one folder per format, or give the format: {', '.join(FORMATS)}"
    raise FileError(f"cannot tell its format: {problem}. {hint}", path=str(place))


def _declared(schema: str) -> StructType:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        declared = StructType.fromDDL(schema)
    except PySparkException as error:
        raise OptionError(
            f"the schema {shortened(schema)} cannot be read: {_first_line_of(error)}. Hint: 'id long, price double'"
        ) from None
    if not isinstance(declared, StructType):
        raise OptionError(f"the schema {shortened(schema)} has no columns. Hint: 'id long, price double'")
    return declared


def _json(reader: DataFrameReader, place: Path, declared: StructType | None) -> RawRows:
    from pyspark.sql import functions as F  # noqa: N812

    reader = reader.option("columnNameOfCorruptRecord", _BROKEN)
    if declared is not None:
        reader = reader.schema(f"{declared.toDDL()}, {_BROKEN} string")
    read = reader.json(pattern(place))
    _check_predicates(reader, read, place)
    if read.columns == [_BROKEN]:
        raise FileError(f"none of its lines is JSON. Hint: {_HINTS['json']}", path=str(place))
    if _BROKEN not in read.columns:
        return RawRows(read, None, guessed=declared is None)
    # Without the cache, Spark cannot select bad lines alone.
    read = read.select("*", F.col("_metadata.file_path").alias(FILE + _BROKEN)).cache()
    wanted = "it is not a JSON object" if declared is None else f"it is not a JSON object of {declared.toDDL()}"
    bad = read.where(f"{_BROKEN} IS NOT NULL").select(
        F.col(FILE + _BROKEN).alias(FILE), F.col(_BROKEN).alias(LINE), F.lit(wanted).alias(REASON)
    )
    return RawRows(read.where(f"{_BROKEN} IS NULL").drop(_BROKEN, FILE + _BROKEN), bad, guessed=declared is None)


def _check_predicates(reader: DataFrameReader, read: DataFrame, place: Path) -> None:
    """Check the types of values in predicates. If some are strings, Spark makes all of them strings: no number would match."""
    from pyspark.sql import functions as F  # noqa: N812

    if PREDICATES not in read.columns or "values:array<string>" not in read.schema[PREDICATES].dataType.simpleString():
        return
    as_text = reader.schema(f"{PREDICATES} string").json(pattern(place))
    texts, others = (
        F.count(F.when(F.col(PREDICATES).rlike(rf'"values"\s*:\s*\[\s*{first}'), 1)) for first in ('"', r'[^"\]\s]')
    )
    (row,) = as_text.agg(texts.alias("texts"), others.alias("others")).collect()
    if row.texts and row.others:
        raise FileError(
            "predicates compare with strings and with other values, but a column of Spark has values of one type. "
            "Hint: use a column `expression` with SQL text instead",
            path=str(place),
        )


def _header(files: list[Path]) -> str:
    """The first line of all files, which must be the same: Spark would take columns by their places."""
    lines = {file: _first_line(file) for file in files if file.stat().st_size}
    first, header = next(iter(lines.items()))
    for file, line in lines.items():
        if line != header:
            raise FileError(
                f"its first line is {shortened(line)}, but the first line of {first.name} is {shortened(header)}. "
                "Hint: all files of a folder need the same columns in the same order",
                path=str(file),
                line=1,
            )
    names = next(csv.reader([header]))
    wrong = (
        "a column has no name"
        if "" in names
        else "two columns have the same name"
        if len({*names}) < len(names)
        else ""
    )
    if wrong:
        raise FileError(f"{wrong}: {shortened(header)}. Hint: {_HINTS['csv']}", path=str(first), line=1)
    return header


def _first_line(file: Path) -> str:
    try:
        with pa.input_stream(str(file), compression="detect") as stream:
            start = stream.read(1 << 20)
    except OSError as error:
        raise FileError(f"cannot be read: {error}", path=str(file)) from None
    return bytes(start).split(b"\n", 1)[0].rstrip(b"\r").decode("utf-8", "replace").removeprefix("\ufeff")


def _csv(text: DataFrame, place: Path, header: str, declared: StructType | None) -> RawRows:
    """Read lines as text first: only then no bad line is lost."""
    from pyspark.sql import functions as F  # noqa: N812

    names = next(csv.reader([header]))
    if declared is not None and declared.names != names:
        raise FileError(
            f"its columns are {', '.join(names)}, but the schema has {', '.join(declared.names)}", path=str(place)
        )
    partitions = [F.struct(*map(quoted, text.columns[1:])).alias(_OF_FILE)] if len(text.columns) > 1 else []
    # Concatenated files have several header lines.
    lines = text.where((F.ltrim("value") != "") & (F.regexp_replace("value", "^\ufeff", "") != header))
    strings = ", ".join(f"{quoted(name)} string" for name in [*names, _BROKEN])
    parsed = F.from_csv("value", strings, {"columnNameOfCorruptRecord": _BROKEN, "escape": '"'})
    origin = F.col("_metadata.file_path").alias(FILE)
    read = lines.select(origin, F.col("value").alias(LINE), parsed.alias(_FIELDS), *partitions)
    field = {name: F.col(f"{_FIELDS}.{quoted(name)}") for name in names}
    is_open = F.length(F.regexp_replace(LINE, '[^"]', "")) % 2 == 1
    reason = F.when(is_open, F.lit("a quote is not closed in its line")).when(
        F.col(f"{_FIELDS}.{_BROKEN}").isNotNull(),
        F.lit(f"it does not have the {len(names)} fields of the first line: {', '.join(names)}"),
    )
    if declared is not None:
        for name in names:
            reason = reason.when(
                field[name].isNotNull() & field[name].try_cast(declared[name].dataType).isNull(),
                F.concat(F.lit(f"{name} must be {declared[name].dataType.simpleString()}, not "), field[name]),
            )
    read = read.withColumn(REASON, reason).cache()
    good = read.where(F.col(REASON).isNull())
    types = (
        {name: kind.dataType for name, kind in zip(names, declared, strict=True)} if declared else _types(good, field)
    )
    typed = [field[name].try_cast(types[name]).alias(name) for name in names]
    rows = good.select(*typed, *([f"{_OF_FILE}.*"] if partitions else []))
    return RawRows(rows, read.where(F.col(REASON).isNotNull()).select(FILE, LINE, REASON), guessed=declared is None)


def _types(good: DataFrame, field: dict[str, Column]) -> dict[str, DataType | str]:
    """The narrowest type of each column that fits all its values."""
    from pyspark.sql import functions as F  # noqa: N812

    # Casts alone would accept '1d' as a number and '2026' as a time.
    shapes = {"bigint": _WHOLE, "double": _NUMBER, "boolean": r"(?i)^(true|false)$", "date": f"{_DATE}$"}
    shapes["timestamp"] = _DATE
    counts = [
        F.count(F.when(text.rlike(shape), text.try_cast(kind))).alias(f"{place} {kind}")
        for place, text in enumerate(field.values())
        for kind, shape in shapes.items()
    ]
    totals = [F.count(text).alias(f"{place}") for place, text in enumerate(field.values())]
    (row,) = good.agg(*totals, *counts).collect()
    return {
        name: next((kind for kind in shapes if row[f"{place}"] == row[f"{place} {kind}"] > 0), "string")
        for place, name in enumerate(field)
    }


def mixed_columns(rows: DataFrame) -> dict[str, tuple[int, int]]:
    """Text columns in which most values, but not all, look like numbers: how many values do, and how many there are."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType

    names = [field.name for field in rows.schema.fields if isinstance(field.dataType, StringType)]
    if not names:
        return {}
    columns = [F.col(quoted(name)) for name in names]
    numbers = [F.count(F.when(column.rlike(_NUMBER), 1)) for column in columns]
    (row,) = rows.agg(*numbers, *map(F.count, columns)).collect()
    found = {name: (row[place], row[place + len(names)]) for place, name in enumerate(names)}
    return {name: (like, all_) for name, (like, all_) in found.items() if all_ / 2 < like < all_}
