"""What earlier events cost: joins against many events, a few joins among many subscriptions, keys, and ways to decide EXISTS.

python -m benchmarks.history [--quick] [--json FILE]

Ratios are measured side by side, in processor time of one thread. `history_parts` measures what each part brings.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

import tamis
from benchmarks.shapes import SHAPES, config_of
from tamis.earlier.chunks import TableEvents
from tamis.earlier.decisions import Decisions
from tamis.earlier.key_ranges import satisfying
from tamis.earlier.retained import Retained
from tamis.experiments.machine import machine, versions
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent, flatten
from tamis.language.expression import Expression
from tamis.language.joins import Exists
from tamis.language.operators import MIRRORED
from tamis.language.reading import to_expression
from tamis.workload import generate

Figures = dict[str, Any]

_SHARED = (
    "price < ALL (SELECT price FROM history)",
    "seller = ANY (SELECT seller FROM history)",
    "EXISTS (SELECT 1 FROM history h WHERE h.item = item AND h.price > price)",
    "NOT EXISTS (SELECT 1 FROM history h WHERE h.seller = seller AND h.item = item)",
    "rating >= ALL (SELECT rating FROM history) OR stock > ANY (SELECT stock FROM history)",
    "NOT (item <> ALL (SELECT item FROM history))",
)
SETS: dict[str, Callable[[int], str]] = {
    "beside constants": lambda place: f"{offer(place)} AND ({_SHARED[place % 6]})",
    "EXISTS with a constant of its own": lambda place: (
        f"{offer(place)} AND EXISTS (SELECT 1 FROM history h WHERE h.seller = seller AND h.price < {place % 4999 / 100})"
    ),
    "joins alone": lambda place: _SHARED[place % 6],
}
"""Subscriptions by their place."""
_ITEMS = 1_000
_BATCHES = 12
"""Different batches of events of a shape."""


class Sizes:
    """How much is measured."""

    def __init__(self, quick: bool) -> None:
        self.subscriptions = 600 if quick else 100_000
        self.retained = 500 if quick else 100_000
        self.events = 40 if quick else 2_000
        self.matches = 10_000 if quick else 10_000_000
        """Matches of a batch. Joins alone match half of the subscriptions."""
        self.checked = 5 if quick else 40
        """Subscriptions that the evaluator decides, for so few events that it takes seconds."""
        self.most = 2_000 if quick else 1_000_000
        self.batch = 200 if quick else 10_000
        self.turns = 2 if quick else 9
        self.keys = (20, 100) if quick else (1_000, 1_000_000)
        self.kept = 2_000 if quick else 300_000
        """Events of all matchers with the same number of keys, at least."""


def offer(place: int) -> str:
    """The constant part of a subscription of the shop."""
    return f"item = {place % _ITEMS} AND price < {50 + place % 50} AND stock >= 1"


def offers(seed: int, count: int, items: int = _ITEMS) -> pa.Table:
    """Events of the shop."""
    random = np.random.default_rng(seed)
    sellers = random.integers(0, 10_000, count)
    return pa.table(
        {
            "item": random.integers(0, items, count),
            "price": random.uniform(0, 49, count).round(2),
            "stock": random.integers(1, 9, count),
            "seller": pa.array([f"seller {each}" for each in sellers.tolist()]),
            "rating": random.uniform(0, 5, count),
        }
    )


def seconds_of(work: Callable[[], object]) -> float:
    """The processor time of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def filled(history: tamis.History, texts: Sequence[str], earlier: pa.Table) -> tamis.Matcher[int]:
    """A matcher that retains some events, and whose subscriptions are settled."""
    matcher: tamis.Matcher[int] = tamis.Matcher(history=history)
    matcher.match_batch(earlier, threads=1)  # Before there are subscriptions that match.
    matcher.add_many(range(len(texts)), texts)
    matcher.optimize()
    return matcher


# -- joins against many events


def joins(name: str, sizes: Sizes) -> Figures:
    """Subscriptions with joins, beside the reference evaluator."""
    texts = [SETS[name](place) for place in range(sizes.subscriptions)]
    earlier, events = offers(1, sizes.retained), offers(2, sizes.events)
    matcher = filled(tamis.History(rows=sizes.retained), texts, earlier)
    few = events.slice(0, min(sizes.events, 200)).to_pylist()
    matches = len(matcher.match_batch(offers(3, sizes.events).slice(0, 20), threads=1)) / 20
    events = events.slice(0, int(sizes.matches / (matches + 1)))
    matcher.match_batch(offers(4, len(events)), threads=1)
    matcher.match(few[0])
    batch = seconds_of(lambda: matcher.match_batch(events, threads=1)) / len(events)
    single = seconds_of(lambda: [matcher.match(event) for event in few]) / len(few)
    distinct = matcher.stats()["history"]["joins"]
    places = np.linspace(0, sizes.subscriptions - 1, sizes.checked).astype(int).tolist()
    evaluated = evaluator([tamis.parse(texts[place]) for place in places], earlier, few[:1])
    by_evaluator = evaluated * sizes.subscriptions / len(places)
    return {
        "set": name,
        "joins": distinct,
        "matches": matches,
        "batch_us": 1e6 * batch,
        "single_us": 1e6 * single,
        "evaluator_us": 1e6 * by_evaluator,
        "batch_ratio": by_evaluator / batch,
        "single_ratio": by_evaluator / single,
    }


def evaluator(expressions: list[Expression], earlier: pa.Table, events: list[dict[str, Any]]) -> float:
    """The seconds in which the evaluator decides some expressions for one event."""
    history, flat = [flatten(event) for event in earlier.to_pylist()], [flatten(event) for event in events]

    def decide() -> None:
        for event in flat:
            for expression in expressions:
                evaluate_flat(expression, event, history)

    return seconds_of(decide) / len(flat)


# -- a few joins among many subscriptions


class Pair(NamedTuple):
    """Matchers of the same subscriptions, of which 1 % have joins in one of the two, and are missing in the other."""

    plain: tamis.Matcher[int]
    mixed: tamis.Matcher[int]
    events: Callable[[int], pa.Table]


def pair_of(
    others: pa.Table, chosen: dict[int, Expression | str], retained: int
) -> tuple[tamis.Matcher[int], tamis.Matcher[int]]:
    """Settled matchers of some subscriptions, the second one with some more."""
    plain: tamis.Matcher[int] = tamis.Matcher()
    mixed: tamis.Matcher[int] = tamis.Matcher(history=tamis.History(rows=retained))
    for matcher in (plain, mixed):
        matcher.add_table(others)
    del others  # Replacing all parts takes memory, too.
    mixed.add_many(list(chosen), list(chosen.values()))
    for matcher in (plain, mixed):
        matcher.optimize()
    return plain, mixed


def shop(sizes: Sizes) -> Pair:
    """Subscriptions of the shop, about ten of which match an event."""
    items, place = max(1, sizes.most // 10), np.arange(sizes.most)
    others = place[place % 100 != 7]
    values = np.stack([others % items, 50 + others % 50, np.ones(len(others), np.int64)], axis=1)
    predicate = pa.StructArray.from_arrays(
        [
            pa.array(["item", "price", "stock"] * len(others)),
            pa.array(["=", "<", ">="] * len(others)),
            pa.ListArray.from_arrays(np.arange(values.size + 1, dtype=np.int32), values.ravel()),
        ],
        ["attribute", "operator", "values"],
    )
    rules = pa.ListArray.from_arrays(3 * np.arange(len(others) + 1, dtype=np.int32), predicate)
    chosen: dict[int, Expression | str] = {
        each: f"item = {each % items} AND price < {50 + each % 50} AND stock >= 1 AND ({_SHARED[each // 100 % 6]})"
        for each in place[place % 100 == 7].tolist()
    }
    tables = [pa.table({"id": others, "predicates": rules})]
    del rules, predicate, values
    pair = pair_of(tables.pop(), chosen, sizes.retained)
    return Pair(*pair, lambda seed: offers(seed, sizes.batch, items))


def dense(sizes: Sizes, *, planted: bool = False) -> Pair:
    """The shape `dense` of the engine's benchmark, with events that no subscription was derived from, or with planted ones."""
    plain, mixed, workload = dense_matchers(sizes)
    rows = (workload.events if planted else workload.other_events)(_BATCHES * sizes.batch, wide=True)
    return Pair(plain, mixed, lambda seed: rows.slice(seed % _BATCHES * sizes.batch, sizes.batch))


@functools.lru_cache(maxsize=1)
def dense_matchers(sizes: Sizes) -> tuple[tamis.Matcher[int], tamis.Matcher[int], Any]:
    """The matchers of the shape, and the workload that its events come from. Two sets share them."""
    workload = generate(config_of(SHAPES["dense"][0], sizes.most, 1))
    table = workload.subscriptions()
    has_join = np.arange(len(table)) % 100 == 7
    joined = table.filter(pa.array(has_join)).to_pylist()
    chosen: dict[int, Expression | str] = {
        row["id"]: with_join(row["predicates"], place) for place, row in enumerate(joined)
    }
    others = [table.filter(pa.array(~has_join))]
    del table
    return *pair_of(others.pop(), chosen, sizes.retained), workload


def with_join(predicates: list[dict[str, Any]], place: int) -> Expression:
    """A conjunction of the workload with a join on its first attribute."""
    rows = [
        [each["attribute"], each["operator"], each["values"] if len(each["values"]) > 1 else each["values"][0]]
        for each in predicates
    ]
    name = f"a{place % 10}"
    forms = (
        f"{name} < ALL (SELECT {name} FROM history)",
        f"{name} = ANY (SELECT {name} FROM history)",
        f"EXISTS (SELECT 1 FROM history h WHERE h.{name} = {name} AND h.a99 > a99)",
    )
    return to_expression(rows) & tamis.parse(forms[place % 3])


SHARED: dict[str, Callable[[Sizes], Pair]] = {
    "shop": shop,
    "dense": dense,
    "dense, planted": functools.partial(dense, planted=True),
}


def share(name: str, sizes: Sizes) -> Figures:
    """1 % of all subscriptions have joins: the time of an event, beside a matcher of the others without a history."""
    plain, mixed, events = SHARED[name](sizes)
    for seed in range(max(2, -(-sizes.retained // sizes.batch))):
        plain.match_batch(events(seed), threads=1)
        mixed.match_batch(events(seed), threads=1)
    figures: Figures = {"set": name, "subscriptions": sizes.most}
    matches = len(mixed.match_batch(events(7), threads=1)) / sizes.batch
    few = sizes.batch // 10

    def one_by_one(matcher: tamis.Matcher[int], given: list[dict[str, Any]]) -> None:
        for event in given:
            matcher.match(event)

    ways: dict[str, tuple[Callable[[int], Any], Callable[[tamis.Matcher[int], Any], object]]] = {
        "table": (events, lambda matcher, given: matcher.match_batch(given, threads=1)),
        "mappings": (mappings(events, few), lambda matcher, given: matcher.match_batch(given, threads=1)),
        "single": (mappings(events, few), one_by_one),
    }
    for way, (make, match) in ways.items():
        taken: dict[str, list[float]] = {"plain": [], "mixed": []}
        before, count = mixed.stats()["history"]["decided"], 0
        for turn in range(sizes.turns + 1):
            given = make(100 + turn)
            count += len(given)
            pairs = [("plain", plain), ("mixed", mixed)]
            for label, matcher in pairs if turn % 2 else reversed(pairs):
                seconds = seconds_of(lambda match=match, matcher=matcher, given=given: match(matcher, given))  # type: ignore[misc]
                if turn:
                    taken[label].append(1e6 * seconds / len(given))
        ratio = median(one / other for one, other in zip(taken["mixed"], taken["plain"], strict=True))
        decided = (mixed.stats()["history"]["decided"] - before) / count
        plain_us, mixed_us = median(taken["plain"]), median(taken["mixed"])
        figures[way] = {"plain_us": plain_us, "mixed_us": mixed_us, "ratio": ratio, "decided": decided}
    figures["matches"] = matches
    return figures


def mappings(events: Callable[[int], pa.Table], count: int) -> Callable[[int], list[dict[str, Any]]]:
    """Events as dictionaries, without the attributes that they lack."""

    def made(seed: int) -> list[dict[str, Any]]:
        rows = events(seed).slice(0, count).to_pylist()
        return [{name: value for name, value in row.items() if value is not None} for row in rows]

    return made


# -- keys


def keyed(keys: int, sizes: Sizes) -> Figures:
    """Ten events for each key: the bytes of an event, and the time of one that asks. Few keys have many matchers."""
    total = 10 * keys
    first = host_matcher(0, 100, sizes)  # The kernels are loaded.
    before = rss()
    matchers = [host_matcher(seed, keys, sizes) for seed in range(max(1, sizes.kept // total))]
    used = (rss() - before) / (total * len(matchers))
    del first
    taken: dict[str, list[float]] = {"batch": [], "single": []}
    for turn in range(sizes.turns):
        events = loads(turn, np.random.default_rng(turn).integers(0, keys, sizes.batch // 10))
        rows = loads(turn + 100, np.random.default_rng(turn + 100).integers(0, keys, sizes.batch // 50)).to_pylist()
        matcher = matchers[turn % len(matchers)]
        taken["batch"].append(seconds_of(lambda: matcher.match_batch(events, threads=1)) / len(events))  # noqa: B023
        taken["single"].append(seconds_of(lambda: [matcher.match(row) for row in rows]) / len(rows))  # noqa: B023
    return {
        "keys": keys,
        "events": matchers[0].stats()["history"]["events"],
        "bytes": used,
        "batch_us": 1e6 * median(taken["batch"]),
        "single_us": 1e6 * median(taken["single"]),
    }


def host_matcher(seed: int, keys: int, sizes: Sizes) -> tamis.Matcher[str]:
    """A matcher that retains ten events for each host, with columns of the attributes that its joins ask about."""
    matcher: tamis.Matcher[str] = tamis.Matcher(history=tamis.History(rows=10, key="host"))
    order = np.random.default_rng(seed).permutation(10 * keys) % keys
    for start in range(0, len(order), sizes.batch):
        matcher.match_batch(loads(seed, order[start : start + sizes.batch]), threads=1)
    matcher.add("drop", "load < ALL (SELECT load FROM history)")
    matcher.add("again", "EXISTS (SELECT 1 FROM history h WHERE h.user = user AND h.load > load)")
    matcher.match(loads(seed, order[:1]).to_pylist()[0])
    return matcher


def loads(seed: int, hosts: Any) -> pa.Table:
    """Events of hosts."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "host": pa.array([f"host {each}" for each in hosts.tolist()]),
            "load": random.uniform(0, 1, len(hosts)).round(3),
            "user": random.integers(0, 50, len(hosts)),
        }
    )


def rss() -> int:
    """The resident memory of this process."""
    pages = Path("/proc/self/statm")
    if not pages.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return int(pages.read_text().split()[1]) * resource.getpagesize()


# -- EXISTS

_EXISTS = (
    "EXISTS (SELECT 1 FROM history h WHERE h.seller = seller AND h.price > price)",
    "EXISTS (SELECT 1 FROM history h WHERE h.item = item AND h.stock > stock AND h.rating < rating)",
    "EXISTS (SELECT 1 FROM history h WHERE h.stock = stock AND h.item = item)",
    "EXISTS (SELECT 1 FROM history h WHERE h.price > price AND h.rating > rating)",
)


def exists(text: str, sizes: Sizes) -> Figures:
    """EXISTS by the most selective index first, and by document vectors."""
    retained = Retained(tamis.History(rows=sizes.retained))
    with retained.taking(TableEvents(offers(1, sizes.retained))) as intake:
        intake.retain_all()
    join = tamis.parse(text)
    assert isinstance(join, Exists)
    events = [flatten(event) for event in offers(2, max(sizes.events // 20, 10)).to_pylist()]
    ways: dict[str, Callable[[Exists, FlatEvent, Retained], bool]] = {"selective": selective, "vectors": by_vectors}
    answers, taken = {}, {}
    for name, decide in ways.items():
        for event in events:  # Some load kernels that the first one does not need.
            decide(join, event, retained)
        start = time.process_time()
        answers[name] = [decide(join, event, retained) for event in events]
        taken[name] = 1e6 * (time.process_time() - start) / len(events)
    assert answers["selective"] == answers["vectors"]
    return {"text": text, "true": sum(answers["vectors"]) / len(events), **{f"{name}_us": taken[name] for name in ways}}


def selective(join: Exists, event: FlatEvent, retained: Retained) -> bool:
    return Decisions(event, retained.begin(event)).truth(join) is True


def by_vectors(join: Exists, event: FlatEvent, retained: Retained) -> bool:
    """The paper's way: a document vector for each comparison, then AND."""
    events = retained.begin(event)
    found: BitMap | None = None
    for each in join.joins:
        column = retained.log.column(each.earlier)
        wanted = column.ranges(satisfying(event.get(each.attribute, ()), MIRRORED[each.operator]))
        vector = BitMap(events.index(each.earlier).candidates(wanted).astype(np.uint32))
        found = vector if found is None else found & vector
    return bool(found)


def measure(quick: bool) -> Figures:
    """All figures. Each part is printed as soon as it is measured."""
    sizes = Sizes(quick)
    figures: Figures = {
        "benchmark": "history",
        "machine": machine(),
        "versions": versions(),
        "tamis": tamis.__version__,
    }
    figures["sizes"] = {"subscriptions": sizes.subscriptions, "retained": sizes.retained, "batch": sizes.batch}
    parts: dict[str, Callable[[], list[dict[str, Any]]]] = {
        # First, while the process has no memory to use again.
        "keys": lambda: [keyed(keys, sizes) for keys in sizes.keys],
        "exists": lambda: [exists(text, sizes) for text in _EXISTS],
        "joins": lambda: [joins(name, sizes) for name in SETS],
        "share": lambda: [share(name, sizes) for name in SHARED],
    }
    for part, work in parts.items():
        figures[part] = work()
        pa.default_memory_pool().release_unused()
        for each in figures[part]:
            sys.stdout.write(f"{part}: {json.dumps(each)}\n")
            sys.stdout.flush()
    figures["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="little data, to try the benchmark")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    figures = measure(given.quick)
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
