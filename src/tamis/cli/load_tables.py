"""Adds the correct rows of tables of subscriptions to a matcher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.cli.seen_ids import EMPTY, also_of
from tamis.cli.subscription_files import SubscriptionFile
from tamis.cli.subscription_lines import wrong_subscription
from tamis.errors import DuplicateIdError, FileError, IdTypeError

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.matcher.matcher import Matcher
    from tamis.matcher.rejected import Rejected


class TableLoader:
    """Adds tables of one file. The rule about ids is that of `SeenIds`, but the rows of ids in the matcher are not noted."""

    def __init__(self, file: SubscriptionFile, matcher: Matcher) -> None:
        self._file = file
        self._matcher = matcher
        self._refused: dict[Any, int] = {}
        """Ids of rows with a wrong expression -> the lines of these rows. Such a row still owns its id."""

    def add(self, first: int, table: pa.Table) -> list[FileError]:
        """Add the correct rows; returns the errors of the others. The first row of the table has the number `first`."""
        import pyarrow as pa

        ids = table["id"].to_pylist()
        problems = self._problems(ids)
        rows = [row for row in range(len(ids)) if row not in problems]
        if problems:
            table = table.take(pa.array(rows, pa.int64()))  # typed, because the list may be empty
        lines = [first + row for row in rows]
        errors = [self._file.error(first + row, problem) for row, problem in problems.items()]
        rejected = self._matcher.add_table(table, on_error="collect")
        return [*errors, *self._errors(rejected, [ids[row] for row in rows], lines)]

    def _problems(self, ids: list[Any]) -> dict[int, str]:
        """Problems of ids that a matcher would accept, by row."""
        if "" not in ids and self._refused.keys().isdisjoint(ids):
            return {}
        found = {row: EMPTY for row, identifier in enumerate(ids) if identifier == ""}
        refused = {row: identifier for row, identifier in enumerate(ids) if identifier in self._refused}
        return found | {row: also_of(identifier, self._refused[identifier]) for row, identifier in refused.items()}

    def _errors(self, rejected: list[Rejected], ids: list[Any], lines: list[int]) -> list[FileError]:
        """The errors of rows that the matcher rejected."""
        if not rejected:
            return []
        owners: dict[Any, int] = {}
        for identifier, line in zip(ids, lines, strict=True):
            owners.setdefault(identifier, line)
        errors = []
        for identifier, row, error in rejected:
            message = wrong_subscription(error)
            if isinstance(error, DuplicateIdError):
                is_here = owners[identifier] < lines[row]
                earlier = f"the id {identifier!r} is already used in an earlier row"
                message = also_of(identifier, owners[identifier]) if is_here else earlier
            elif identifier is not None and not isinstance(error, IdTypeError):
                self._refused[identifier] = lines[row]
            errors.append(self._file.error(lines[row], message))
        return errors
