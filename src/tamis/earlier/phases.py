"""The order of phases: constants first or joins first, by the formulas of the paper.

    no index          N * D * c
    joins first       j * log D + k' * log N
    constants first   k * log N + j' * log D

    N   subscriptions                D   retained events           c   conjuncts of a subscription
    j   distinct joins               k   attributes of constants that an event has
    j'  joins that are left after the constants                    k'  attributes of constants that are left after the joins

j' and k' depend on the event, so they are estimated from statistics. j' is the mean number of joins that were decided for an
event so far. An attribute of constants is left if a subscription on it is left. Joins leave a share s of the subscriptions, and m
subscriptions are about an attribute. So k' = k * (1 - (1 - s) ** m).

Reference: N. Tatbul, section 4.3.1. Departures:

- Our engine always applies the constants first. Joins first would decide all j joins, and then search the same lists of the
  engine: a smaller set of subscriptions does not make them shorter, so k' * log N is k * log N in truth. What remains of the
  choice is j against j', and j' is never larger. `benchmarks.history_parts` measures both.
- What has no constant part is decided first and always: its joins are in j' as they are in j.
- The formulas count comparisons, so both terms weigh the same. A join of ours takes some microseconds, a list of the engine tens
  of nanoseconds.
- The paper gives log D to a join, although its document vector has D bits, all of which "for all" and complex joins read.
"""

from __future__ import annotations

import math
from typing import NamedTuple

CONSTANTS_FIRST, JOINS_FIRST = "constants first", "joins first"


class Figures(NamedTuple):
    """What the formulas take, in the letters of the paper."""

    subscriptions: int
    """N"""
    retained: int
    """D"""
    conjuncts: float
    """c"""
    joins: int
    """j"""
    joins_left: float
    """j', the joins that are decided for an event after the constants."""
    attributes: float
    """k"""
    attributes_left: float
    """k', the attributes of constants that are left after the joins."""


class Phases(NamedTuple):
    """Comparisons for an event, as the formulas estimate them."""

    no_index: float
    joins_first: float
    constants_first: float

    @property
    def order(self) -> str:
        """The order with the lower estimate. Constants come first if both are equal."""
        return JOINS_FIRST if self.joins_first < self.constants_first else CONSTANTS_FIRST


def estimated(figures: Figures) -> Phases:
    """The formulas of section 4.3.1."""
    by_document, by_profile = _log(figures.retained), _log(figures.subscriptions)
    return Phases(
        figures.subscriptions * figures.retained * figures.conjuncts,
        figures.joins * by_document + figures.attributes_left * by_profile,
        figures.attributes * by_profile + figures.joins_left * by_document,
    )


def attributes_left(attributes: float, subscriptions: int, asked: int, share: float) -> float:
    """An estimate of k', if joins leave a share of the subscriptions, whose constants are about `asked` attributes."""
    about_one = subscriptions / max(asked, 1)
    gone: float = (1 - min(max(share, 0.0), 1.0)) ** about_one
    return attributes * (1 - gone)


def _log(count: int) -> float:
    """Steps of a binary search."""
    return math.log2(max(count, 1) + 1)
