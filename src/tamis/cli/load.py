"""From a file of subscriptions into a matcher."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from tamis.cli.diagnostics import Diagnostics, counted
from tamis.cli.seen_ids import SeenIds
from tamis.cli.subscription_files import SubscriptionFile
from tamis.cli.subscription_lines import Subscription, wrong_expression
from tamis.cli.subscription_tables import one_row
from tamis.errors import DuplicateIdError, ExpressionError, FileError, IdTypeError, TableError

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.matcher.matcher import Matcher

_TOGETHER = 10_000
_FEW = 100


def load(file: SubscriptionFile, matcher: Matcher, diagnostics: Diagnostics) -> None:
    """Add the subscriptions of a file to a matcher.

    Raises
    ------
    FileError
        For the first bad line, if the diagnostics stop at it; for a file without any subscription.
    """
    for errors in _added(file, matcher):
        for error in sorted(errors, key=lambda error: error.line or 0):
            diagnostics.bad_line(error)
        diagnostics.progress(f"loading: {counted(len(matcher), 'subscription')}", file.share())
    diagnostics.clear()
    if not len(matcher):
        raise FileError("there is no subscription in it", path=file.name)


def _added(file: SubscriptionFile, matcher: Matcher) -> Iterator[list[FileError]]:
    """Add some at a time; what was wrong with some of them."""
    tables = file.tables()
    if tables is not None:
        for first, table in tables:
            yield list(_add_rows(file, matcher, first, table))
        return
    items, ids = iter(file), SeenIds()
    while together := list(islice(items, _TOGETHER)):
        subscriptions, errors = [], []
        for item in together:
            if isinstance(item, FileError):
                errors.append(item)
            elif problem := ids.problem(item):
                errors.append(file.error(item.line, problem))
            else:
                subscriptions.append(item)
        yield errors + _add(file, matcher, subscriptions)


def _add(file: SubscriptionFile, matcher: Matcher, subscriptions: list[Subscription]) -> list[FileError]:
    """Add those that are right: all at once, or what a matcher refuses in small parts, so that errors cost little."""
    try:
        _add_all(matcher, subscriptions)
    except ExpressionError:
        parts = [subscriptions[start : start + _FEW] for start in range(0, len(subscriptions), _FEW)]
        return [error for part in parts for error in _add_few(file, matcher, part)]
    return []


def _add_few(file: SubscriptionFile, matcher: Matcher, rest: list[Subscription]) -> Iterator[FileError]:
    """The same for a few. A matcher reads in order and names the first that is wrong, so those before it are right."""
    right: list[Subscription] = []
    while rest:
        try:
            _add_all(matcher, rest)
            break
        except ExpressionError as error:
            place = next(place for place, each in enumerate(rest) if each.id == error.subscription)
            yield file.error(rest[place].line, wrong_expression(error))
            right += rest[:place]
            rest = rest[place + 1 :]
    _add_all(matcher, right)


def _add_all(matcher: Matcher, subscriptions: list[Subscription]) -> None:
    if subscriptions:
        matcher.add_many([each.id for each in subscriptions], [each.source for each in subscriptions])


def _add_rows(file: SubscriptionFile, matcher: Matcher, first: int, table: pa.Table) -> Iterator[FileError]:
    """Add the rows that are right: a table that is refused is halved until a single row is."""
    try:
        matcher.add_table(table)
    except (ExpressionError, TableError, DuplicateIdError, IdTypeError) as error:
        if table.num_rows > 1:
            half = table.num_rows // 2
            yield from _add_rows(file, matcher, first, table.slice(0, half))
            yield from _add_rows(file, matcher, first + half, table.slice(half))
            return
        yield file.error(first, _message(error))


def _message(error: Exception) -> str:
    if isinstance(error, ExpressionError):
        return wrong_expression(error)
    return f"the id {error.identifier!r} is there already" if isinstance(error, DuplicateIdError) else one_row(error)
