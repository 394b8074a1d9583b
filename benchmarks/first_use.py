"""The cost of the first use with an empty cache: processor seconds of new processes, including their children.

Prints the seconds of each script with an empty cache and with a filled one. ``make bench-first-use`` runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import tamis
from benchmarks.markdown import table
from tamis.experiments.machine import machine

DESCRIPTION = """Processor seconds of new processes and their children. With an empty cache, a process compiles the
kernels that it uses. With a filled one, it loads them. The *first match* has one subscription and one event. The *first
script* also adds 3,000 subscriptions with `LIKE` and matches a batch. The last script adds 20,000 more, which make a
segment."""

_FIRST_MATCH = """
import tamis
matcher = tamis.Matcher()
matcher.add("ann", "price < 20 AND genre = 'crime'")
assert matcher.match({"genre": "crime", "price": 15.5}) == ["ann"]
"""
_FIRST_SCRIPT = (
    _FIRST_MATCH
    + """
matcher.add_many([f"x{n}" for n in range(3000)], [f"price < {n} AND name LIKE '%b{n}%'" for n in range(3000)])
matcher.match({"genre": "crime", "price": 15.5, "name": "ab12c"})
matcher.match_batch([{"genre": "crime", "price": 15.5, "name": "ab12c"}] * 3)
"""
)
_MANY = (
    _FIRST_SCRIPT
    + """
matcher.add_many([f"y{n}" for n in range(20_000)], [f"price < {n} AND genre = 'g{n % 100}'" for n in range(20_000)])
matcher.match({"genre": "crime", "price": 15.5, "name": "ab12c"})
matcher.match_batch([{"genre": "crime", "price": 15.5, "name": "ab12c"}] * 3)
"""
)
SCRIPTS = {
    "import tamis": "import tamis",
    "first match": _FIRST_MATCH,
    "first script": _FIRST_SCRIPT,
    "23,001 subscriptions": _MANY,
}


def processor_seconds(script: str, cache: str) -> float:
    """The processor seconds of a new process that runs a script."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def to_table(result: dict[str, Any]) -> str:
    """The seconds of each script."""
    rows = [
        [name, f"{each['empty']:.1f}", f"{each['filled']:.1f}"] for name, each in result["processor_seconds"].items()
    ]
    return table(["script", "empty cache", "filled cache"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where to write the results")
    arguments = parser.parse_args()
    seconds = {}
    for name, script in SCRIPTS.items():
        with tempfile.TemporaryDirectory() as cache:
            seconds[name] = {state: round(processor_seconds(script, cache), 2) for state in ("empty", "filled")}
    results = {
        "benchmark": "first use",
        "machine": machine(),
        "tamis": tamis.__version__,
        "peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        "processor_seconds": seconds,
    }
    sys.stdout.write(json.dumps(results, indent=2) + "\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
