"""What each part of matching with earlier events brings: the join table, the order of phases, and the pre-filter.

python -m benchmarks.history_parts [--quick] [--json FILE] [--parts PART ...]

Each part is measured with and without it, by turns in one process, in processor time of one thread.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from benchmarks.history import SETS, offers, seconds_of
from tamis.earlier.join_table import EventJoins
from tamis.earlier.phases import Figures as Estimates
from tamis.earlier.phases import attributes_left, estimated
from tamis.experiments.joining import Joined, filtered_matcher
from tamis.experiments.machine import machine, versions
from tamis.kernels.numbers import I32s
from tamis.language.event import FlatEvent, flatten

Figures = dict[str, Any]

CLAIMS = {
    "table": "4.2: each distinct join predicate is considered at most once",
    "phases": "4.3.1: joins and constants cost about the same; statistics tell which phase should come first",
    "prefilter": "4.3.2: fewer profiles are left to be matched, and parts of the indexes are not used",
    "needs": "4.3.2: implied constraints are kept up as documents come and go",
}
"""What the paper says of each part. It has no measurements of them."""

_MOST_JOINS = 250
"""Joins that are decided first. The time of more joins is projected."""
_RARE = "SELECT 1 FROM history h WHERE h.seller ="
PREFILTERED: dict[str, Callable[[int], str]] = {
    **{name: SETS[name] for name in ("beside constants", "EXISTS with a constant of its own")},
    "a constant that few events have": lambda place: (
        f"item = {place % 1_000} AND EXISTS ({_RARE} 'seller {place * 7 % 100_000}' AND h.price > price)"
    ),
    "a new value": lambda place: (
        f"item = {place % 1_000} AND seller = 'seller {place % 10_000}' AND NOT EXISTS ({_RARE} seller)"
    ),
    "joins alone": SETS["joins alone"],
    "joins alone, of few events": lambda place: f"EXISTS ({_RARE} 'seller {10_000 + place % 100}' AND h.price > price)",
}
"""Subscriptions by their place."""


class Sizes:
    """How much is measured."""

    def __init__(self, quick: bool) -> None:
        self.subscriptions = 400 if quick else 100_000
        self.filtered = 400 if quick else 30_000
        """Subscriptions of the matchers with and without the pre-filter."""
        self.retained = 300 if quick else 100_000
        self.events = 20 if quick else 200
        self.batch = 40 if quick else 2_000
        self.turns = 2 if quick else 3
        self.needs = (4, 16) if quick else (4, 16, 64, 256, 1024)


def shop(name: str, sizes: Sizes) -> Joined:
    """Subscriptions of the shop, and retained events. The constant parts are settled."""
    joined = Joined.of([SETS[name](place) for place in range(sizes.subscriptions)], offers(1, sizes.retained))
    joined.constants.match_batch(offers(2, 1_000), threads=1)
    joined.constants.optimize()
    return joined


def _history(sizes: Sizes) -> tamis.History:
    return tamis.History(rows=sizes.retained)


def by_turns(ways: dict[str, Callable[[int], object]], turns: int, events: int) -> dict[str, float]:
    """The microseconds of an event in each way: the median of some turns. Each turn has other events."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name in list(ways) if turn % 2 else reversed(list(ways)):
            seconds = seconds_of(lambda work=ways[name], turn=turn: work(turn))  # type: ignore[misc]
            if turn:
                taken[name].append(1e6 * seconds / events)
    return {name: median(each) for name, each in taken.items()}


def flat_events(seed: int, sizes: Sizes) -> list[tuple[dict[str, Any], FlatEvent]]:
    given = offers(seed, sizes.events).to_pylist()
    return [(event, flatten(event)) for event in given]


# -- the join table


def join_table(name: str, sizes: Sizes) -> Figures:
    """Each distinct join once for an event, beside once for each subscription. Only the joins are timed."""
    joined = shop(name, sizes)
    drawn: dict[int, list[tuple[FlatEvent, I32s]]] = {}
    for turn in range(sizes.turns + 1):
        events = flat_events(100 + turn, sizes)
        drawn[turn] = [(flat, joined.candidates(event)) for event, flat in events]

    def shared(turn: int) -> list[list[int]]:
        return [joined.satisfied(flat, slots) for flat, slots in drawn[turn]]

    def alone(turn: int) -> list[list[int]]:
        return [joined.satisfied_one_by_one(flat, slots) for flat, slots in drawn[turn]]

    assert shared(0) == alone(0)
    candidates = np.mean([len(slots) for events in drawn.values() for _, slots in events])
    taken = by_turns({"shared": shared, "alone": alone}, sizes.turns, sizes.events)
    return {
        "set": name,
        "joins": joined.table.joins(),
        "candidates": float(candidates),
        "shared_us": taken["shared"],
        "alone_us": taken["alone"],
        "ratio": taken["alone"] / taken["shared"],
        "claim": CLAIMS["table"],
    }


# -- the order of phases


def phases(name: str, sizes: Sizes) -> Figures:
    """Constants first, as the matcher does it, beside joins first: all joins, then the engine, then what both have."""
    joined, count = shop(name, sizes), sizes.subscriptions
    table, retained = joined.table, joined.retained
    numbers = table.numbers(np.arange(count, dtype=np.int32))
    distinct = [int(each) for each in np.unique(numbers)]
    drawn = {turn: flat_events(100 + turn, sizes) for turn in range(sizes.turns + 1)}
    figures = {"left": 0, "events": 0, "held": 0}

    def constants_first(turn: int) -> list[int]:
        found = []
        for event, flat in drawn[turn]:
            found.append(len(joined.satisfied(flat, joined.candidates(event))))
        return found

    def joins_first(turn: int) -> list[int]:
        found = []
        for event, flat in drawn[turn]:
            joins = EventJoins(flat, retained.begin(flat))
            holds = np.zeros(max(distinct) + 1, np.bool_)
            holds[distinct] = table.holds(distinct, joins)
            slots = joined.candidates(event)
            found.append(int(np.count_nonzero(holds[numbers[slots]])))
            figures["held"] += int(np.count_nonzero(holds))
        return found

    if len(distinct) > _MOST_JOINS:
        # Joins first would take minutes. Some of the joins are enough to say what one takes.
        distinct = distinct[:: len(distinct) // _MOST_JOINS]
        numbers = np.where(np.isin(numbers, distinct), numbers, distinct[0])
    share = len(distinct) / max(len(np.unique(table.numbers(np.arange(count, dtype=np.int32)))), 1)
    before = table.decided
    taken = by_turns({"constants": constants_first, "joins": joins_first}, sizes.turns, sizes.events)
    events = sizes.events * (sizes.turns + 1)
    left = (table.decided - before) / events
    truth = figures["held"] / (events * len(distinct))
    attributes = attributes_left(3, count, 3, truth)
    estimate = estimated(Estimates(count, sizes.retained, 4, table.joins(), left, 3, attributes))
    return {
        "set": name,
        "joins": table.joins(),
        "joins_left": left,
        "attributes": 3,
        "attributes_left": attributes,
        "constants_first_us": taken["constants"],
        "joins_first_us": taken["joins"] / share if share < 1 else taken["joins"],
        "joins_first_is_projected": share < 1,
        "estimates": estimate._asdict(),
        "order": estimate.order,
        "claim": CLAIMS["phases"],
    }


# -- the pre-filter


def prefilter(name: str, sizes: Sizes) -> Figures:
    """Matchers with and without the pre-filter."""
    texts = [PREFILTERED[name](place) for place in range(sizes.filtered)]
    return {"set": name, **with_and_without(texts, sizes), "claim": CLAIMS["prefilter"]}


def needs(distinct: int, sizes: Sizes) -> Figures:
    """The same with some distinct needs, half of which no earlier event satisfies. One in ten events asks."""

    def text(place: int) -> str:
        seller = place % distinct + (10_000 if place % 2 else 0)
        return f"item = {place % 100} AND EXISTS (SELECT 1 FROM history h WHERE h.seller = 'seller {seller}' AND h.price > price)"

    texts = [text(place) for place in range(max(2 * distinct, 100))]
    return {"needs": distinct, **with_and_without(texts, sizes), "claim": CLAIMS["needs"]}


def with_and_without(texts: Sequence[str], sizes: Sizes) -> Figures:
    """Times and counts of matchers with and without the pre-filter."""
    matchers = {
        label: filtered_matcher(_history(sizes), filtered) for label, filtered in (("off", False), ("on", True))
    }
    figures: Figures = {}
    for label, matcher in matchers.items():
        matcher.match_batch(offers(1, sizes.retained), threads=1)  # Before there are subscriptions that match.
        figures[f"add_{label}_s"] = seconds_of(lambda matcher=matcher: matcher.add_many(range(len(texts)), texts))  # type: ignore[misc]
        matcher.optimize()
    batches: dict[int, pa.Table] = {turn: offers(100 + turn, sizes.batch) for turn in range(sizes.turns + 1)}
    singles = {turn: offers(200 + turn, sizes.events).to_pylist() for turn in range(sizes.turns + 1)}

    def batch(matcher: tamis.Matcher[int]) -> Callable[[int], object]:
        return lambda turn: matcher.count_batch(batches[turn], threads=1)

    def single(matcher: tamis.Matcher[int]) -> Callable[[int], object]:
        return lambda turn: [matcher.match(event) for event in singles[turn]]

    before = {label: matcher.stats()["history"] for label, matcher in matchers.items()}
    for way, make, count in (("batch", batch, sizes.batch), ("single", single, sizes.events)):
        taken = by_turns({label: make(matcher) for label, matcher in matchers.items()}, sizes.turns, count)
        figures |= {f"{way}_{label}_us": each for label, each in taken.items()}
        figures[f"{way}_ratio"] = taken["off"] / taken["on"]
    after = {label: matcher.stats()["history"] for label, matcher in matchers.items()}
    events = (sizes.turns + 1) * (sizes.batch + sizes.events)
    figures["skipped"] = after["on"]["skipped"]
    figures["skips"] = (after["on"]["skips"] - before["on"]["skips"]) / events
    for label in matchers:
        figures[f"decided_{label}"] = (after[label]["decided"] - before[label]["decided"]) / events
    return figures


PARTS = ("table", "phases", "prefilter", "needs")


def measure(quick: bool, chosen: Sequence[str] = PARTS) -> Figures:
    """The figures of some parts. Each figure is printed as soon as it is measured."""
    sizes = Sizes(quick)
    figures: Figures = {
        "benchmark": "history, part by part",
        "machine": machine(),
        "versions": versions(),
        "tamis": tamis.__version__,
        "sizes": {
            "subscriptions": sizes.subscriptions,
            "filtered": sizes.filtered,
            "retained": sizes.retained,
            "batch": sizes.batch,
        },
    }
    beside = ("beside constants", "EXISTS with a constant of its own")
    parts: dict[str, tuple[Callable[[Any, Sizes], Figures], Sequence[Any]]] = {
        "table": (join_table, beside),
        "phases": (phases, beside),
        "prefilter": (prefilter, tuple(PREFILTERED)),
        "needs": (needs, sizes.needs),
    }
    for part, (work, sets) in parts.items():
        figures[part] = []
        for each in sets if part in chosen else ():
            figures[part].append(work(each, sizes))
            sys.stdout.write(f"{part}: {json.dumps(figures[part][-1])}\n")
            sys.stdout.flush()
    figures["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="little data, to try the benchmark")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="measure only these parts")
    given = parser.parse_args()
    figures = measure(given.quick, given.parts)
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
