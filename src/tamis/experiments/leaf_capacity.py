"""The capacity of BE-Tree's leaves, its most important parameter. Table 4 of its paper says which one to take:

share of the subscriptions that match    below 1 %    1 to 10 %    from 10 % on
capacity                                         5           20             160
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tamis.experiments.figure import Spot
from tamis.experiments.sweeps import Sweep
from tamis.papers.be_tree.tree import BETreeOptions
from tamis.workload.styles import AnyConfig

_TABLE = ((0.1, 160), (0.01, 20), (0.0, 5))
"""Shares from which on a capacity is taken."""
_BE_TREES = ("be-tree", "be-tree-b")
"""The contenders that have such leaves."""


def capacity_option(capacity: int) -> tuple[tuple[str, Any], ...]:
    """Options of a BE-Tree whose leaves hold so many expressions. The default is not named, so that figures share the point."""
    return () if capacity == BETreeOptions().max_cap else (("max_cap", capacity),)


def guided_capacity(workload: AnyConfig) -> int:
    """The capacity that table 4 takes for a workload.

    Workloads without a share, such as whole authors and titles, have some matches among thousands of subscriptions.
    """
    share = getattr(workload, "match_probability", 0.0)
    return next(capacity for least, capacity in _TABLE if share >= least)


def guided(spots: Sweep) -> Sweep:
    """The same spots, where each BE-Tree has the capacity that table 4 takes for its workload."""
    return lambda scale: [_guided(spot) for spot in spots(scale)]


def guided_options(contender: str, workload: AnyConfig) -> tuple[tuple[str, Any], ...]:
    """The options that table 4 gives to a contender. Only BE-Trees have some."""
    return capacity_option(guided_capacity(workload)) if contender in _BE_TREES else ()


def _guided(spot: Spot) -> Spot:
    point = spot.point
    options = (*point.options, *guided_options(point.contender, point.workload))
    return spot._replace(point=replace(point, options=options))
