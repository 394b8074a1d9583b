"""How much the words of a segment hold. Whatever is larger takes another way, with the same result."""

from __future__ import annotations

from typing import NamedTuple

from tamis.engine.layout.key_numbers import MOST_NUMBERS
from tamis.engine.layout.lookup import MOST_SIZE


class LayoutLimits(NamedTuple):
    """The limits of one segment. Tests make them small."""

    list_size: int = MOST_SIZE
    """Entries from which on a list is looked up in the directory: the word of a whole number does not hold its size."""
    key_numbers: int = MOST_NUMBERS
    """The most numbers of keys in one dimension, free ones included. If there are more, predicates on it compare keys."""


USUAL_LAYOUT_LIMITS = LayoutLimits()
