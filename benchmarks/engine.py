"""How fast the engine matches: beside a scan, at several sizes, on many shapes, during changes, and beside other systems.

python -m benchmarks.engine [--sizes 10000 100000] [--shapes dense ads] [--large] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from pathlib import Path
from typing import Any

import tamis
from benchmarks import engine_page
from benchmarks.matching import QUICK, Effort, Loaded, compare, measure
from benchmarks.rules import RULE_COUNT, measure_rules
from benchmarks.shapes import NARROW, RULES, SHAPES, Variant, config_of
from benchmarks.updates import measure_updates
from tamis.experiments.machine import machine, versions

SIZES = (10_000, 100_000, 1_000_000)
LARGE = 10_000_000
_QUICK_SIZES = (4_200, 8_400)
_QUICK_SHAPES = ["dense", "alerts", "wide-12", RULES]
_QUICK_RULES = 100
_WARM = 4_200
_CHANGED = "dense"
"""The shape on which changes are measured."""


def measure_all(options: argparse.Namespace) -> dict[str, Any]:
    """All figures for the given options. Each is printed as soon as it is measured."""
    effort = QUICK if options.quick else Effort()
    matching: list[dict[str, Any]] = []
    updates = None
    if not options.quick:
        _warm_up(options)
    smallest: dict[str, Loaded] = {}
    for size in sorted(options.sizes):
        for shape in (name for name in options.shapes if name != RULES):
            for variant in SHAPES[shape]:
                loaded = Loaded(config_of(variant, size, options.seed))
                matching.append({"shape": variant.name, **measure(loaded, effort)})
                _say(_matching_line(matching[-1]))
                if size == max(options.sizes):
                    small = smallest.get(variant.name)
                    matching[-1]["beside"] = _beside(loaded, small, shape, variant, effort, options)
                elif size == min(options.sizes):
                    smallest[variant.name] = loaded
                if shape == _CHANGED and size == max(options.sizes):
                    updates = measure_updates(loaded, config_of(variant, size, options.seed + 1), effort)
                    _say("\n" + engine_page.updates_table(updates) + "\n")
                del loaded
    rules = None
    if RULES in options.shapes:
        rules = measure_rules(_QUICK_RULES if options.quick else RULE_COUNT, options.seed, effort)
        _say("\n" + engine_page.rules_table(rules))
    return {
        "benchmark": "engine",
        "machine": machine(),
        "versions": versions(),
        "tamis": tamis.__version__,
        "seed": options.seed,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "matching": matching,
        "updates": updates,
        "rules": rules,
    }


def _beside(
    loaded: Loaded, small: Loaded | None, shape: str, variant: Variant, effort: Effort, options: argparse.Namespace
) -> dict[str, Any]:
    """Compare the engine in turns with itself: with few subscriptions, and with few values if the shape has many."""
    beside = {} if small is None else {"smallest": compare(loaded, small, effort)}
    if shape in NARROW and variant != NARROW[shape]:
        narrow = Loaded(config_of(NARROW[shape], len(loaded.matcher), options.seed))
        beside["narrow"] = compare(loaded, narrow, effort)
    return beside


def _warm_up(options: argparse.Namespace) -> None:
    """Compile all kernels before the measurements. This happens once per machine."""
    for shape in options.shapes:
        for variant in SHAPES.get(shape, []):
            config = config_of(variant, _WARM, options.seed)
            loaded = Loaded(config)
            measure(loaded, QUICK)
            if shape == _CHANGED:
                measure_updates(loaded, config, QUICK)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _matching_line(row: dict[str, Any]) -> str:
    kinds = "   ".join(
        f"{kind}: {figures['engine']:8.1f} us, scan {figures['scan'] or float('nan'):9.1f}, `match` {figures['dict']:8.1f}, "
        f"{figures['matches']:7.0f} matches of {figures['candidates']:7.0f} candidates"
        for kind, figures in row["kinds"].items()
    )
    return (
        f"{row['shape']:25} {row['subscriptions']:10,}  load {row['load_seconds']:5.2f} s, "
        f"of it build {row['build_seconds']:5.2f}, {row['index_bytes_each']:4.0f} B each   {kinds}"
    )


def _options(arguments: list[str] | None) -> argparse.Namespace:
    known = [*SHAPES, RULES]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine", description="Measure how fast the engine matches."
    )
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of subscriptions (default: 10,000 to 1,000,000)")
    parser.add_argument(
        "--large", action="store_true", help="also 10,000,000 subscriptions; needs some 16 GB of memory"
    )
    parser.add_argument(
        "--shapes", nargs="+", choices=known, metavar="SHAPE", help=f"(default: all) {', '.join(known)}"
    )
    parser.add_argument("--quick", action="store_true", help="little data and few passes: to see that it runs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the workloads (default: 1)")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args(arguments)
    options.sizes = options.sizes or list(_QUICK_SIZES if options.quick else SIZES)
    options.shapes = options.shapes or (_QUICK_SHAPES if options.quick else known)
    if options.large:
        options.sizes.append(LARGE)
    return options


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    results = measure_all(options)
    _say("\n" + engine_page.to_tables(results))
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
