"""``--history-rows`` and its companions: which earlier events are retained."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from tamis.errors import OptionError

if TYPE_CHECKING:
    from datetime import timedelta

    from tamis.earlier.history import History

NO_HISTORY = "compares with earlier events, but the broker keeps none. Hint: --history-rows makes it keep them"
"""What is wrong with a subscription."""


def history_options(purpose: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options that become one argument `history` of the command: a `History`, or None if none of them is given."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_history(
            *args: Any,
            history_rows: int | None,
            history_age: timedelta | float | None,
            history_order: str | None,
            history_key: str | None,
            **words: Any,
        ) -> Any:
            return command(*args, history=_history(history_rows, history_age, history_order, history_key), **words)

        for option in reversed(_options(purpose)):
            option(with_history)
        return with_history

    return decorate


def _options(purpose: str) -> list[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    return [
        click.option("--history-rows", type=click.IntRange(1), metavar="COUNT", help=f"{purpose}: the latest COUNT."),
        click.option(
            "--history-age",
            metavar="AGE",
            callback=_age_of,
            help="Retain events up to this age: 90s, 15m, 12h or 7d if times are timestamps, a number if they are numbers. "
            "Needs --history-order.",
        ),
        click.option("--history-order", metavar="FIELD", help="The field that has the time of an event."),
        click.option("--history-key", metavar="FIELD", help="Compare events only if this field has the same value."),
    ]


def _history(rows: int | None, age: timedelta | float | None, order: str | None, key: str | None) -> History | None:
    if (rows, age, order, key) == (None, None, None, None):
        return None
    if rows is None and age is None:
        raise click.UsageError("A history needs --history-rows or --history-age.")
    if age is not None and order is None:
        raise click.UsageError("--history-age needs --history-order, the field that has the time of an event.")
    from tamis.earlier.history import History

    try:
        return History(rows=rows, age=age, order=order, key=key)
    except OptionError as error:
        raise click.UsageError(str(error)) from None


def _age_of(ctx: click.Context, parameter: click.Parameter, text: str | None) -> timedelta | float | None:
    if text is None:
        return None
    from tamis.earlier.history import read_age

    try:
        return read_age(text)
    except OptionError as error:
        raise click.BadParameter(str(error)) from None
