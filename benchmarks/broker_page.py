"""The figures of the benchmark of the broker as tables."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import table
from benchmarks.svg import number_text

DESCRIPTION = """What a [broker](pubsub.md) costs on top of matching.

- *Plain script*: `match_batch`, then each event and its list of matches as one row in SQLite, all events in one transaction. Both
  sides write JSON with the same function, and both wait for the disk. The script writes keys and ends, too, and its keys are
  unique.
- *Slow disk*: each sync takes at least two milliseconds; the benchmark adds them underneath SQLite.
- Times of meetings are processor times, the median of later meetings. *First* is the first meeting with this subscription, when
  kernels are loaded and lower case and addresses are made.
- *plain*: events with one value for each attribute. *lists*: events with lists of strings and objects, integers beyond 2^53,
  intervals, and titles outside of ASCII."""

Row = dict[str, Any]


def to_tables(result: Row) -> str:
    """All tables as Markdown."""
    sections = {
        "Publishing 1,000 events in one call": publishing_table(result["publishing"]),
        "Publishing single events": sharing_table(result["sharing"]),
        "Lists of matches in SQLite": layouts_table(result["layouts"]),
        "A new subscription meets stored events": meeting_table(result["meeting"]),
        "Opening and reading": reading_table(result["reading"], result["first_meeting"]),
    }
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in sections.items())


def publishing_table(rows: list[Row]) -> str:
    lines = [
        [
            f"{row['matches']:,}",
            ", ".join(f"`{name}`" for name in row.get("options", ())),
            number_text(row["milliseconds"]["plain"]),
            number_text(row["milliseconds"]["broker"]),
            number_text(row["ratio"]),
        ]
        for row in rows
    ]
    return table(["matches per event", "with", "plain script, ms", "broker, ms", "broker / plain"], lines)


def sharing_table(rows: list[Row]) -> str:
    lines = [
        [
            f"`{row['synchronous']}`" + (", slow disk" if row["slow"] else ""),
            f"{row['one']:,.0f}",
            f"{row['many']:,.0f}",
            number_text(row["gain"]),
            f"{row['commits']:.2f}",
        ]
        for row in rows
    ]
    heads = ["synchronous", "one thread, events/s", "16 threads, events/s", "gain", "commits per event"]
    return table(heads, lines)


def layouts_table(rows: list[Row]) -> str:
    lines = [[row["layout"], number_text(row["milliseconds"]), f"{row['bytes'] / 1e6:.2f}"] for row in rows]
    reason = "Tamis stores JSON text: bytes are faster, but SQL tools cannot read them."
    return f"100 events with 1,000 matches each. {reason}\n\n{table(['layout', 'write, ms', 'MB'], lines)}"


def meeting_table(rows: list[Row]) -> str:
    lines = [
        [
            row.get("events", "plain"),
            f"`{row['text']}`",
            f"{row['found']:,}",
            number_text(row["milliseconds"]),
            number_text(row["first_milliseconds"]) if "first_milliseconds" in row else "",
        ]
        for row in rows
    ]
    return table(["events", "subscription", "events found", "ms", "first, ms"], lines)


def reading_table(row: Row, first: Row) -> str:
    subscribers, notes, events = f"{row['subscribers']:,}", f"{row['notes']:,}", f"{first['events']:,}"
    lines = [
        [f"the next 100 notes of one of {subscribers} subscribers with {notes} notes", _ms(row["read_milliseconds"])],
        [f"subscribing {subscribers} at once", _s(row["subscribe_seconds"])],
        ["opening the folder again", _s(row["open_seconds"])],
        ["opening it without its caches", _s(row["build_seconds"])],
        [
            f"opening a folder with {events} valid events, until a new subscription met them",
            _s(first["cached_seconds"]),
        ],
        ["the same without its caches", _s(first["plain_seconds"])],
    ]
    if "told" in first:
        what = f"a new subscription that finds {first['told']:,} of these events, until all are told (processor time)"
        lines.append([what, _ms(first["telling_milliseconds"])])
    return table(["", "time"], lines)


def _ms(milliseconds: float) -> str:
    return f"{number_text(milliseconds)} ms"


def _s(seconds: float) -> str:
    return f"{number_text(seconds)} s"
