"""Files of subscriptions, in four formats.

jsonl     {"id": "ann", "expression": "price < 5"}  or  {"id": "ann", "predicates": [["price", "<", 5]]}
csv       a header with the columns id and expression
parquet   the columns id and expression (text), or id and predicates (see `Matcher.add_table`)
text      an expression per line; the line number is the id

All formats but text may also have a weight, under the name `weight`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tamis.cli.byte_stream import STDIN, without_packed_end
from tamis.cli.lines import Lines
from tamis.cli.parquet_rows import ParquetRows
from tamis.cli.subscription_lines import Read, read_csv, read_expressions, read_json_lines
from tamis.cli.subscription_tables import read_rows, subscription_tables

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.errors import FileError

_LINE_READERS = {"jsonl": read_json_lines, "csv": read_csv, "text": read_expressions}
_ENDS = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    ".csv": "csv",
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
}

FORMATS = (*_LINE_READERS, "parquet")


class SubscriptionFile:
    """A file of subscriptions, read once. A line that cannot be read becomes a FileError in its place.

    Parameters
    ----------
    path : str
        The file; ``-`` is stdin.
    format : str, optional
        One of FORMATS. By default, the ending of the name decides: text for other names, JSONL for stdin.
    """

    def __init__(self, path: str, format: str | None = None) -> None:
        self.format = format or _format_of(path)
        self._content: Lines | ParquetRows = ParquetRows(path) if self.format == "parquet" else Lines(path)

    @property
    def name(self) -> str:
        return self._content.name

    def __iter__(self) -> Iterator[Read]:
        if isinstance(self._content, ParquetRows):
            return read_rows(self._content)
        return _LINE_READERS[self.format](self._content)

    def tables(self) -> Iterator[tuple[int, pa.Table]] | None:
        """Tables of subscriptions, each with the number of its first row; None if the format has no tables."""
        return subscription_tables(self._content) if isinstance(self._content, ParquetRows) else None

    def share(self) -> float | None:
        """How much of the file is read, from 0 to 1; None if its size is unknown."""
        return self._content.share()

    def error(self, line: int, message: str) -> FileError:
        """The error for a line of this file."""
        return self._content.error(line, message)


def _format_of(path: str) -> str:
    if path == STDIN:
        return "jsonl"
    name = without_packed_end(path)
    return next((format for end, format in _ENDS.items() if name.endswith(end)), "text")
