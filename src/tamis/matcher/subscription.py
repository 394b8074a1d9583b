"""A subscription as users read it back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from tamis.language.expression import Expression
from tamis.matcher.ids import IdT


@dataclass(frozen=True, slots=True)
class Subscription(Generic[IdT]):
    """A subscription of a matcher, as it was when you asked for it.

    Attributes
    ----------
    id : str or int
        The id.
    expression : Expression
        The expression.
    weight : float
        The weight, 0 unless one was given.

    Examples
    --------
    >>> import tamis
    >>> matcher = tamis.Matcher()
    >>> matcher.add("ann", "price<20 and genre='crime'", weight=2)
    >>> matcher["ann"].text
    "price < 20 AND genre = 'crime'"
    """

    id: IdT
    expression: Expression
    weight: float

    @property
    def text(self) -> str:
        """The expression, printed as SQL text."""
        return str(self.expression)
