"""Detection rules and JSON: every way into the matcher beside `json.loads`, loading, and the commands beside jq.

python -m benchmarks.detection [--sample FOLDER] [--rules 4000] [--events 8000] [--quick] [--json FILE]

A sample is a folder with rules.jsonl (id, expression) and events.jsonl.gz, such as real rules and real logs. Without one, rules
and events are generated.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

import tamis
from benchmarks.markdown import table
from benchmarks.svg import number_text
from tamis.experiments.machine import machine, versions
from tamis.experiments.timing import seconds_of
from tamis.workload import generate, preset

DESCRIPTION = """Processor microseconds per event in one process, and shares of `json.loads` of the same lines. All ways take
turns, each event is new in each pass, and the best pass counts. *Two threads* are measured by the clock, beside one thread.
Loading is `add_many` of SQL texts, in a process that has loaded rules before. Generated rules and events are the preset
`detection`; a sample is a folder of real ones, which is not part of the project. `tamis match` and `tamis filter` are whole
processes: the first column has the seconds for a small file, and the others what each line of a larger file adds, between two
files that are large enough for kernels. jq selects the same events."""

_PASSES = 4
_FEW_COPIES, _COPIES = 12, 8
"""How often the events are in the first large file of the commands, and how much more often in the second. The small file has
them once: `tamis filter` loads no kernels for it."""
_COMMAND_PASSES = 2

Event: TypeAlias = dict[str, Any]


class Data(NamedTuple):
    """Rules and events."""

    rules: list[str]
    lines: list[str]

    @staticmethod
    def of_sample(folder: Path, most: int) -> Data:
        rules = [json.loads(line)["expression"] for line in (folder / "rules.jsonl").read_text().splitlines()]
        with gzip.open(folder / "events.jsonl.gz", "rt", encoding="utf-8") as file:
            return Data(rules, [line.rstrip("\n") for line in islice(file, most)])

    @staticmethod
    def generated(rules: int, events: int, seed: int) -> Data:
        """One event in a hundred is planted: it satisfies a rule."""
        workload = generate(preset("detection", subscriptions=rules, planted_share=0.01, seed=seed))
        given = workload.events(events, wide=True).to_pylist()
        lines = [json.dumps({name: value for name, value in event.items() if value is not None}) for event in given]
        return Data(workload.subscriptions().column("expression").to_pylist(), lines)

    def text(self) -> bytes:
        return ("\n".join(self.lines) + "\n").encode()

    def mappings(self) -> list[Event]:
        return [json.loads(line) for line in self.lines]

    def columns(self) -> pa.Table:
        """The events as a wide table. Values of an attribute with several kinds become texts."""
        events = self.mappings()
        columns = {}
        for name in dict.fromkeys(name for event in events for name in event):
            values = [event.get(name) for event in events]
            kinds = {type(value) for value in values if value is not None}
            is_plain = len(kinds) < 2 and kinds <= {str, int, float, bool}
            columns[name] = pa.array(values if is_plain else [None if each is None else str(each) for each in values])
        return pa.table(columns)


class _Way(NamedTuple):
    """What is measured, and what it is given anew in each pass."""

    work: Callable[[Any], Any]
    given: Callable[[], Any]


def measure(data: Data, passes: int) -> dict[str, Any]:
    """All figures of some rules and events."""
    matcher: tamis.Matcher[int] = tamis.Matcher()
    loading = _loading(data, matcher, passes)
    answers = _check(matcher, data)
    ways = _ways(matcher, data)
    best = {name: [float("inf"), float("inf")] for name in ways}
    for _ in range(passes):
        for name, way in ways.items():
            given = way.given()
            began = time.perf_counter()
            cpu = seconds_of(lambda way=way, given=given: way.work(given), time.process_time)  # type: ignore[misc]
            best[name] = [min(best[name][0], cpu), min(best[name][1], time.perf_counter() - began)]
    each = 1e6 / len(data.lines)
    return {
        "rules": len(data.rules),
        "events": len(data.lines),
        "bytes_each": sum(map(len, data.lines)) / len(data.lines),
        "matches": answers / len(data.lines),
        "candidates": matcher.stats()["candidates"] / matcher.stats()["events"],
        "loading": loading,
        "ways": {name: {"processor": cpu * each, "clock": clock * each} for name, (cpu, clock) in best.items()},
        "median": _median(matcher, data),
    }


def _ways(matcher: tamis.Matcher[int], data: Data) -> dict[str, _Way]:
    text, columns = data.text(), data.columns()

    def one_by_one(events: list[Event]) -> None:
        for event in events:
            matcher.match(event)

    return {
        "json.loads": _Way(lambda _: data.mappings(), lambda: None),
        "match_batch of mappings": _Way(lambda events: matcher.match_batch(events, 1), data.mappings),
        "match_batch of mappings, two threads": _Way(lambda events: matcher.match_batch(events, 2), data.mappings),
        "match": _Way(one_by_one, data.mappings),
        "match_batch of Arrow columns": _Way(lambda _: matcher.match_batch(columns, 1), lambda: None),
        "match_json_batch": _Way(lambda _: matcher.match_json_batch(text, 1), lambda: None),
        "match_json_batch, two threads": _Way(lambda _: matcher.match_json_batch(text, 2), lambda: None),
    }


def _loading(data: Data, matcher: tamis.Matcher[int], passes: int) -> float:
    """The seconds of loading all rules, after a first time. The matcher gets them, too."""
    ids = range(len(data.rules))
    matcher.add_many(ids, data.rules)
    return min(
        seconds_of(lambda: tamis.Matcher().add_many(ids, data.rules), time.process_time) for _ in range(min(passes, 3))
    )


def _check(matcher: tamis.Matcher[int], data: Data) -> int:
    """Match in all ways, which must agree; returns the number of matches. Arrow columns may have other kinds of values."""
    events = data.mappings()
    matcher.match_batch(data.columns(), 1)
    found = {
        frozenset(zip(*batch.to_pydict().values(), strict=True))
        for batch in (matcher.match_batch(events, 1), matcher.match_json_batch(data.text(), 1))
    }
    found.add(frozenset((row, number) for row, event in enumerate(events) for number in matcher.match(event)))
    if len(found) > 1:
        raise AssertionError("the ways into the matcher disagree")
    return len(found.pop())


def _median(matcher: tamis.Matcher[int], data: Data) -> float:
    """The median processor time of `match`, as a share of that of `json.loads` of the same event."""
    matched, read = [], []
    for line in data.lines:
        began = time.thread_time_ns()
        event = json.loads(line)
        between = time.thread_time_ns()
        matcher.match(event)
        matched.append(time.thread_time_ns() - between)
        read.append(between - began)
    return median(matched) / (sum(read) / len(read))


# -- commands


def measure_commands(data: Data, copies: int, passes: int) -> dict[str, Any]:
    """Whole processes: the seconds for a small file, and what each line more takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rules = folder / "rules.jsonl"
        small, few, many = files = [folder / f"{name}.jsonl" for name in ("small", "few", "many")]
        rules.write_text("".join(json.dumps({"id": i, "expression": each}) + "\n" for i, each in enumerate(data.rules)))
        small.write_bytes(data.text())
        few.write_bytes(data.text() * _FEW_COPIES)
        many.write_bytes(data.text() * (_FEW_COPIES + copies))
        attribute, value = _frequent_text(data.lines)
        tamis_command = [sys.executable, "-m", "tamis"]
        condition = f"{json.dumps(attribute)} = {_quoted(value)}"
        commands = {
            "tamis match": [*tamis_command, "match", str(rules), "{}"],
            "tamis filter": [*tamis_command, "filter", condition, "{}"],
        }
        if shutil.which("jq") is not None:
            selection = f"select(.[{json.dumps(attribute)}] == {json.dumps(value)})"
            commands["jq"] = ["jq", "-c", selection, "{}"]
        lines = copies * len(data.lines)
        figures: dict[str, Any] = {"lines": lines, "few": len(data.lines), "condition": condition}
        figures["commands"] = {}
        best = {each: {file: (float("inf"),) * 2 for file in files} for each in commands}
        for _ in range(passes):
            for each, command in commands.items():
                for file in files:
                    spent = _spent([part.replace("{}", str(file)) for part in command], folder / "out")
                    best[each][file] = tuple(map(min, best[each][file], spent))  # type: ignore[assignment]
        for each, (least, start, whole) in ((each, tuple(of.values())) for each, of in best.items()):
            figures["commands"][each] = {
                "few_processor": least[0],
                "processor_each": (whole[0] - start[0]) / lines * 1e6,
                "few_clock": least[1],
                "clock_each": (whole[1] - start[1]) / lines * 1e6,
            }
        return figures


def _spent(command: list[str], output: Path) -> tuple[float, float]:
    """The processor seconds and the seconds of a process that writes to a file."""
    before, began = _children(), time.perf_counter()
    with output.open("wb") as file:
        subprocess.run(command, stdout=file, check=True)
    return _children() - before, time.perf_counter() - began


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _frequent_text(lines: list[str]) -> tuple[str, str]:
    """An attribute and its value that a share of the events has, but not most."""
    counts: dict[tuple[str, str], int] = {}
    for line in lines:
        for name, value in json.loads(line).items():
            if isinstance(value, str):
                counts[name, value] = counts.get((name, value), 0) + 1
    return min(counts, key=lambda each: (abs(counts[each] / len(lines) - 0.1), each))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# -- the page


def to_tables(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    return "\n\n".join(_section(each) for each in results["data"])


def _section(figures: dict[str, Any]) -> str:
    return "\n\n".join(part for part in (_head(figures), _ways_table(figures), _commands_table(figures)) if part)


def _head(figures: dict[str, Any]) -> str:
    load = figures["load"]
    busy = f" Other processes ran beside, with a load of {load:.0f}: times by the clock say little." if load > 1 else ""
    return (
        f"### {figures['name']}\n\n{figures['rules']:,} rules, {figures['events']:,} events of "
        f"{figures['bytes_each']:,.0f} bytes, "
        f"{number_text(figures['matches'])} matches and {number_text(figures['candidates'])} candidates per event. "
        f"Loading takes {figures['loading']:.2f} s. The median of `match` is {figures['median']:.2f} of the mean of `json.loads`."
        f"{busy}"
    )


def _ways_table(figures: dict[str, Any]) -> str:
    ways = figures["ways"]
    unit = ways["json.loads"]["processor"]
    rows = []
    for name, way in ways.items():
        one = ways.get(name.removesuffix(", two threads"))
        faster = f"{one['clock'] / way['clock']:.2f}" if one is not None and one is not way else ""
        rows.append([name, number_text(way["processor"]), f"{way['processor'] / unit:.2f}", faster])
    return table(["way", "us an event", "/ `json.loads`", "two threads, times as fast"], rows)


def _commands_table(figures: dict[str, Any]) -> str:
    if "commands" not in figures:
        return ""
    commands = figures["commands"]
    rows = [
        [
            f"`{name}`",
            f"{each['few_processor']:.2f}",
            number_text(each["processor_each"]),
            f"{1e6 / each['processor_each']:,.0f}",
            f"{1e6 / each['clock_each']:,.0f}",
        ]
        for name, each in commands["commands"].items()
    ]
    small = f"{commands['few']:,} lines, s"
    heads = ["command", small, "us a line more", "lines per second of a core", "lines per second"]
    return (
        f"{commands['lines']:,} lines more. The condition of `tamis filter` is `{commands['condition']}`.\n\n"
        + table(heads, rows)
    )


def _sets(options: argparse.Namespace) -> Iterator[tuple[str, Data]]:
    rules, events = (100, 300) if options.quick else (options.rules, options.events)
    yield "Generated rules", Data.generated(rules, events, options.seed)
    if options.sample is not None:
        yield "A sample of real rules", Data.of_sample(options.sample, events)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.detection", description="Measure detection rules on JSON."
    )
    parser.add_argument("--sample", type=Path, help="a folder with rules.jsonl and events.jsonl.gz, measured as well")
    parser.add_argument("--rules", type=int, default=4_000, help="generated rules (default: 4,000)")
    parser.add_argument("--events", type=int, default=8_000, help="events of each kind of data (default: 8,000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the generated data (default: 1)")
    parser.add_argument("--quick", action="store_true", help="little data: shows that the benchmark works")
    parser.add_argument("--no-commands", action="store_true", help="leave out tamis match, tamis filter and jq")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args(arguments)
    passes = 1 if options.quick else _PASSES
    measured = []
    for name, data in _sets(options):
        figures = {"name": name, "load": os.getloadavg()[0], **measure(data, passes)}
        if not options.no_commands:
            figures |= {
                "commands": measure_commands(data, 1 if options.quick else _COPIES, min(passes, _COMMAND_PASSES))
            }
        measured.append(figures)
        sys.stdout.write(_section(figures) + "\n\n")
        sys.stdout.flush()
    results = {
        "benchmark": "detection",
        "machine": machine(),
        "versions": versions(),
        "tamis": tamis.__version__,
        "seed": options.seed,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "data": measured,
    }
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
