"""The figures of the benchmark of the service as tables."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import table
from benchmarks.svg import number_text

DESCRIPTION = """What [the network](service.md) costs on top of the broker.

- The load client shares the machine and its cores with the service. It speaks HTTP over plain sockets. *Client* is
  `tamis.connect`, whose receipts name all matches: each name is looked up among those of all subscriptions.
- Each event has one match. All events are on disk when their answer comes.
- *Crowd*: connections that publish single events, each as soon as it has an answer. One more connection changes subscriptions all
  the time. A process of its own asks for the health, ten milliseconds after each answer. *Streams* publish bodies of 20,000
  lines."""

Row = dict[str, Any]


def to_tables(result: Row) -> str:
    """All tables as Markdown."""
    subscriptions = f"{result['subscriptions']:,} subscriptions"
    sections = {
        f"Publishing lines over HTTP, {subscriptions}": publishing_table(result["publishing"]),
        f"Answers while a crowd publishes, {subscriptions}": crowd_table(result["crowds"]),
    }
    memory = f"The service used {result['service_peak_bytes'] / 1e9:.1f} GB."
    return "\n\n".join([*(f"### {title}\n\n{text}" for title, text in sections.items()), memory])


_WAYS = {
    "one body": "one of {:,} lines",
    "bodies": "1,000 lines each",
    "client": "client, 1,000 events each",
    "counting client": "client with `with_matches=False`",
}


def publishing_table(rows: list[Row]) -> str:
    lines = [
        [
            _WAYS[row["way"]].format(row["events"]),
            f"{row['rates']['broker']:,.0f}",
            f"{row['rates']['http']:,.0f}",
            number_text(row["ratio"]),
        ]
        for row in rows
    ]
    heads = ["requests", "`publish_many`, events/s", "HTTP, events/s", "HTTP / `publish_many`"]
    return table(heads, lines)


_ASKED = {
    "publish": "publish an event",
    "change": "change a subscription",
    "health": "health",
    "stream": "20,000 lines",
}


def crowd_table(rows: list[Row]) -> str:
    lines = [
        [
            f"{row['connections']} connections" + (f", {row['streams']} stream" if row["streams"] else ""),
            _ASKED[name],
            number_text(row[name]["rate"]),
            *(number_text(row[name][each]) for each in ("p50", "p95", "p99", "most")),
        ]
        for row in rows
        for name in _ASKED
        if "p50" in row[name]
    ]
    return table(["crowd", "request", "a second", "median, ms", "95 %, ms", "99 %, ms", "slowest, ms"], lines)
