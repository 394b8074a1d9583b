"""Moments as text, in options and in files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from tamis.errors import LiteralError, OptionError

F = TypeVar("F", bound=Callable[..., Any])

NO_BOUND = "none"
"""The word that takes a bound away."""


def moment_of(text: str) -> datetime | None:
    """The moment of a text in ISO 8601, in UTC unless it names a zone. None for the word ``none``.

    Raises
    ------
    OptionError
    """
    from tamis.language.literals import read_timestamp

    if text.lower() == NO_BOUND:
        return None
    try:
        return read_timestamp(text)
    except LiteralError:
        raise OptionError(
            f"{text!r} is not a moment. Hint: 2026-12-24, 2026-12-24T18:00 or 2026-12-24T18:00Z"
        ) from None


def moment_option(name: str, help: str) -> Callable[[F], F]:
    """An option whose value is a moment, or ``none``. The value stays text until the command runs: None means "not given"."""
    return click.option(name, metavar="MOMENT", callback=_checked, help=help)


def _checked(ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    try:
        if text is not None:
            moment_of(text)
    except OptionError as error:
        raise click.BadParameter(str(error)) from None
    return text
