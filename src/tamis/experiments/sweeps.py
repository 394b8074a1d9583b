"""Sweeps: workloads along the horizontal axis of a plot. One parameter varies; the others keep the paper's defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from tamis.experiments.contenders import LIBRARIES
from tamis.experiments.figure import Place, Spot, spots_of
from tamis.experiments.scales import Scale
from tamis.workload import Column
from tamis.workload.styles import AnyConfig

Sweep = Callable[[Scale], list[Spot]]

_MOST_FOR_LIBRARIES = 30_000
"""The most subscriptions for libraries."""


def over_size(contenders: Iterable[str], base: AnyConfig, sizes: Sequence[Any]) -> Sweep:
    """The number of subscriptions varies."""
    names = tuple(contenders)
    return lambda scale: spots_of(names, [(count, replace(base, subscriptions=count)) for count in scale.sizes(sizes)])


def along(contenders: Iterable[str], column: Column, **changes: Any) -> Sweep:
    """What a column of a paper's table varies; `changes` are other parameters, with the paper's number of subscriptions."""
    base = replace(column.default, **changes)
    if column.parameters == ("subscriptions",):
        return over_size(contenders, base, column.values)
    places: list[tuple[Place, dict[str, Any]]] = []
    for value in column.values:
        values = value if isinstance(value, tuple) else (value,)
        places.append((values[0], dict(zip(column.parameters, values, strict=True))))
    return over_changes(contenders, base, places)


def over(contenders: Iterable[str], base: AnyConfig, parameter: str, values: Sequence[Any]) -> Sweep:
    """A parameter varies."""
    return over_changes(contenders, base, [(value, {parameter: value}) for value in values])


def over_changes(contenders: Iterable[str], base: AnyConfig, changes: Sequence[tuple[Place, dict[str, Any]]]) -> Sweep:
    """Several parameters vary together: places of the axis, and what changes there.

    If the number of subscriptions is among them, its ratios stay, even below the least number of the scale.
    """
    names = tuple(contenders)

    def spots(scale: Scale) -> list[Spot]:
        places = []
        for place, change in scale.thinned(changes):
            given = change.get("subscriptions")
            count = scale.subscriptions(base.subscriptions) if given is None else scale.share(given)
            places.append((place, replace(base, **{**change, "subscriptions": count})))
        return spots_of(names, places)

    return spots


def exactly_over(contenders: Iterable[str], base: AnyConfig, parameter: str, values: Sequence[Any]) -> Sweep:
    """A parameter varies; numbers of subscriptions are those of the paper at every scale."""
    names = tuple(contenders)
    return lambda scale: spots_of(
        names, [(value, replace(base, **{parameter: value})) for value in scale.thinned(values)]
    )


def libraries(base: AnyConfig, sizes: Sequence[Any]) -> Sweep:
    """DuckDB and polars, where the number of subscriptions varies, as far as they get in minutes."""

    def spots(scale: Scale) -> list[Spot]:
        counts = scale.sizes(sizes)
        few = [count for count in counts if count <= _MOST_FOR_LIBRARIES] or counts[:1]
        return spots_of(LIBRARIES, [(count, replace(base, subscriptions=count)) for count in few])

    return spots


def bars(contenders: Iterable[str], workloads: Sequence[tuple[str, AnyConfig]]) -> Sweep:
    """Bars: a group for each workload, which has the paper's number of subscriptions."""
    names = tuple(contenders)

    def spots(scale: Scale) -> list[Spot]:
        places = [
            (name, replace(workload, subscriptions=scale.subscriptions(workload.subscriptions)))
            for name, workload in workloads
        ]
        return spots_of(names, places)

    return spots


def joined(*sweeps: Sweep) -> Sweep:
    """The spots of several sweeps in one plot."""
    return lambda scale: [spot for sweep in sweeps for spot in sweep(scale)]
