"""How fast a card matches: its kernel alone, and batches from Arrow to Arrow beside the processors of the same machine.

python -m benchmarks.gpu [--sizes 1000000] [--shapes dense ads] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from benchmarks.matching import Loaded, events_of
from benchmarks.shapes import SHAPES, config_of
from tamis.experiments.machine import machine, versions
from tamis.gpu import devices
from tamis.gpu.buffers import Buffers
from tamis.gpu.card import SegmentArrays, SegmentsOnCard, card_of
from tamis.gpu.card_arrays import NO_ROOM
from tamis.gpu.matching import launch, run_kernel
from tamis.gpu.pinned import PinnedPool
from tamis.kernels.numbers import I32s
from tamis.matcher.options import processors

_SHAPES = ("dense", "sparse", "zipf", "ads")
_EVENTS = {"planted": 65_536, "other": 262_144}
"""Events of a batch."""
_DRAWN = 16_384
"""Events that are drawn; a batch repeats them."""
_PASSES = 7


def measure_all(options: argparse.Namespace) -> dict[str, Any]:
    """All figures for the given options. Each is printed as soon as it is measured."""
    rows = []
    for size in options.sizes:
        for shape in options.shapes:
            loaded = Loaded(config_of(SHAPES[shape][0], size, options.seed))
            loaded.matcher.optimize()
            for kind in options.kinds:
                rows.append({"shape": shape, "subscriptions": size, "kind": kind, **_measure(loaded, kind, options)})
                sys.stdout.write(_line(rows[-1]) + "\n")
                sys.stdout.flush()
            del loaded
    return {
        "benchmark": "GPU",
        "machine": machine(),
        "device": devices()[0]._asdict(),
        "threads": processors(),
        "versions": versions(),
        "tamis": tamis.__version__,
        "seed": options.seed,
        "rows": rows,
    }


def _measure(loaded: Loaded, kind: str, options: argparse.Namespace) -> dict[str, Any]:
    count = 64 if options.quick else _EVENTS[kind]
    drawn = events_of(loaded.workload, kind, min(count, _DRAWN))
    events = pa.concat_tables([drawn] * (count // len(drawn)))
    few = drawn.slice(0, 2_000)
    matcher = loaded.matcher
    with loaded.learning_nothing():
        began = time.perf_counter()
        _compare(matcher.match_batch(few), matcher.match_batch(few, device="gpu"))
        first = time.perf_counter() - began
        kernel, candidates = _kernel(loaded, events, 2 if options.quick else _PASSES)
        works: dict[str, Callable[[], pa.Table]] = {
            "gpu": lambda: matcher.match_batch(events, device="gpu"),
            "cpu": lambda: matcher.match_batch(events),
        }
        found: dict[str, list[float]] = {name: [] for name in works}
        matches = 0
        for _ in range(1 if options.quick else _PASSES):
            for name, work in works.items():
                began = time.perf_counter()
                matches = len(work())
                found[name].append(time.perf_counter() - began)
    seconds = {name: min(times) for name, times in found.items()}
    return {
        "events": count,
        "matches": matches / count,
        "candidates": candidates / count,
        "first_seconds": first,
        "kernel_events": count / kernel,
        "gpu_events": count / seconds["gpu"],
        "cpu_events": count / seconds["cpu"],
        "card": matcher.stats()["cards"],
    }


def _kernel(loaded: Loaded, events: pa.Table, passes: int) -> tuple[float, int]:
    """The best time of the kernel on events that are on the card already, over all segments, and how many entries it visits."""
    batch = loaded.encoded(events)
    count = len(batch.start) - 1
    segments = SegmentsOnCard(card_of(0))
    buffers = Buffers(segments.card, PinnedPool(segments.card))
    seconds, visited = 0.0, 0
    for segment in loaded.engine.version.segments:
        arrays = segments.find(segment)
        assert arrays is not None
        todo, lacks_room = np.arange(count, dtype=np.int32), True
        with segments.card.here():
            buffers.begin(batch, arrays.sizes)
            while lacks_room:
                counts, rows, more = launch(arrays, todo, buffers)
                lacks_room = bool((counts == NO_ROOM).any())
                buffers.make_room(int(rows.max()), int(rows.sum()) + int(counts.clip(0).sum()))
            seconds += min(_seconds_on_card(arrays, todo, buffers) for _ in range(passes))
        visited += more
    return seconds, visited


def _seconds_on_card(arrays: SegmentArrays, todo: I32s, buffers: Buffers) -> float:
    """What the card's own clock says of one run of the kernel."""
    cuda = buffers.card.cuda
    buffers.clear_results()
    there = buffers.put("todo", todo)
    buffers.wait()
    begin, end = (cuda.event() for _ in range(2))
    begin.record(buffers.stream)
    run_kernel(arrays, there, buffers)
    end.record(buffers.stream)
    end.synchronize()
    return float(cuda.event_elapsed_time(begin, end)) / 1000


def _compare(one: pa.Table, other: pa.Table) -> None:
    order = [("event", "ascending"), ("subscription", "ascending")]
    assert one.sort_by(order).equals(other.sort_by(order)), "the card found other matches than the processor"


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['shape']:8} {row['subscriptions']:12,} {row['kind']:8} kernel {row['kernel_events'] / 1e6:8.2f} M events/s   "
        f"gpu {row['gpu_events'] / 1e6:7.3f}   cpu {row['cpu_events'] / 1e6:7.3f}   {row['matches']:8.1f} matches of "
        f"{row['candidates']:8.1f} entries   first {row['first_seconds']:.1f} s"
    )


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description="Measure how fast a card matches.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000], help="(default: 1,000,000)")
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), metavar="SHAPE", default=list(_SHAPES))
    parser.add_argument("--kinds", nargs="+", choices=list(_EVENTS), default=list(_EVENTS))
    parser.add_argument("--quick", action="store_true", help="little data and few passes: to see that it runs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the workloads (default: 1)")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    results = measure_all(options)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
