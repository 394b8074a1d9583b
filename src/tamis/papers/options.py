"""Options of indexes. Every index declares its options as a dataclass; the defaults are those of its paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from tamis.errors import OptionError, did_you_mean, shortened

MOST = 2**31 - 1
"""Upper bound of numbers, unless an option sets another."""
WIDEST = 2**53
"""Bound of domains, in both directions: up to here every whole number is a double."""

T = TypeVar("T")
OptionsT = TypeVar("OptionsT", bound="Options")


def option(
    default: T,
    *,
    least: float | None = None,
    most: float = MOST,
    choices: tuple[str, ...] = (),
    nothing: bool = False,
    pair: bool = False,
) -> T:
    """An option with a default of its type; `least` and `most` bound its numbers, `nothing` allows None.

    With `pair` the option is two whole numbers, the lower one first.
    """
    metadata = {"least": least, "most": most, "choices": choices, "nothing": nothing, "pair": pair}
    made: T = field(default=default, metadata=metadata)
    return made


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an index without options, and the base class of all others."""

    @classmethod
    def read(cls: type[OptionsT], given: Mapping[str, Any], name: str) -> OptionsT:
        """The options of the index called `name`, as a user gives them.

        Raises
        ------
        OptionError
        """
        if not isinstance(given, Mapping):
            raise OptionError(f"options must be a mapping of names to values, not {shortened(given)}")
        known = {each.name: each for each in fields(cls)}
        for key, value in given.items():
            if key not in known:
                there = f"it has: {', '.join(known)}" if known else "it has none"
                raise OptionError(
                    f"the index {name!r} has no option {shortened(key)}{did_you_mean(key, list(known))}; {there}"
                )
            metadata = known[key].metadata
            wrong = _wrong(value, known[key].default, **metadata)
            if wrong:
                raise OptionError(f"the option {key!r} of the index {name!r} must be {wrong}, not {shortened(value)}")
        made = cls(**given)
        problem = made.problem()
        if problem:
            raise OptionError(f"the options of the index {name!r} do not fit together: {problem}")
        return made

    def problem(self) -> str:
        """The problem with a combination of options; an empty string if there is none."""
        return ""


def _wrong(
    value: Any,
    default: Any,
    least: float | None,
    most: float,
    choices: tuple[str, ...],
    nothing: bool,
    pair: bool,
) -> str:
    """What a wrong value should have been; an empty string for a valid value."""
    or_nothing = " or None" if nothing else ""
    if nothing and value is None:
        return ""
    if choices:
        return "" if value in choices else "one of " + ", ".join(repr(choice) for choice in choices) + or_nothing
    if pair:
        right = isinstance(value, tuple | list) and len(value) == 2 and all(type(each) is int for each in value)
        right = right and -WIDEST <= value[0] <= value[1] <= WIDEST
        return "" if right else f"two whole numbers, the lower one first{or_nothing}"
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "True or False"
    what = "a number" if isinstance(default, float) else "a whole number"
    right = isinstance(value, int | float if isinstance(default, float) else int) and not isinstance(value, bool)
    if not right or (least is not None and value < least):
        return what + (f" of at least {least}" if least is not None else "") + or_nothing
    return "" if abs(value) <= most else f"{what} of at most {most:,}{or_nothing}"
