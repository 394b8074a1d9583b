"""Moments: microseconds since 1970 in UTC, from datetimes and from a clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tamis.errors import OptionError, shortened
from tamis.language.values import from_microseconds, plain_scalar, to_microseconds

Clock = Callable[[], datetime]
"""The time of now. A datetime without a zone is UTC."""

_USUAL = timedelta(minutes=1)
"""How far clocks are often set back."""


def system_clock() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


def read_moment(given: Any, name: str) -> int | None:
    """A moment that a user gives as a datetime or a date; None stays None.

    Raises
    ------
    OptionError
    """
    if given is None:
        return None
    try:
        plain = plain_scalar(given) if isinstance(given, date) else None
    except (OverflowError, ValueError):  # It has a zone, or pandas made it.
        raise OptionError(f"`{name}` must lie in the years 1 to 9999 in UTC, not at {shortened(given)}") from None
    if not isinstance(plain, date):
        raise OptionError(f"`{name}` must be a datetime, a date or None, not {shortened(given)}")
    return to_microseconds(plain)


def moment_of(given: datetime) -> int:
    """The moment of a clock's datetime."""
    if not isinstance(given, date):
        raise OptionError(f"`clock` must return a datetime, not {shortened(given)}")
    moment = read_moment(given, "clock")
    assert moment is not None
    return moment


def clock_problem(moment: int, clock: Clock) -> str | None:
    """What is wrong if the clock is far behind the time of the broker, which does not go back; None if all is well."""
    ahead = timedelta(microseconds=moment - moment_of(clock()))
    if ahead <= _USUAL:
        return None
    return (
        f"the time of the broker is {as_datetime(moment)}, which is {ahead} ahead of the clock, and stands still until then. "
        "Hint: set the clock. If it was wrong earlier, see 'Validity' in docs/pubsub.md"
    )


def as_datetime(moment: int | None) -> datetime | None:
    """A moment as users see it: a datetime in UTC."""
    return None if moment is None else from_microseconds(moment).replace(tzinfo=UTC)
