"""How processes end while threads of Tamis work: many small scripts and some large ones. Other processes keep all cores busy.

Prints how many scripts ended with each exit status, and the longest time to end. ``make bench-exits`` runs it.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
import time

from tamis.experiments.machine import machine

# A script prints the time when it begins to end. At that time, each run is at another point of merging or planning.
_SMALL = """
import sys, time
import tamis
matcher = tamis.Matcher()
for part in range(5):
    ids = range(part * 4200, (part + 1) * 4200)
    matcher.add_many(ids, [f"a = {n % 50} AND b < {n % 7} AND c{n % 9} = 1" for n in ids])
matcher.match_batch([{"a": n % 3, "b": 1} for n in range(12_000)], threads=2)
time.sleep(float(sys.argv[1]))
print(time.time(), flush=True)
"""
_LARGE = """
import sys, time
import tamis
from tamis.workload import generate, preset
work = generate(preset("alerts", subscriptions=1_000_000, events=12_000))
matcher = tamis.Matcher()
matcher.add_table(work.subscriptions())
matcher.match_batch(work.events(), threads=2)
time.sleep(float(sys.argv[1]))
print(time.time(), flush=True)
"""
_BUSY = "while True: pass"


def measure(script: str, runs: int) -> dict[str, object]:
    """Run a script `runs` times. It ends a little later in its work each time, from the start again after 20 runs."""
    statuses: collections.Counter[int] = collections.Counter()
    longest = 0.0
    for run in range(runs):
        command = [sys.executable, "-c", script, str(run % 20 * 0.01)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        statuses[done.returncode] += 1
        if done.returncode:
            sys.stderr.write(done.stderr)
        else:
            longest = max(longest, time.time() - float(done.stdout))
    return {"runs": runs, "statuses": dict(statuses), "longest_end_s": round(longest, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=200, help="how many small scripts")
    parser.add_argument("--large", type=int, default=5, help="how many scripts with a million price alerts")
    arguments = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        results = {
            "machine": machine(),
            "small": measure(_SMALL, arguments.small),
            "large": measure(_LARGE, arguments.large),
        }
    finally:
        for process in busy:
            process.kill()
    sys.stdout.write(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
