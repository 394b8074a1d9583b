"""The rows of a Parquet file, some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tamis.cli.byte_stream import STDIN, cannot_open
from tamis.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 16
"""Rows in memory at a time, by default."""


class ParquetRows:
    """A Parquet file. Rows count from 1, as lines do.

    Raises
    ------
    FileError
        When it cannot be opened or is not Parquet, or, later, when it is damaged.
    """

    def __init__(self, path: str) -> None:
        self.name = path
        self._done = 0
        if path == STDIN:
            raise FileError("Parquet must be read from a file, not from a pipe", path="stdin")
        self._file: Any = self._opened(path)

    def _opened(self, path: str) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            open(path, "rb").close()  # pyarrow's own messages for these errors are unclear
        except (OSError, ValueError) as error:
            raise cannot_open(path, error) from None
        try:
            return pq.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from None

    @cached_property
    def schema(self) -> pa.Schema:
        return self._file.schema_arrow

    def tables(self, rows: int = ROWS, columns: list[str] | None = None) -> Iterator[tuple[int, pa.Table]]:
        """Up to `rows` at a time, with the number of the first."""
        import pyarrow as pa

        batches = self._file.iter_batches(batch_size=rows, columns=columns)
        while True:
            try:
                table = pa.Table.from_batches([next(batches)])
                table.validate(full=True)  # finds, for example, strings that are not UTF-8
            except StopIteration:
                return
            except (pa.ArrowException, OSError) as error:
                raise self._damaged(error) from None
            first = self._done + 1
            self._done += table.num_rows
            yield first, table

    def share(self) -> float | None:
        """How much of the file is read, from 0 to 1."""
        total = self._file.metadata.num_rows
        return self._done / total if total else None

    def error(self, row: int, message: str) -> FileError:
        """The error for a row of this file."""
        return FileError(message, path=self.name, line=row)

    def _damaged(self, error: Exception) -> FileError:
        return FileError(f"is not Parquet, or is damaged: {str(error).splitlines()[0]}", path=self.name)
