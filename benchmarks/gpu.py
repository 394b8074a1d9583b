"""How fast a card matches: its kernel alone, and batches from Arrow to Arrow beside the processors of the same machine.

python -m benchmarks.gpu [--sizes 1000000] [--shapes dense ads] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from benchmarks.matching import Loaded, events_of
from benchmarks.shapes import SHAPES, config_of
from tamis.encoding.events.event_table import TableEncoder
from tamis.engine.matching.results import are_lazy
from tamis.experiments.machine import machine, versions
from tamis.gpu import devices
from tamis.gpu.buffers import Buffers
from tamis.gpu.card import Card, SegmentArrays, SegmentsOnCard, card_of
from tamis.gpu.card_arrays import NO_ROOM
from tamis.gpu.matching import CardMatching, launch, run_kernel
from tamis.gpu.pinned import PinnedPool
from tamis.gpu.uploads import Uploads
from tamis.kernels.numbers import I32s
from tamis.matcher.event_shares import ON_CARD
from tamis.matcher.load import load_store
from tamis.matcher.matcher import matcher_over
from tamis.matcher.options import processors
from tamis.workload import AnyConfig, generate

_SHAPES = ("dense", "sparse", "zipf", "ads")
_EVENTS = {"planted": 131_072, "other": 1_048_576}
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
        "shards": _measure_shards(options) if options.shards else None,
    }


def _measure(loaded: Loaded, kind: str, options: argparse.Namespace) -> dict[str, Any]:
    count = 64 if options.quick else _EVENTS[kind]
    drawn = events_of(loaded.workload, kind, min(count, _DRAWN))
    events = pa.concat_tables([drawn] * (count // len(drawn))).combine_chunks()
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
            "gpu_count": lambda: matcher.count_batch(events, device="gpu"),
        }
        found: dict[str, list[float]] = {name: [] for name in works}
        matches = 0
        for _ in range(1 if options.quick else _PASSES):
            for name, work in works.items():
                began = time.perf_counter()
                result = work()
                found[name].append(time.perf_counter() - began)
                matches = len(result) if name == "gpu" else matches
                del result  # Its memory serves the next pass.
    seconds = {name: min(times) for name, times in found.items()}
    timeline = _timeline(loaded, events.slice(0, ON_CARD), 2 if options.quick else _PASSES)
    return {
        "events": count,
        "matches": matches / count,
        "candidates": candidates / count,
        "first_seconds": first,
        "kernel_events": count / kernel,
        "gpu_events": count / seconds["gpu"],
        "cpu_events": count / seconds["cpu"],
        "count_events": count / seconds["gpu_count"],
        "timeline": timeline,
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
            buffers.begin(batch, Uploads(segments.card))
            buffers.lay_out(arrays.sizes)
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
    buffers.clear_results(0)
    there = buffers.put("todo", todo)
    buffers.wait()
    begin, end = (cuda.event() for _ in range(2))
    begin.record(buffers.stream)
    run_kernel(arrays, there, buffers)
    end.record(buffers.stream)
    end.synchronize()
    return float(cuda.event_elapsed_time(begin, end)) / 1000


class _TimedCard(Card):
    """A card that notes how long each step takes by its own clock."""

    def __init__(self, card: Card) -> None:
        super().__init__(card.cuda, card.number)
        self._noted: list[tuple[str, Any, Any]] = []

    def launch(
        self, kernel: Any, blocks: int, threads: int, stream: Any, shared: int, arguments: tuple[Any, ...]
    ) -> None:
        with self._step(kernel.__name__, stream):
            super().launch(kernel, blocks, threads, stream, shared, arguments)

    def copy_there(self, array: Any, there: Any, stream: Any) -> None:
        with self._step("upload", stream):
            super().copy_there(array, there, stream)

    def copy_here(self, there: Any, array: Any, stream: Any) -> None:
        with self._step("download", stream):
            super().copy_here(there, array, stream)

    @contextmanager
    def _step(self, name: str, stream: Any) -> Iterator[None]:
        begin, end = (self.cuda.event() for _ in range(2))
        begin.record(stream)
        yield
        end.record(stream)
        self._noted.append((name, begin, end))

    def take_steps(self) -> dict[str, float]:
        """The seconds of all steps since the last call, by name."""
        steps: dict[str, float] = {}
        for name, begin, end in self._noted:
            end.synchronize()
            steps[name] = steps.get(name, 0.0) + float(self.cuda.event_elapsed_time(begin, end)) / 1000
        self._noted.clear()
        return steps


def _timeline(loaded: Loaded, events: pa.Table, passes: int) -> dict[str, float]:
    """The seconds of each step for one part of a batch, in one thread and without overlap; and of the whole part."""
    card = _TimedCard(card_of(0))
    matching = CardMatching(SegmentsOnCard(card))
    engine, dimensions = loaded.engine, loaded.store.dimensions
    names = loaded.store.ids.names_at_hand()
    assert names is not None
    best: dict[str, float] = {}
    for _ in range(passes):
        batch_matching = matching.for_batch()
        began = time.perf_counter()
        rows, _ = TableEncoder(events, dimensions, waits=True).waiting(0, len(events))
        found = engine.match(engine.version, rows, len(dimensions), batch_matching)
        assert are_lazy(found.slots)
        named = found.slots.named(0, names.place)
        whole = time.perf_counter() - began
        steps = card.take_steps() | {"whole": whole}
        if not best or whole < best["whole"]:
            best = steps
        del found, named
    return best | {"events": len(events)}


def _build_shard(config: AnyConfig, first: int, path: str) -> float:
    """Build and save a matcher whose ids begin at `first`; returns how many seconds that took."""
    began = time.perf_counter()
    table = generate(config).subscriptions()
    ids = pa.array(table["id"].to_numpy() + first)
    matcher: tamis.Matcher[int] = tamis.Matcher()
    matcher.add_table(table.set_column(0, "id", ids))
    matcher.optimize()
    matcher.save(path)
    return time.perf_counter() - began


def _measure_shards(options: argparse.Namespace) -> dict[str, Any]:
    """Many dense subscriptions in shards that processes build at once. All shards are on one card, matched one after another."""
    preset, count = SHAPES["dense"][0], 64 if options.quick else _EVENTS["other"]
    drawn = generate(config_of(preset, 1_000, options.seed)).other_events(min(count, _DRAWN))
    events = pa.concat_tables([drawn] * (count // len(drawn))).combine_chunks()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        paths = [f"{folder}/{number}.tamis" for number in range(options.shards)]
        configs = [config_of(preset, options.each, options.seed + number) for number in range(options.shards)]
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(options.processes, mp_context=spawn, max_tasks_per_child=1) as pool:
            firsts = [options.each * number for number in range(options.shards)]
            built = list(pool.map(_build_shard, configs, firsts, paths))
        built_in = time.perf_counter() - began
        stores = [load_store(path, True) for path in paths]
        for store in stores:
            store.sample.next = sys.maxsize  # No shard is planned again meanwhile.
        shards = [matcher_over(store, "gpu") for store in stores]
        few = events.slice(0, 500)
        for shard in shards:
            _compare(shard.match_batch(few), shard.match_batch(few, device="cpu"))
        matches, tables, counts = 0, list[float](), list[float]()
        for _ in range(2 if options.quick else 3):
            began = time.perf_counter()
            matches = sum(len(shard.match_batch(events)) for shard in shards)
            tables.append(time.perf_counter() - began)
            began = time.perf_counter()
            found = sum(int(shard.count_batch(events).sum()) for shard in shards)
            counts.append(time.perf_counter() - began)
            assert found == matches
        on_card = sum(shard.stats()["cards"][0]["bytes"] for shard in shards)
    row = {
        "subscriptions": options.shards * options.each,
        "shards": options.shards,
        "processes": options.processes,
        "build_seconds": built_in,
        "build_seconds_each": max(built),
        "card_bytes": on_card,
        "events": count,
        "matches": matches / count,
        "gpu_events": count / min(tables),
        "count_events": count / min(counts),
    }
    rates = f"{row['gpu_events'] / 1e6:.3f} M events/s, counts {row['count_events'] / 1e6:.3f}"
    where = f"{options.shards} shards, built in {built_in:.0f} s, {on_card / 1e9:.2f} GB on the card"
    sys.stdout.write(f"{row['subscriptions']:,} in {where}: {rates}, {row['matches']:.1f} matches\n")
    return row


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
    parser.add_argument("--shapes", nargs="*", choices=list(SHAPES), metavar="SHAPE", default=list(_SHAPES))
    parser.add_argument("--kinds", nargs="+", choices=list(_EVENTS), default=list(_EVENTS))
    parser.add_argument("--shards", type=int, default=0, help="also match this many shards of dense subscriptions")
    parser.add_argument("--each", type=int, default=5_000_000, help="subscriptions of a shard (default: 5,000,000)")
    parser.add_argument("--processes", type=int, default=5, help="processes that build shards (default: 5)")
    parser.add_argument("--folder", help="where shards are kept meanwhile (default: the system's folder)")
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
