"""How likely events are to have an attribute and a value: what the planner weighs access paths with.

From a sample of events where there is one, else from the subscriptions themselves: what they ask about often is taken to
come often.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.scale import Scales, locate
from tamis.kernels.kernel import lean_kernel

# Values are smoothed as if so many had been seen, spread evenly over the spaces.
_PRIOR = 8.0


class Likelihood(NamedTuple):
    """Probabilities on the scales of a segment, as kernels read them."""

    cumulative: npt.NDArray[np.float64]
    """Over all cells: that of the spaces f to g of dimension d is cumulative[cell[d] + g + 1] - cumulative[cell[d] + f]."""
    presence: npt.NDArray[np.float64]
    """That an event has the dimension."""


def likelihood_of(scales: Scales, predicates: Predicates, sample: EventBatch | None) -> Likelihood:
    """The probabilities that a sample of events shows, or else that the predicates suggest."""
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
    # An event may have several values of a dimension: shares are of events that have the space.
    share = (values + _PRIOR / scales.spaces[dimension]) / (seen[dimension] + _PRIOR)
    cumulative = np.zeros(len(values) + 1)
    np.cumsum(share * presence[dimension], out=cumulative[1:])
    return Likelihood(cumulative, presence)


@lean_kernel
def _count_values(sample: Any, scales: Any, values: Any, seen: Any) -> None:
    start, dimension, lo, hi = sample
    local, spaces, cell = scales.local, scales.spaces, scales.cell
    for e in range(len(start) - 1):
        before = -1
        for v in range(start[e], start[e + 1]):
            if dimension[v] >= len(local) or local[dimension[v]] < 0:
                continue
            d = local[dimension[v]]
            f = locate(lo[v], d, scales)
            g = f if hi[v] == lo[v] else locate(hi[v], d, scales)
            for s in range(f, min(g, spaces[d] - 1) + 1):
                values[cell[d] + s] += 1
            seen[d] += d != before
            before = d


@lean_kernel
def _count_points(predicates: Any, scales: Any, values: Any, seen: Any) -> None:
    """Count how often predicates name each space alone."""
    dimension, _, start, lo, hi = predicates
    local, cell = scales.local, scales.cell
    for p in range(len(dimension)):
        d = local[dimension[p]]
        for i in range(start[p], start[p + 1]):
            if lo[i] == hi[i] and lo[i] != KEY_MIN and hi[i] != KEY_MAX:
                values[cell[d] + locate(lo[i], d, scales)] += 1
                seen[d] += 1
