"""How fast subscriptions are added: SQL texts that all differ in shape, SQL texts from templates, tables of predicates.

python -m benchmarks.loading [--subscriptions 100000] [--conjunctions 1000000] [--json FILE]
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import random
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa

import tamis
from tamis.experiments.machine import machine
from tamis.experiments.timing import seconds_of
from tamis.language.parser import parse_afresh
from tamis.language.shapes import forget_shapes
from tamis.workload import generate, preset

DESCRIPTION = """Every way loads conjunctions of five predicates, one way after the other in one process. SQL texts have `=`,
`>`, `IN`, `BETWEEN`, `LIKE 'x%'` and `<>` on 100 attributes. Either all texts differ in shape, or they have 100 shapes and
differ in their literals. Rows of a table are in predicate form (the `dense` preset). The parser alone reads the texts of 100
shapes. Memory is that of a process that loads such a table: how much it grows until after the first match, and at most."""

_CLEAR = Path("/proc/self/clear_refs")
_WARM = 5_000
_TEMPLATES = 100
_PREDICATES = 5
_FORMS: list[Callable[[str, random.Random], str]] = [
    lambda name, chance: f"{name} = {chance.randint(0, 1000)}",
    lambda name, chance: f"{name} > {chance.random() * 100:.3f}",
    lambda name, chance: f"{name} IN ('{chance.randint(0, 99)}', 'x{chance.randint(0, 99)}')",
    lambda name, chance: f"{name} BETWEEN {chance.randint(0, 50)} AND {chance.randint(50, 100)}",
    lambda name, chance: f"{name} LIKE 'ab{chance.randint(0, 999)}%'",
    lambda name, chance: f"{name} <> 'q{chance.randint(0, 99)}'",
]


def _template(chance: random.Random) -> list[tuple[str, Callable[[str, random.Random], str]]]:
    return [(f"attribute{chance.randint(0, 99)}", chance.choice(_FORMS)) for _ in range(_PREDICATES)]


def sql_texts(count: int, templates: int | None) -> list[str]:
    """SQL texts from a number of templates, with random literals. None: each text has its own template."""
    chance = random.Random(7)
    known = [_template(chance) for _ in range(templates or 0)]
    texts = []
    for _ in range(count):
        template = chance.choice(known) if known else _template(chance)
        texts.append(" AND ".join(form(name, chance) for name, form in template))
    return texts


def _matcher_with(add: Callable[[tamis.Matcher], None]) -> Callable[[], None]:
    def fill() -> None:
        add(tamis.Matcher())

    return fill


def measure(subscriptions: int, conjunctions: int) -> dict[str, Any]:
    """The seconds of every way to add subscriptions, in total and per subscription."""
    different, alike = sql_texts(subscriptions, None), sql_texts(subscriptions, _TEMPLATES)
    ids = range(subscriptions)
    table = generate(preset("dense", subscriptions=conjunctions, subscription_size=_PREDICATES)).subscriptions()
    # Compile the kernels first. This happens once per machine.
    _matcher_with(lambda matcher: matcher.add_many(range(100), different[:100]))()
    _matcher_with(lambda matcher: matcher.add_table(table.slice(0, 1000)))()
    works: dict[str, tuple[int, Callable[[], Any]]] = {
        "parse, word by word": (subscriptions, lambda: [parse_afresh(text) for text in alike]),
        "parse, by shape": (subscriptions, lambda: [tamis.parse(text) for text in alike]),
        "add_many, all shapes differ": (subscriptions, _matcher_with(lambda m: m.add_many(ids, different))),
        f"add_many, {_TEMPLATES} shapes": (subscriptions, _matcher_with(lambda m: m.add_many(ids, alike))),
        f"add one by one, {_TEMPLATES} shapes": (subscriptions, _matcher_with(lambda m: _one_by_one(m, alike))),
        "add_table, predicate form": (conjunctions, _matcher_with(lambda m: m.add_table(table))),
    }
    ways = {}
    for name, (count, work) in works.items():
        forget_shapes()
        seconds = seconds_of(work)
        ways[name] = {"count": count, "seconds": seconds, "microseconds_each": seconds / count * 1e6}
    return {
        "benchmark": "loading",
        "machine": machine(),
        "tamis": tamis.__version__,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "ways": ways,
        "memory": _in_new_process(conjunctions),
    }


# -- memory


def _in_new_process(subscriptions: int) -> dict[str, float] | None:
    """`measure_memory` in a process that has done nothing else."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure_memory, subscriptions).result()


def measure_memory(subscriptions: int) -> dict[str, float] | None:
    """How much this process grows by a table of subscriptions, bytes each: after the first match, and at most before it.

    The table itself does not count. None: the system does not say.
    """
    if not _CLEAR.exists():
        return None
    table = generate(preset("dense", subscriptions=subscriptions)).subscriptions()
    matcher = _warmed_up(table)
    gc.collect()
    before = _status("VmRSS")
    _CLEAR.write_text("5")  # The peak begins again at what there is now.
    matcher.add_table(table)
    matcher.match({"a0": 1})
    most, after = _status("VmHWM"), _status("VmRSS")
    return {
        "subscriptions": subscriptions,
        "bytes_each": (after - before) / subscriptions,
        "most_bytes_each": (most - before) / subscriptions,
    }


def _warmed_up(table: pa.Table) -> tamis.Matcher[Any]:
    """An empty matcher, after another one has used all kernels."""
    other = tamis.Matcher()
    other.add_table(table.slice(0, _WARM))
    other.match({"a0": 1})
    return tamis.Matcher()


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


def _one_by_one(matcher: tamis.Matcher, texts: list[str]) -> None:
    for number, text in enumerate(texts):
        matcher.add(number, text)
    matcher.match({})


def to_table(results: dict[str, Any]) -> str:
    """The results as a Markdown table."""
    fastest = min(way["microseconds_each"] for way in results["ways"].values())
    lines = [
        "| way | subscriptions | seconds | microseconds each | times the fastest |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {name} | {way['count']:,} | {way['seconds']:.1f} | {way['microseconds_each']:.1f} "
        f"| {way['microseconds_each'] / fastest:.1f} |"
        for name, way in results["ways"].items()
    ]
    memory = results.get("memory")
    if memory is not None:
        sizes = f"{memory['bytes_each']:,.0f} bytes of memory each, and at most {memory['most_bytes_each']:,.0f}"
        lines += ["", f"{memory['subscriptions']:,} subscriptions as a table take {sizes} while they are added."]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.loading", description="Measure how fast subscriptions are taken in."
    )
    parser.add_argument("--subscriptions", type=int, default=100_000, help="SQL texts (default: 100,000)")
    parser.add_argument(
        "--conjunctions", type=int, default=1_000_000, help="rows in predicate form (default: 1,000,000)"
    )
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args(arguments)
    results = measure(options.subscriptions, options.conjunctions)
    sys.stdout.write(to_table(results) + "\n")
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
