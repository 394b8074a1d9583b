"""Subscriptions that a call could not add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from tamis.errors import OptionError, TamisError, shortened

OnError = Literal["raise", "collect"]


class Rejected(NamedTuple):
    """A subscription that `add_many` or `add_table` did not add.

    Attributes
    ----------
    id : Any
        The id, as it was given.
    row : int
        The position in the call, counted from 0.
    error : TamisError
        What is wrong.
    """

    id: Any
    row: int
    error: TamisError


class Rejections:
    """The errors of the rows of one call. The first error is raised, or all are collected."""

    def __init__(self, on_error: object, ids: Sequence[Any]) -> None:
        if on_error not in ("raise", "collect"):
            raise OptionError(f"on_error must be 'raise' or 'collect', not {shortened(on_error)}")
        self.collects = on_error == "collect"
        self._ids = ids
        self._errors: dict[int, TamisError] = {}

    def reject(self, row: int, error: TamisError) -> None:
        """Reject a row, unless it was rejected before.

        Raises
        ------
        TamisError
            The error itself, if errors are not collected.
        """
        if not self.collects:
            raise error
        self._errors.setdefault(row, error)

    def reject_all(self, errors: Mapping[int, TamisError]) -> None:
        """The same for several rows."""
        for row, error in errors.items():
            self.reject(row, error)

    def listed(self) -> list[Rejected]:
        """All that were rejected, in the order of their rows."""
        return [Rejected(self._ids[row], row, error) for row, error in sorted(self._errors.items())]
