"""Sweeps: workloads along the horizontal axis of a plot. One parameter varies; the others keep the paper's defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from tamis.experiments.figure import Place, Spot, spots_of
from tamis.experiments.scales import Scale
from tamis.workload import WorkloadConfig

Sweep = Callable[[Scale], list[Spot]]


def over_size(contenders: Iterable[str], base: WorkloadConfig, sizes: Sequence[int], **options: Any) -> Sweep:
    """The number of subscriptions varies."""
    names = tuple(contenders)

    def spots(scale: Scale) -> list[Spot]:
        places = [(count, replace(base, subscriptions=count)) for count in scale.sizes(sizes)]
        return spots_of(names, places, options)

    return spots


def over(
    contenders: Iterable[str],
    base: WorkloadConfig,
    parameter: str,
    values: Sequence[Any],
    *,
    subscriptions: int = 1_000_000,
    **options: Any,
) -> Sweep:
    """A parameter varies; `subscriptions` is the paper's number."""
    return over_changes(
        contenders, base, [(value, {parameter: value}) for value in values], subscriptions=subscriptions, **options
    )


def over_changes(
    contenders: Iterable[str],
    base: WorkloadConfig,
    changes: Sequence[tuple[Place, dict[str, Any]]],
    *,
    subscriptions: int = 1_000_000,
    **options: Any,
) -> Sweep:
    """Several parameters vary together: places of the axis, and what changes there. A number of subscriptions among the
    changes is the paper's."""
    names = tuple(contenders)

    def spots(scale: Scale) -> list[Spot]:
        places = []
        for place, change in scale.thinned(changes):
            count = scale.subscriptions(change.get("subscriptions", subscriptions))
            places.append((place, replace(base, **{**change, "subscriptions": count})))
        return spots_of(names, places, options)

    return spots


def joined(*sweeps: Sweep) -> Sweep:
    """The spots of several sweeps in one plot."""
    return lambda scale: [spot for sweep in sweeps for spot in sweep(scale)]
