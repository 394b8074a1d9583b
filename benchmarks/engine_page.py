"""The engine's results as tables and as a chart."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import table
from benchmarks.svg import Group, bars, number_text

DESCRIPTION = """Times are microseconds per event, the best of several passes in one process.

- *Planted* events: 1,000 subscriptions were derived from each of them, at every size. More subscriptions match by chance if
  predicates are few and wide.
- *Other* events have the same distribution, but no subscription was derived from them.
- *Engine* and *scan* both start from encoded events. The benchmark checks that both give the same answers. The scan looks at
  every conjunction, the narrowest predicate first, with the same encoding.
- *Candidates* are list entries visited. *Survivors* are candidates whose record was checked."""

_KINDS = ("planted", "other")


def to_tables(results: dict[str, Any]) -> str:
    """All tables as Markdown, each under its heading."""
    rows, sections = results["matching"], []
    if rows:
        sections.append(("Matching", matching_table(rows)))
        sections.append(("End to end", end_to_end_table(rows)))
        sections.append(("Reading and naming", ways_table(rows)))
        sections.append(("Growth", growth_table(rows)))
        sections.append(("Wide domains", wide_table(rows)))
        sections.append(("Loading and size", loading_table(rows)))
    if results["updates"] is not None:
        sections.append(("Changes while matching", updates_table(results["updates"])))
    if results["rules"] is not None:
        sections.append(("Detection rules", rules_table(results["rules"])))
    return "\n\n".join(f"### {title}\n\n{table}" for title, table in sections if table)


def matching_table(rows: list[dict[str, Any]]) -> str:
    """The engine and the scan at every size."""
    lines = []
    for row in rows:
        for kind, figures in row["kinds"].items():
            lines.append(
                [
                    row["shape"],
                    f"{row['subscriptions']:,}",
                    kind,
                    *(number_text(figures[name]) for name in ("matches", "candidates", "survivors", "engine")),
                    _figure(figures["scan"]),
                    _times(figures["scan"], figures["engine"]),
                ]
            )
    heads = [
        "shape",
        "subscriptions",
        "events",
        "matches",
        "candidates",
        "survivors",
        "engine",
        "scan",
        "scan / engine",
    ]
    return table(heads, lines)


def end_to_end_table(rows: list[dict[str, Any]]) -> str:
    """The engine and the methods of the matcher, at the largest size."""
    lines = [
        [
            row["shape"],
            kind,
            number_text(figures["attributes"]),
            number_text(figures["matches"]),
            *(number_text(figures[name]) for name in ("engine", "batch", "batch_two_threads", "dict")),
            _times(figures["batch"], figures["batch_two_threads"]),
            _times(figures["reads"], figures["reads_two_threads"]),
        ]
        for row in _largest(rows)
        for kind, figures in row["kinds"].items()
    ]
    heads = ["shape", "events", "attributes", "matches", "engine", "`match_batch`, 1 thread", "2 threads", "`match`"]
    note = (
        f"{_count(rows)} subscriptions. `match_batch` takes and returns an Arrow table, `match` takes a dict. The last column "
        "shows what the memory of the machine allows: the same ratio for threads that only read random words. Both ratios were "
        "measured in turns."
    )
    return f"{note}\n\n{table([*heads, '1 / 2 threads', 'reading memory'], lines)}"


def ways_table(rows: list[dict[str, Any]]) -> str:
    """What it costs to read events and to name matches, at every size. Empty if it was not measured."""
    lines = [
        [
            row["shape"],
            f"{row['subscriptions']:,}",
            kind,
            *(number_text(figures[way]) for way in ("dict", "mappings", "batch")),
            _times(figures["mappings"], figures["dict"]),
            number_text(max(figures["batch"] - figures["count"], 0.0)),
        ]
        for row in rows
        for kind, figures in row["kinds"].items()
        if "mappings" in figures
    ]
    heads = [
        "shape",
        "subscriptions",
        "events",
        "`match`",
        "mappings",
        "`list<struct>`",
        "mappings / `match`",
        "naming",
    ]
    note = (
        "`match` of mappings, and `match_batch` with one thread of the same mappings and of a table of one column. *Naming* is "
        "what `match_batch` takes more than `count_batch`. All were measured in turns.\n\n"
    )
    return f"{note}{table(heads, lines)}" if lines else ""


def growth_table(rows: list[dict[str, Any]]) -> str:
    """How the engine's time grows with the number of subscriptions. Empty if there is only one size."""
    sizes = sorted({row["subscriptions"] for row in rows})
    by_place = {(row["shape"], row["subscriptions"]): row["kinds"] for row in rows}
    by_turns = {row["shape"]: row.get("beside", {}).get("smallest", {}) for row in _largest(rows)}
    lines = []
    for shape in dict.fromkeys(row["shape"] for row in rows):
        for kind in _KINDS:
            each = [by_place.get((shape, size), {}).get(kind) for size in sizes]
            if len(sizes) < 2 or None in each:
                continue
            first, last = each[0], each[-1]
            matches = f"{number_text(first['matches'])} to {number_text(last['matches'])}"
            turns = by_turns.get(shape, {}).get(kind, {"this": last["engine"], "other": first["engine"]})
            ratio = _times(turns["this"], turns["other"])
            lines.append([shape, kind, matches, *(number_text(figures["engine"]) for figures in each), ratio])
    heads = ["shape", "events", "matches", *(f"{size:,}" for size in sizes), "largest / smallest"]
    note = (
        "The last column was measured in turns, the other columns one after another.\n\n"
        if any(by_turns.values())
        else ""
    )
    return f"{note}{table(heads, lines)}" if lines else ""


def wide_table(rows: list[dict[str, Any]]) -> str:
    """Shapes with a million values beside the same shapes with 100 values. Empty if they were not measured."""
    lines = [
        [
            row["shape"],
            kind,
            number_text(turns["this"]),
            number_text(turns["other"]),
            _times(turns["this"], turns["other"]),
        ]
        for row in _largest(rows)
        for kind, turns in row.get("beside", {}).get("narrow", {}).items()
    ]
    note = f"{_count(rows)} subscriptions, measured in turns."
    heads = ["shape", "events", "a million values", "100 values", "a million / 100"]
    return f"{note}\n\n{table(heads, lines)}" if lines else ""


def loading_table(rows: list[dict[str, Any]]) -> str:
    """Seconds to load an Arrow table, seconds to plan and build, and bytes, at the largest size."""
    largest = _largest(rows)
    heads = ["shape", "load, s", "of this: plan and build, s", "bytes per subscription", "with the tables"]
    saved = any(row["snapshot"] for row in largest)
    lines = []
    for row in largest:
        index, tables = row["index_bytes_each"], row["table_bytes_each"]
        line = [row["shape"], f"{row['load_seconds']:.2f}", f"{row['build_seconds']:.2f}"]
        line += [number_text(index), number_text(index + tables)]
        if saved:
            line += [f"{row['snapshot']['save_seconds']:.2f}", f"{row['snapshot']['load_seconds']:.2f}"]
        lines.append(line)
    heads += ["save, s", "load and match, s"] if saved else []
    turns = largest[0].get("build_turns", 1)
    note = f" The time to plan and build is the shortest of up to {turns} turns." if turns > 1 else ""
    return f"{_count(rows)} subscriptions.{note}\n\n{table(heads, lines)}"


_IN_TEXT = "two threads, SQL text"


def updates_table(updates: dict[str, Any]) -> str:
    """Changes per second, and the time of single matches during the changes."""
    baselines = dict.fromkeys(("two threads", _IN_TEXT), updates["one after another"])
    lines = []
    for name in ("quiet", "one after another", "one thread", "two threads", _IN_TEXT):
        if name not in updates:
            continue  # Older results lack it.
        figures = updates[name]
        quiet = baselines.get(name, updates["quiet"])
        lines.append(
            [
                name,
                _figure(figures.get("changes_per_second")),
                *(number_text(figures[each]) for each in ("median", "p99", "longest")),
                *(_times(figures[each], quiet[each]) for each in ("median", "p99")),
                _figure(figures.get("merges")),
            ]
        )
    heads = ["", "changes per second", "`match`: median", "p99", "longest", "median / quiet", "p99 / quiet", "merges"]
    texts = " The SQL texts all differ in shape." if _IN_TEXT in updates else ""
    note = (
        f"{updates['subscriptions']:,} subscriptions of shape dense, *other* events. Changes add new subscriptions and remove "
        "the oldest.\n\n"
        "- *Quiet*: no changes, a match every 400 us. *One thread* has this pace at 50,000 changes per second.\n"
        "- *One after another*: no changes and no pauses between matches.\n"
        "- *One thread*: 20 changes and a match take turns. Without the matches, there would be "
        f"{number_text(updates['one thread']['changes_per_second_alone'])} changes per second.\n"
        f"- *Two threads*: one thread changes as fast as it can, the other matches one event after another.{texts}\n\n"
        f"The table shows the round with the most changes. The {len(updates['rounds'])} rounds had "
        f"{', '.join(map(number_text, updates['rounds']))} changes per second in one thread."
    )
    return f"{note}\n\n{table(heads, lines)}"


def rules_table(rules: dict[str, Any]) -> str:
    """The time of each way to match detection rules."""
    ways = {
        "engine": "engine, from encoded events",
        "batch": "`match_batch`, 1 thread",
        "dict": "`match`",
        "scan": "`match_batch` of a scan",
        "duckdb": "DuckDB, 1 thread",
        "reference": "reference evaluator",
    }
    kinds = rules["kinds"]
    lines = [
        [
            way,
            *(_figure(kinds[kind][name]) for kind in _KINDS),
            *(_times(kinds[kind][name], kinds[kind]["batch"]) for kind in _KINDS),
        ]
        for name, way in ways.items()
        if all(kinds[kind][name] is not None for kind in _KINDS)
    ]
    said = ", and ".join(
        f"{number_text(100 * kinds[kind]['candidates'] / rules['rules'])} % and {number_text(kinds[kind]['matches'])} "
        f"for {kind} events"
        for kind in _KINDS
    )
    missing = "" if kinds["other"]["duckdb"] is not None else " DuckDB was not installed."
    note = (
        f"{rules['rules']:,} rules ({rules['conjunctions']:,} conjunctions), {rules['events']:,} events. Loading the rules took "
        f"{rules['load_seconds']:.1f} s. The benchmark checks the answers. Candidates per event, as a share of the rules, and "
        f"matches per event: {said}.{missing}"
    )
    return f"{note}\n\n{table(['way', *_KINDS, *(f'{kind} / `match_batch`' for kind in _KINDS)], lines)}"


def to_chart(results: dict[str, Any]) -> str:
    """Scan and engine side by side at the largest size, as SVG."""
    groups = []
    for row in _largest(results["matching"]):
        planted, other = (row["kinds"].get(kind) for kind in _KINDS)
        first = planted or other
        assert first is not None
        groups.append(Group(row["shape"], [first["scan"], planted and planted["engine"], other and other["engine"]]))
    title = f"Microseconds per event, {_count(results['matching'])} subscriptions, one thread"
    return bars(title, "microseconds, logarithmic", ["scan", "engine, planted events", "engine, other events"], groups)


def _largest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    most = max((row["subscriptions"] for row in rows), default=0)
    return [row for row in rows if row["subscriptions"] == most]


def _count(rows: list[dict[str, Any]]) -> str:
    return f"{max((row['subscriptions'] for row in rows), default=0):,}"


def _figure(value: float | None) -> str:
    return "" if value is None else number_text(value)


def _times(value: float | None, base: float) -> str:
    return "" if value is None else number_text(value / base)
