"""Moments as text, in options and in files."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from tamis.errors import LiteralError, OptionError

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


class Moment(click.ParamType):
    """An option whose value is a moment, or ``none``. It stays text until the command runs: None means that it is not given."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            moment_of(value)
        except OptionError as error:
            self.fail(str(error), param, ctx)
        return str(value)
