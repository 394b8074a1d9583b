"""Files of subscriptions for a broker: JSONL, CSV or Parquet.

jsonl     {"subscriber": "ann", "name": "crime", "expression": "price < 5", "weight": 2, "valid_until": "2026-12-24"}
csv       a header with the columns subscriber and name, and others of FIELDS
parquet   the same columns

A field that is missing, empty in CSV, or null in Parquet is not given: it stays as it was. In JSON, null as a bound takes the
bound away, as ``none`` does everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, NamedTuple

from tamis.cli.byte_stream import STDIN, without_packed_end
from tamis.cli.csv_records import csv_records
from tamis.cli.json_text import JsonError, read_object
from tamis.cli.lines import Lines, not_text
from tamis.cli.moment_text import moment_of
from tamis.cli.parquet_rows import ParquetRows
from tamis.cli.subscription_lines import wrong_subscription
from tamis.cli.subscription_tables import source_of
from tamis.errors import ExpressionError, FileError, IdTypeError, OptionError, TableError, did_you_mean, shortened

NAMES = ("subscriber", "name")
FIELDS = (*NAMES, "expression", "predicates", "weight", "valid_from", "valid_until", "paused")

_ENDS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
FORMATS = ("jsonl", "csv", "parquet")


class WantedLine(NamedTuple):
    """The contents of a line: the arguments of `Broker.subscribe`."""

    line: int
    words: dict[str, Any]

    @property
    def names(self) -> tuple[str, str]:
        return self.words["subscriber"], self.words["name"]


Read = WantedLine | FileError
"""The result of reading a line: a subscription, or an error."""


class WantedFile:
    """A file of subscriptions, read once. A line that cannot be read becomes a FileError in its place.

    Parameters
    ----------
    path : str
        The file; ``-`` is stdin.
    format : str, optional
        One of FORMATS. By default, the ending of the name decides, else JSONL.
    """

    def __init__(self, path: str, format: str | None = None) -> None:
        name = without_packed_end(path)
        self.format = format or next(
            (each for end, each in _ENDS.items() if path != STDIN and name.endswith(end)), "jsonl"
        )
        self._content: Lines | ParquetRows = ParquetRows(path) if self.format == "parquet" else Lines(path)

    def __iter__(self) -> Iterator[Read]:
        if isinstance(self._content, ParquetRows):
            return self._rows(self._content)
        return self._objects(self._content) if self.format == "jsonl" else self._records(self._content)

    def ready(self) -> bool:
        """Whether the next line, or the end, can be read without waiting on a live stream."""
        return isinstance(self._content, ParquetRows) or self._content.ready()

    def share(self) -> float | None:
        """How much of the file is read, from 0 to 1; None if its size is unknown."""
        return self._content.share()

    def error(self, line: int, message: str) -> FileError:
        """The error for a line of this file."""
        return self._content.error(line, message)

    def _objects(self, lines: Lines) -> Iterator[Read]:
        for number, text in lines:
            if not text.strip():
                continue
            if problem := not_text(text):
                yield self.error(number, problem)
                continue
            try:
                found = read_object(text, "a subscription", per_line=True)
            except JsonError as error:
                yield self.error(number, str(error))
                continue
            yield self._checked(number, found)

    def _records(self, lines: Lines) -> Iterator[Read]:
        header, records = csv_records(lines)
        if problem := _wrong_header(header):
            raise self.error(1, problem)
        for record in records:
            if isinstance(record, FileError):
                yield record
                continue
            given = {name: text for name, text in zip(header, record.fields, strict=True) if text}
            yield self._checked(record.line, given, is_text=True)

    def _rows(self, rows: ParquetRows) -> Iterator[Read]:
        if problem := _wrong_header(rows.schema.names):
            raise FileError(problem, path=rows.name)
        for first, table in rows.tables():
            source = source_of(table) if "predicates" in table.column_names else None
            for row, found in enumerate(table.to_pylist()):
                given = {name: value for name, value in found.items() if value is not None}
                if source is not None and "predicates" in given:
                    try:
                        given["predicates"] = source(row)
                    except (TableError, ExpressionError) as error:
                        yield self.error(first + row, wrong_subscription(error))
                        continue
                yield self._checked(first + row, given)

    def _checked(self, line: int, given: dict[str, Any], *, is_text: bool = False) -> Read:
        try:
            return WantedLine(line, _words(given, is_text))
        except (JsonError, IdTypeError, OptionError, ExpressionError) as error:
            return self.error(line, str(error))


def _wrong_header(names: list[str]) -> str | None:
    """What is wrong with the columns of a table; None if they are right."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        return f"two columns are called {twice!r}. Hint: rename one of them"
    missing = [name for name in NAMES if name not in names]
    if missing:
        return f"the column {missing[0]!r} is missing; it has: {', '.join(names) or 'no column'}"
    return _unknown(names, "column")


def _unknown(names: list[str], what: str) -> str | None:
    wrong = next((name for name in names if name not in FIELDS), None)
    if wrong is None:
        if "expression" in names and "predicates" in names:
            return "expression and predicates are two forms of the same. Hint: give one of them"
        return None
    known = did_you_mean(wrong, list(FIELDS)) or f"; known are: {', '.join(FIELDS)}"
    return f"unknown {what} {shortened(wrong)}{known}"


def _words(given: dict[str, Any], is_text: bool) -> dict[str, Any]:
    """The arguments of `subscribe`. With `is_text`, all values are text."""
    from tamis.broker.subscribing import checked_name
    from tamis.matcher.options import plain_weight

    missing = [name for name in NAMES if name not in given]
    if missing:
        raise JsonError(f"a subscription needs {missing[0]!r}; it has: {', '.join(given) or 'nothing'}")
    if problem := _unknown(list(given), "key"):
        raise JsonError(problem)
    _check_paused(given.get("paused", False))
    words: dict[str, Any] = {"subscriber": checked_name(given["subscriber"], "subscriber")}
    words["name"] = checked_name(given["name"], "subscription")
    for form in ("expression", "predicates"):
        if form in given:
            words["expression"] = _expression(given[form], form)
    if "weight" in given:
        words["weight"] = _number(given["weight"]) if is_text else plain_weight(given["weight"])
    for bound in ("valid_from", "valid_until"):
        if bound in given:
            words[bound] = _moment(given[bound], bound)
    return words


def _check_paused(paused: Any) -> None:
    if paused not in (False, "false", "False"):
        hint = "Hint: leave it out, and pause the subscription with `tamis subscribe FOLDER SUBSCRIBER NAME --pause`"
        raise OptionError(f"a subscription cannot be added as paused. {hint}")


def _expression(source: Any, form: str) -> Any:
    if form == "predicates" and isinstance(source, str):
        raise OptionError("predicates must be a list of predicates. Hint: text is an expression")
    if source is None or isinstance(source, bool | int | float | dict):
        raise OptionError(f"{form} must be a text or a list of predicates, not {shortened(source)}")
    return source


def _number(text: str) -> float:
    from tamis.matcher.options import plain_weight

    try:
        return plain_weight(float(text))
    except ValueError:
        raise OptionError(f"a weight must be a finite number, not {text!r}") from None


def _moment(given: Any, name: str) -> Any:
    if given is None or isinstance(given, date):  # Parquet has timestamps.
        return given
    if not isinstance(given, str):
        raise OptionError(f"{name} must be a moment such as '2026-12-24T18:00Z', not {shortened(given)}")
    try:
        return moment_of(given)
    except OptionError as error:
        raise OptionError(f"{name}: {error}") from None
