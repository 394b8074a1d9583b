"""Some of many places at which a test lets something go wrong. The short form of a test tries these only."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import TypeVar

PlaceT = TypeVar("PlaceT")


def spread(places: Sequence[PlaceT], most: int, random: Random) -> list[PlaceT]:
    """At most `most` places in their order: the first, the last, and one at random from each of equal parts between them."""
    if len(places) <= most:
        return list(places)
    inner, parts = places[1:-1], most - 2
    ends = [len(inner) * part // parts for part in range(parts + 1)]
    return [places[0], *(inner[random.randrange(start, end)] for start, end in pairwise(ends)), places[-1]]
