"""How likely events are to have an attribute and a value: what the planner weighs access paths with.

The numbers come from a sample of events. Without a sample they come from the subscriptions: an attribute or a value that many
subscriptions name is taken to be frequent in events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.scale import Scales, locate
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import F64s

_PRIOR = 8.0
"""Values added to the counts of each dimension, spread evenly over its spaces, so that no space has likelihood 0."""
Counts = F64s


class Likelihood(NamedTuple):
    """Probabilities on the scales of a segment, as kernels read them."""

    cumulative: F64s
    """Over all cells: the spaces f to g of dimension d have cumulative[cell[d] + g + 1] - cumulative[cell[d] + f]."""
    presence: F64s
    """Dimension -> the probability that an event has it."""


def likelihood_of(scales: Scales, predicates: Predicates, sample: EventBatch | None) -> Likelihood:
    """The probabilities that a sample of events shows, or without a sample, that the predicates suggest."""
    values = np.zeros(int(scales.cell[-1]))
    seen = np.zeros(len(scales.spaces))
    if sample is not None and len(sample.start) > 1:
        _count_values(sample, scales, values, seen)
        events = len(sample.start) - 1
        presence = (seen + 0.5) / (events + 1)
    else:
        _count_points(predicates, scales, values, seen)
        uses = np.bincount(scales.local[predicates.dimension], minlength=len(seen))
        presence = uses / max(uses.max(initial=1), 1)
    dimension = np.repeat(np.arange(len(seen)), scales.spaces)
    # A share counts events that have a value in the space: an event may have values in several spaces of a dimension.
    share = (values + _PRIOR / scales.spaces[dimension]) / (seen[dimension] + _PRIOR)
    cumulative = np.zeros(len(values) + 1)
    np.cumsum(share * presence[dimension], out=cumulative[1:])
    return Likelihood(cumulative, presence)


@lean_kernel
def _count_values(sample: EventBatch, scales: Scales, values: Counts, seen: Counts) -> None:
    """Count how often events have a value in each space, and in each dimension."""
    local = scales.local
    for e in range(len(sample.start) - 1):
        before = -1
        for v in range(sample.start[e], sample.start[e + 1]):
            if sample.dimension[v] >= len(local) or local[sample.dimension[v]] < 0:
                continue
            d = local[sample.dimension[v]]
            f = locate(sample.lo[v], d, scales)
            g = f if sample.hi[v] == sample.lo[v] else locate(sample.hi[v], d, scales)
            for s in range(f, min(g, scales.spaces[d] - 1) + 1):
                values[scales.cell[d] + s] += 1
            seen[d] += d != before
            before = d


@lean_kernel
def _count_points(predicates: Predicates, scales: Scales, values: Counts, seen: Counts) -> None:
    """Count how often predicates name a single key in each space, and in each dimension."""
    for p in range(len(predicates.dimension)):
        d = scales.local[predicates.dimension[p]]
        for i in range(predicates.start[p], predicates.start[p + 1]):
            lo, hi = predicates.lo[i], predicates.hi[i]
            if lo == hi and lo != KEY_MIN and hi != KEY_MAX:
                values[scales.cell[d] + locate(lo, d, scales)] += 1
                seen[d] += 1
