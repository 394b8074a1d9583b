"""From tables of subscriptions into a matcher: all rows at once, or those that are right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tamis.cli.seen_ids import EMPTY, also_of
from tamis.cli.subscription_files import SubscriptionFile
from tamis.cli.subscription_lines import wrong_expression
from tamis.cli.subscription_tables import one_row
from tamis.errors import DuplicateIdError, ExpressionError, FileError, IdTypeError, OptionError, TableError

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.matcher.matcher import Matcher


class TableLoader:
    """Adds tables of one file. The rule about ids is that of `SeenIds`, but of ids that are in the matcher no row is kept."""

    def __init__(self, file: SubscriptionFile, matcher: Matcher) -> None:
        self._file = file
        self._matcher = matcher
        self._refused: dict[Any, int] = {}
        """The ids of rows with a wrong expression, which own them all the same."""

    def add(self, first: int, table: pa.Table) -> list[FileError]:
        """Add the rows that are right, the first of which has the number `first`; what is wrong with the others."""
        import pyarrow as pa

        ids = table["id"].to_pylist()
        if "" not in ids and self._refused.keys().isdisjoint(ids):
            try:
                self._matcher.add_table(table)
                return []
            except (ExpressionError, TableError, DuplicateIdError, IdTypeError, OptionError):
                pass  # some row is wrong
        problems = self._problems(first, ids)
        rows = [row for row in range(len(ids)) if row not in problems]
        errors = [self._file.error(first + row, problem) for row, problem in problems.items()]
        right = table.take(pa.array(rows, pa.int64()))  # typed, as there may be none
        return [*errors, *self._added(right, [first + row for row in rows])]

    def _problems(self, first: int, ids: list[Any]) -> dict[int, str]:
        """What is wrong with the ids of some rows."""
        found: dict[int, str] = {}
        seen: dict[Any, int] = {}
        for row, identifier in enumerate(ids):
            if problem := self._problem(identifier, seen):
                found[row] = problem
            else:
                seen[identifier] = first + row
        return found

    def _problem(self, identifier: Any, seen: dict[Any, int]) -> str | None:
        from tamis.matcher.ids import plain_id

        if identifier is None:
            return "id is null"
        if identifier == "":
            return EMPTY
        try:
            plain_id(identifier)
        except IdTypeError as error:
            return str(error)
        line = seen.get(identifier, self._refused.get(identifier))
        if line is not None:
            return also_of(identifier, line)
        return f"the id {identifier!r} is also that of an earlier row" if identifier in self._matcher else None

    def _added(self, table: pa.Table, lines: Sequence[int]) -> Iterator[FileError]:
        """Add the rows that are right."""
        from tamis.matcher.adding import add_right_rows

        for row, error in add_right_rows(self._matcher, table):
            self._refused[table["id"][row].as_py()] = lines[row]
            message = wrong_expression(error) if isinstance(error, ExpressionError) else one_row(error)
            yield self._file.error(lines[row], message)
