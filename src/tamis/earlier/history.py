"""Which earlier events a matcher retains."""

from __future__ import annotations

import operator
import re
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tamis.errors import ExpressionError, OptionError, did_you_mean, shortened
from tamis.language.checks import check_attribute
from tamis.language.schema import Schema
from tamis.language.values import Kind


@dataclass(frozen=True, slots=True)
class History:
    """Which earlier events a matcher retains, for ANY, ALL and EXISTS. At least one of `rows` and `age` is needed.

    Parameters
    ----------
    rows : int, optional
        The number of events to retain: the latest ones. With `key`, this many for each value of the key.
    age : timedelta or number, optional
        An event leaves when it is older than this, counted back from the largest time seen. An event that is exactly this
        old stays. A timedelta fits an `order` of timestamps, a number fits an `order` of numbers.
    order : str, optional
        The attribute that has the time of an event, a timestamp or a number. It decides which events are the latest. By
        default this is the order of arrival. `age` needs `order`.
    key : str, optional
        The attribute that events of one history share, such as a customer or a host. An event is compared only with earlier
        events that have the same value.

    Raises
    ------
    OptionError

    Examples
    --------
    >>> import tamis
    >>> matcher = tamis.Matcher(history=History(rows=1000, key="product"))
    >>> matcher.add("drop", "price < ALL (SELECT price FROM history)")
    >>> [matcher.match({"product": "pen", "price": price}) for price in (3, 4, 2)]
    [['drop'], [], ['drop']]
    """

    rows: int | None = None
    age: timedelta | float | None = None
    order: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if self.rows is None and self.age is None:
            raise OptionError(
                "a history needs a limit: rows is the number of events to retain, age is how long to retain them. "
                "Hint: History(rows=10_000), or History(age=timedelta(hours=1), order='time')"
            )
        if self.rows is not None:
            object.__setattr__(self, "rows", _checked_rows(self.rows))
        for option in ("order", "key"):
            if getattr(self, option) is not None:
                object.__setattr__(self, option, _checked_name(getattr(self, option), option))
        if self.age is not None:
            _check_age(self.age)
            if self.order is None:
                raise OptionError(
                    "age needs the time of events. Hint: order='time', if `time` is the attribute that has it"
                )


def check_declared(history: History, schema: Schema) -> None:
    """Check that events which keep to a schema can have the key and the time that a history asks for.

    Raises
    ------
    OptionError
    """
    for option, name in (("key", history.key), ("order", history.order)):
        if name is not None and name not in schema:
            raise OptionError(
                f"{option} is {name!r}, but the schema has no such attribute{did_you_mean(name, list(schema))}"
            )
    if history.order is None:
        return
    kind, wanted = schema[history.order].kind, [Kind.NUMBER, Kind.TIMESTAMP]
    if history.age is not None:
        wanted = [Kind.TIMESTAMP] if isinstance(history.age, timedelta) else [Kind.NUMBER]
    if kind not in wanted:
        needed = " or ".join(f"a {each}" for each in wanted)
        raise OptionError(
            f"order is {history.order!r}, which the schema declares as a {kind}, but times must be {needed}"
            + ("" if history.age is None else f" for age={shortened(history.age)}")
        )


def options_of(history: History) -> dict[str, Any]:
    """The options as JSON."""
    age = history.age
    plain = {"microseconds": age // timedelta(microseconds=1)} if isinstance(age, timedelta) else age
    return {"rows": history.rows, "age": plain, "order": history.order, "key": history.key}


def history_of(options: dict[str, Any]) -> History:
    """The history with these options."""
    age = options["age"]
    return History(**{**options, "age": timedelta(**age) if isinstance(age, dict) else age})


_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def read_age(text: str) -> timedelta | float:
    """An age as text: a number with a unit, or a number alone.

    Raises
    ------
    OptionError
    """
    found = _AGE.fullmatch(text)
    if found is None:
        raise OptionError(f"{shortened(text)} is not an age such as 90s, 15m, 12h, 7d, or a number")
    number = float(found[1]) if "." in found[1] else int(found[1])
    try:
        return timedelta(**{_UNITS[found[2]]: number}) if found[2] else number
    except OverflowError:
        raise OptionError(f"{shortened(text)} is too long") from None


def _checked_rows(rows: object) -> int:
    try:
        count = 0 if isinstance(rows, bool) else operator.index(rows)  # type: ignore[arg-type]
    except TypeError:
        count = 0
    if count < 1:
        raise OptionError(
            f"rows is the number of events to retain and must be a whole number of at least 1, not {shortened(rows)}"
        )
    return count


def _check_age(age: object) -> None:
    is_right = isinstance(age, timedelta) and age > timedelta(0)
    if isinstance(age, int | float) and not isinstance(age, bool):
        is_right = 0 < age <= sys.float_info.max
    if not is_right:
        raise OptionError(
            f"age is how long events are retained and must be a timedelta or a number above 0, not {shortened(age)}. "
            "Hint: a timedelta if the times of events are timestamps, a number if they are numbers"
        )


def _checked_name(name: object, option: str) -> str:
    try:
        return check_attribute(name)
    except ExpressionError as error:
        raise OptionError(f"{option} must be the name of an attribute, not {shortened(name)}: {error}") from None
