"""The records of a CSV file of subscriptions, with their lines."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tamis.cli.csv_text import not_csv
from tamis.cli.lines import Lines, not_text
from tamis.errors import FileError

if TYPE_CHECKING:
    import _csv

_LONGEST_FIELD = 1 << 30


class CsvRecord(NamedTuple):
    """A record of a CSV file, with as many fields as the header, and the line on which it begins."""

    line: int
    fields: list[str]


def csv_records(lines: Lines) -> tuple[list[str], Iterator[CsvRecord | FileError]]:
    """The names in the header of a CSV file, and the records below it.

    Raises
    ------
    FileError
        If the header cannot be read.
    """
    # Python's limit of 128 kB would refuse long expressions.
    csv.field_size_limit(_LONGEST_FIELD)
    records = csv.reader((f"{line.text}\n" for line in lines), strict=True)
    try:
        names = next(records, [])
    except csv.Error as error:
        raise lines.error(1, not_csv(error)) from None
    if problem := not_text(",".join(names)):
        raise lines.error(1, problem)
    return [name.strip() for name in names], _records(lines, records, len(names))


def _records(lines: Lines, records: _csv.Reader, columns: int) -> Iterator[CsvRecord | FileError]:
    while True:
        line = records.line_num + 1
        try:
            fields = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            yield lines.error(line, not_csv(error))
            continue
        if not fields:
            continue
        if problem := not_text("".join(fields)):
            yield lines.error(line, problem)
        elif len(fields) != columns:
            wrong = f"the header has {columns} fields, the line has {len(fields)}"
            yield lines.error(line, f"{wrong}. Hint: an expression with a comma needs double quotes around it")
        else:
            yield CsvRecord(line, fields)
