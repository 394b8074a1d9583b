"""The ids of a file so far, to find repeated ids and ids of another type."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.cli.subscription_lines import Subscription
    from tamis.matcher.ids import Id


EMPTY = "the id is empty"


class SeenIds:
    """Id -> its first line. This line owns the id even if its expression is wrong.

    All ids have the type of the first.
    """

    def __init__(self) -> None:
        self._lines: dict[Id, int] = {}
        self._type: type | None = None

    def __len__(self) -> int:
        return len(self._lines)

    def problem(self, subscription: Subscription) -> str | None:
        """Note an id; returns its problem, or None."""
        identifier = subscription.id
        if identifier == "":
            return EMPTY
        if self._type is None:
            self._type = type(identifier)
        if type(identifier) is not self._type:
            return f"earlier ids are {self._type.__name__}, but {identifier!r} is {type(identifier).__name__}"
        first = self._lines.setdefault(identifier, subscription.line)
        return None if first == subscription.line else also_of(identifier, first)


def also_of(identifier: Id, line: int) -> str:
    """The problem of an id that exists already."""
    return f"the id {identifier!r} is already used in line {line}"
