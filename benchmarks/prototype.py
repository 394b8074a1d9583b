"""The engine beside another implementation of its technique, on that one's own workloads.

The folder named by `--against` holds plain modules, which need NumPy and Numba only:

    begen    generate(...): workloads as flat arrays                    common   encode, event_ranks, stats
    best     Best: an index over few values per attribute               wide     Wide: one over many values
    runs     Runs: one over price alerts                                run      SHAPES

Best chooses at import whether it uses vector code, so every choice gets a process of its own, which runs this module and
writes a line of JSON for each kind of events. Answers must be equal.

python -m benchmarks.prototype FOLDER --subscriptions 1000000
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import tamis
from benchmarks.timing import best_of, best_of_each, seconds_of
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN, double_codes
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions, canonical
from tamis.encoding.expressions.predicates import Predicates
from tamis.encoding.expressions.programs import ACCEPT, NO_PROGRAMS
from tamis.engine.matching.results import Life
from tamis.engine.matching.thread_scratch import ThreadScratch
from tamis.engine.rows import Rows
from tamis.engine.segment import Segment

Keys = npt.NDArray[np.int64]
Coding = Callable[[npt.NDArray[Any]], Keys]

NARROW = {
    "dense": {"dims": 100, "card": 100, "sub_size": 10, "event_size": 30, "eq": 0.4, "alpha": 0, "ops": "med"},
    "sparse": {"dims": 30_000, "card": 100, "sub_size": 10, "event_size": 30, "eq": 0.4, "alpha": 0, "ops": "med"},
    "zipf": {"dims": 1_000, "card": 100, "sub_size": 10, "event_size": 30, "eq": 0.4, "alpha": 1, "ops": "med"},
    "range": {"dims": 20, "card": 100, "sub_size": 5, "event_size": 15, "eq": 0, "alpha": 0, "ops": "med"},
    "ads": {"dims": 122, "card": 40, "sub_size": 9, "event_size": 20, "eq": 0.3, "alpha": 0.5, "ops": "high"},
}
_MILLION = {"card": 1_000_000, "alpha": 0, "ops": "med"}
WIDE = {
    "wide-dense": {"dims": 100, "sub_size": 10, "event_size": 30, "eq": 0.4, **_MILLION},
    "wide-range": {"dims": 100, "sub_size": 10, "event_size": 30, "eq": 0, **_MILLION},
    "wide-12": {"dims": 12, "sub_size": 4, "event_size": 10, "eq": 0.4, **_MILLION},
    "wide-12-range": {"dims": 12, "sub_size": 4, "event_size": 10, "eq": 0, **_MILLION},
}
ALERTS = "alerts"

_EQ, _NE, _LT, _LE, _GT, _GE, _BETWEEN, _IN, _NOT_IN = range(9)
"""The operators of `begen`."""

_EVENTS = {"planted": 100, "other": 2_000}
"""So many are timed. Others take a microsecond: of few of them everything stays in the innermost cache from pass to pass, and
processors learn every branch, where the events of a stream do not come back."""
_MOST_MATCHES, _FEWEST = 1_000_000, 100
_ROOM = 5_000_000
_LEARNT = 500
"""Events from this number on are those that Best and Wide learn from; they are not timed."""


class Kind(NamedTuple):
    """Events of one kind, and how the other implementation matches them."""

    name: str
    batch: EventBatch
    run: Callable[[], Any]
    """Matches all events."""
    rank: Callable[[], Any]
    """Turns values into what `run` takes, which the engine does as part of matching."""
    answers: Callable[[], list[npt.NDArray[Any]]]
    """The subscriptions that each event satisfied in the last run."""


class Case(NamedTuple):
    """One workload."""

    name: str
    rows: Rows
    sample: EventBatch | None
    kinds: list[Kind]
    build_seconds: float
    bytes_each: float


def whole_codes(values: npt.NDArray[Any]) -> Keys:
    return double_codes(np.asarray(values, np.float64))


def real_codes(values: npt.NDArray[Any]) -> Keys:
    """Values as floats on no grid, as `wide` makes them."""
    return double_codes(np.asarray(values) * 0.001 + 1)


def rows_of(work: dict[str, Any], codes: Coding) -> Rows:
    """The subscriptions of `begen` as the engine takes them."""
    operator = work["op"]
    low, high = codes(work["lo"]), codes(work["hi"])
    named = np.isin(operator, (_EQ, _NE))
    lo = np.where(named | np.isin(operator, (_GE, _BETWEEN)), low, np.where(operator == _GT, low + 1, KEY_MIN))
    upper = np.where(operator == _LT, high - 1, np.where(np.isin(operator, (_LE, _BETWEEN)), high, KEY_MAX))
    hi = np.where(named, low, upper)
    mode = np.where(np.isin(operator, (_NE, _NOT_IN)), Mode.NONE, Mode.SOME).astype(np.uint8)
    sets = np.isin(operator, (_IN, _NOT_IN))
    count = np.ones(len(operator), np.int64)
    members = codes(work["setv"][sets] if sets.any() else np.zeros((0, 1)))
    members[np.arange(members.shape[1]) >= work["setn"][sets][:, np.newaxis]] = KEY_MAX
    members.sort(axis=1)
    kept = members < KEY_MAX
    kept[:, 1:] &= members[:, 1:] != members[:, :-1]
    count[sets] = kept.sum(axis=1)
    start = np.append(0, np.cumsum(count))
    los, his = np.empty((2, start[-1]), np.int64)
    los[start[:-1][~sets]], his[start[:-1][~sets]] = lo[~sets], hi[~sets]
    in_set = np.repeat(sets, count)
    los[in_set] = his[in_set] = members[kept]
    predicates = Predicates(work["attr"].astype(np.int32), mode, start, los, his)
    return _plain(Conjunctions(work["ptr"].astype(np.int64), predicates))


def batch_of(attribute: npt.NDArray[Any], keys: Keys) -> EventBatch:
    """Events that all have as many attributes, in rows."""
    events, size = attribute.shape
    order = np.argsort(attribute, axis=1)
    ordered = np.take_along_axis(keys, order, 1).ravel()
    dimension = np.take_along_axis(attribute, order, 1).astype(np.int32).ravel()
    return EventBatch(np.arange(events + 1, dtype=np.int64) * size, dimension, ordered, ordered)


def _plain(table: Conjunctions) -> Rows:
    count = len(table.start) - 1
    return Rows(
        canonical(table),
        np.arange(count, dtype=np.int32),
        np.full(count, ACCEPT, np.int64),
        np.zeros(count, np.bool_),
        NO_PROGRAMS,
    )


class Prototype:
    """The modules of the folder, imported."""

    def __init__(self, folder: Path, subscriptions: int, seed: int) -> None:
        sys.path.insert(0, str(folder))
        self.begen, self.common, self.best, self.wide, self.runs = (
            importlib.import_module(name) for name in ("begen", "common", "best", "wide", "runs")
        )
        self.subscriptions = subscriptions
        self.seed = seed

    def cases(self, names: list[str]) -> Iterator[Case]:
        for name in names:
            if name in NARROW:
                yield self._narrow(name)
            elif name in WIDE:
                work = self._generate(WIDE[name])
                yield self._wide(f"{name}, integers", work, self.wide.whole, whole_codes)
                yield self._wide(f"{name}, floats", work, self.wide.real, real_codes)
            else:
                yield self._alerts(name)

    def _generate(self, parameters: dict[str, Any]) -> dict[str, Any]:
        match = min(1.0, 1_000 / self.subscriptions)
        work: dict[str, Any] = self.begen.generate(self.subscriptions, match=match, seed=self.seed, **parameters)
        if len(work["setv"]) == 0:
            work["setv"] = np.zeros((1, 6), np.int32)
        return work

    def _events(self, work: dict[str, Any]) -> tuple[int, dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]]:
        """From which number on events are learnt from, and those that are timed: planted ones, and others by shuffling."""
        attribute, value = work["e_attr"], work["e_val"]
        learnt = min(_LEARNT, len(attribute) // 2)
        planted = slice(min(_EVENTS["planted"], learnt))
        rounds = -(-_EVENTS["other"] // learnt)
        generator = np.random.default_rng(self.seed)
        shuffled = [generator.permutation(value.ravel()).reshape(value.shape)[:learnt] for _ in range(rounds)]
        other = np.tile(attribute[:learnt], (rounds, 1)), np.concatenate(shuffled)
        return learnt, {"planted": (attribute[planted].copy(), value[planted].copy()), "other": other}

    def _narrow(self, name: str) -> Case:
        work = self._generate(NARROW[name])
        encoded = self.common.encode(work)
        ranks = self.common.event_ranks(encoded, work["e_attr"], work["e_val"])
        learnt, events = self._events(work)
        self.common.stats(encoded, work["e_attr"][learnt:], ranks[learnt:])
        index = self.best.Best()
        index.build(encoded)
        build = seconds_of(lambda: index.build(encoded))
        kinds = []
        for kind, (attribute, value) in events.items():
            ranked = self.common.event_ranks(encoded, attribute, value)
            out = _Out(len(attribute), self.subscriptions)
            kept = out.fit(partial(index.run, attribute, ranked))
            attribute, value, ranked = attribute[:kept], value[:kept], ranked[:kept]
            kinds.append(
                Kind(
                    kind,
                    batch_of(attribute, whole_codes(value)),
                    partial(index.run, attribute, ranked, out.found, out.counts, out.times),
                    partial(self.common.event_ranks, encoded, attribute, value),
                    out.answers,
                )
            )
        sample = batch_of(work["e_attr"][learnt:], whole_codes(work["e_val"][learnt:]))
        return Case(name, rows_of(work, whole_codes), sample, kinds, build, index.bytes / self.subscriptions)

    def _wide(self, name: str, work: dict[str, Any], keys: Coding, codes: Coding) -> Case:
        encoded = self.wide.from_begen(work, keys)
        learnt, events = self._events(work)
        coded = np.empty(work["e_attr"].shape, np.uint32)
        self.wide.code_events(work["e_attr"], keys(work["e_val"]), encoded.cuts, encoded.shift, coded)
        self.common.stats(encoded, work["e_attr"][learnt:], coded[learnt:] >> 16)
        index = self.wide.Wide()
        index.build(encoded)
        build = seconds_of(lambda: index.build(encoded))
        kinds = []
        for kind, (attribute, value) in events.items():
            key, code = keys(value), np.empty(attribute.shape, np.uint32)
            rank = partial(self.wide.code_events, attribute, key, encoded.cuts, encoded.shift, code)
            rank()
            out = _Out(len(attribute), self.subscriptions, np.uint32)
            kept = out.fit(partial(index.run, attribute, code, key))
            attribute, value, key, code = attribute[:kept], value[:kept], key[:kept], code[:kept]
            rank = partial(self.wide.code_events, attribute, key, encoded.cuts, encoded.shift, code)
            run = partial(index.run, attribute, code, key, out.found, out.counts, out.times)
            kinds.append(Kind(kind, batch_of(attribute, codes(value)), run, rank, out.answers))
        sample = batch_of(work["e_attr"][learnt:], codes(work["e_val"][learnt:]))
        return Case(name, rows_of(work, codes), sample, kinds, build, index.bytes / self.subscriptions)

    def _alerts(self, name: str) -> Case:
        symbols, events = max(1, self.subscriptions // 1_000), 2_000
        symbol, above, price, volume, *quote = self.runs.workload(self.subscriptions, symbols, events, True, 0, 1.9)
        bound = np.where(above, self.runs.keys(price) + 1, self.runs.keys(price) - 1)
        index = self.runs.Runs()
        build = seconds_of(lambda: index.build(symbol, symbols, ~above, bound, volume))
        found, counts = np.empty(_ROOM + 5 * self.subscriptions, np.uint32), np.zeros(events, np.int64)
        quote_symbol, quote_price, quote_volume = quote
        quote_key = self.runs.keys(quote_price)

        def ready() -> Callable[[], Any]:
            run: Callable[[], Any] = index.run(quote_symbol, quote_key, quote_volume, found, counts)
            return run

        attribute = np.tile(np.arange(2), (events, 1))
        batch = batch_of(attribute, np.stack((whole_codes(quote_symbol), whole_codes(quote_price)), axis=1))
        kind = Kind("other", batch, ready(), ready, lambda: np.split(found[: counts.sum()], np.cumsum(counts)[:-1]))
        return Case(name, _alert_rows(symbol, above, price), None, [kind], build, index.bytes / self.subscriptions)


def _alert_rows(symbol: npt.NDArray[Any], above: npt.NDArray[np.bool_], price: npt.NDArray[np.float64]) -> Rows:
    count = len(symbol)
    named, bound = whole_codes(symbol), whole_codes(price)
    lo = np.stack((named, np.where(above, bound + 1, KEY_MIN)), axis=1).ravel()
    hi = np.stack((named, np.where(above, KEY_MAX, bound - 1)), axis=1).ravel()
    dimension = np.tile(np.arange(2, dtype=np.int32), count)
    mode = np.full(2 * count, Mode.SOME, np.uint8)
    predicates = Predicates(dimension, mode, np.arange(2 * count + 1, dtype=np.int64), lo, hi)
    return _plain(Conjunctions(np.arange(count + 1, dtype=np.int64) * 2, predicates))


class _Out:
    """Where Best and Wide write what they find, a row per event."""

    def __init__(self, events: int, subscriptions: int, dtype: Any = np.int32) -> None:
        # The modules check no bounds; of a million subscriptions, 70,000 match at most.
        self.found = np.zeros((events, min(subscriptions, max(1 << 17, subscriptions // 8)) + 64), dtype)
        self.counts, self.times = np.zeros((2, events), np.int64)

    def fit(self, run: Callable[..., Any]) -> int:
        """Make rows no longer than the matches of events are, so that they share pages; returns how many events to keep, which
        are fewer where they have many matches: these would go through memory."""
        run(self.found, self.counts, self.times)
        kept = int(np.clip(_MOST_MATCHES / max(1.0, self.counts.mean()), _FEWEST, len(self.counts)))
        self.counts, self.times = self.counts[:kept].copy(), self.times[:kept].copy()
        self.found = np.zeros((kept, int(self.counts.max(initial=0)) + 64), self.found.dtype)
        return kept

    def answers(self) -> list[npt.NDArray[Any]]:
        return [row[:count] for row, count in zip(self.found, self.counts, strict=True)]


def compare(case: Case, passes: int) -> Iterator[dict[str, Any]]:
    """The figures of both for each kind of events."""
    segment = Segment.of(case.rows, case.sample)
    # Once more before: kernels are compiled for arrays that were made unwritable too.
    build = best_of(lambda: Segment.of(case.rows, case.sample), 1)
    rooms, life = ThreadScratch(), Life(np.zeros(0, np.int64), 0)
    dimensions = int(case.rows.table.predicates.dimension.max()) + 1
    for kind in case.kinds:
        size = max(dimensions, int(kind.batch.dimension.max()) + 1)
        found = segment.match(kind.batch, size, life, rooms)
        kind.run()
        ends = np.cumsum(found.counts)
        for event, theirs in enumerate(kind.answers()):
            ours = found.slots[ends[event] - found.counts[event] : ends[event]]
            if not np.array_equal(np.sort(ours), np.sort(theirs)):
                raise AssertionError(f"{case.name}, event {event}: {len(ours)} matches here, {len(theirs)} there")
        each = 1e6 / len(found.counts)
        match = partial(segment.match, kind.batch, size, life, rooms)
        works: dict[str, Callable[[], Any]] = {"engine": match, "prototype": kind.run, "prototype_ranking": kind.rank}
        best = best_of_each(works, passes)
        yield {
            "shape": case.name,
            "kind": kind.name,
            "matches": float(found.counts.mean()),
            **{name: seconds * each for name, seconds in best.items()},
            "engine_build_seconds": build,
            "prototype_build_seconds": case.build_seconds,
            "engine_bytes_each": segment.nbytes / case.rows.number,
            "prototype_bytes_each": case.bytes_each,
        }


def run_against(folder: Path, subscriptions: int, seed: int, shapes: list[str]) -> Iterator[dict[str, Any]]:
    """The comparison in processes of their own: with plain loops, and with what the prototype chooses itself."""
    source = str(Path(tamis.__file__).parent.parent)
    for code, names in (("plain", shapes), ("its own choice", [name for name in shapes if name in NARROW])):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
        environment.pop("SIMD", None)
        if code == "plain":
            environment["SIMD"] = "0"
        command = [sys.executable, "-m", "benchmarks.prototype", str(folder.resolve())]
        command += ["--subscriptions", str(subscriptions), "--seed", str(seed), "--shapes", *names]
        if not names:
            continue
        # In a folder of its own: the modules leave compiled code where they run.
        with (
            tempfile.TemporaryDirectory() as home,
            subprocess.Popen(command, env=environment, cwd=home, stdout=subprocess.PIPE, text=True) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                yield {"code": code, **json.loads(line)}
        if process.returncode:
            raise RuntimeError(f"the comparison ended with status {process.returncode}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.prototype",
        description="The engine beside a prototype, one line of JSON per figure.",
    )
    parser.add_argument("folder", type=Path, help="where the prototype's modules are")
    parser.add_argument("--subscriptions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--passes", type=int, default=200)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=SHAPES, metavar="SHAPE", help=", ".join(SHAPES))
    options = parser.parse_args(arguments)
    for case in Prototype(options.folder, options.subscriptions, options.seed).cases(options.shapes):
        for figures in compare(case, options.passes):
            sys.stdout.write(json.dumps(figures) + "\n")
            sys.stdout.flush()


SHAPES = [*NARROW, *WIDE, ALERTS]


if __name__ == "__main__":
    main()
