"""From a file of subscriptions into a matcher."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from tamis.cli.diagnostics import Diagnostics, counted
from tamis.cli.load_tables import TableLoader
from tamis.cli.seen_ids import SeenIds
from tamis.cli.subscription_files import SubscriptionFile
from tamis.cli.subscription_lines import Subscription, wrong_expression, wrong_subscription
from tamis.errors import ExpressionError, FileError

if TYPE_CHECKING:
    from tamis.matcher.matcher import Matcher

_TOGETHER = 10_000


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
        raise FileError("the file has no subscriptions", path=file.name)


def _added(file: SubscriptionFile, matcher: Matcher) -> Iterator[list[FileError]]:
    """Add subscriptions in blocks; yields the errors of each block."""
    tables = file.tables()
    if tables is not None:
        loader = TableLoader(file, matcher)
        for first, table in tables:
            yield loader.add(first, table)
        return
    items, ids = iter(file), SeenIds()
    while together := list(islice(items, _TOGETHER)):
        subscriptions, errors = [], []
        for item in together:
            if isinstance(item, FileError):
                errors.append(item)
            elif problem := ids.problem(item):
                errors.append(file.error(item.line, problem))
            elif isinstance(item.source, ExpressionError):
                errors.append(file.error(item.line, wrong_expression(item.source)))
            else:
                subscriptions.append(item)
        yield errors + _add(file, matcher, subscriptions)


def _add(file: SubscriptionFile, matcher: Matcher, subscriptions: list[Subscription]) -> list[FileError]:
    """Add the correct subscriptions; returns the errors of the others."""
    ids = [each.id for each in subscriptions]
    sources = [each.source for each in subscriptions]
    weights = [each.weight for each in subscriptions]
    rejected = matcher.add_many(ids, sources, weights, on_error="collect")
    return [file.error(subscriptions[row].line, wrong_subscription(error)) for _, row, error in rejected]
