"""The figures of the benchmark of cards as tables."""

from __future__ import annotations

from typing import Any

from benchmarks.markdown import table
from benchmarks.svg import number_text

DESCRIPTION = """How fast [a GPU](gpu.md) matches.

- The shapes are those of the engine's benchmark. *Planted* events satisfy a thousand subscriptions each, *other* events were made
  without looking at subscriptions.
- *Kernel*: the kernel alone, timed by the card, on encoded events that are on the card.
- *GPU* and *CPU*: `match_batch` from an Arrow table to an Arrow table, by turns, the best of several passes. The CPU has all
  processors of the machine. *Counts*: `count_batch` on the GPU.
- *First*: the first batch, which compiles the kernels unless they are on disk, and uploads the index.
- Both find the same matches in the first 2,000 events.
- The second table shows one part of a batch, 65,536 events, in one thread and without overlap. *Whole* is what the thread needed;
  what the card's steps do not explain, the processor spends on copying into pinned memory and on starting steps. In a batch, four
  threads overlap all of this.
- Shards were measured apart. Processes build and save them at the same time. Then all are on the card, and each matches all
  events, one shard after another."""

_STEPS = {
    "upload": ("upload",),
    "encode": ("encode_columns", "encode_entries"),
    "match": ("match_events",),
    "name": ("put_in_order", "name_in_order"),
    "download": ("download",),
    "whole": ("whole",),
}
"""Column -> the steps of a timeline in it."""

Row = dict[str, Any]


def to_tables(result: Row) -> str:
    """All tables as Markdown."""
    device, rows = result["device"], result["rows"]
    card = f"Card: {device['name']}, {device['memory'] / 1e9:.0f} GB. CPU: {result['threads']} threads."
    heads = ["subscriptions", "shape", "events", "matches", "entries", "kernel", "GPU", "CPU", "GPU / CPU"]
    rates = table([*heads, "counts", "first, s"], [_line(row) for row in rows])
    timelines = table(["shape", "events", *_STEPS], [_timeline(row) for row in rows])
    parts = [f"{card} Millions of events per second:", rates, "Milliseconds of one part of a batch:", timelines]
    if result.get("shards"):
        parts += [
            "Dense subscriptions in shards on one card, millions of other events per second:",
            _shards(result["shards"]),
        ]
    return "\n\n".join(parts)


def _line(row: Row) -> list[str]:
    rates = [row[name] / 1e6 for name in ("kernel_events", "gpu_events", "cpu_events")]
    return [
        f"{row['subscriptions']:,}",
        row["shape"],
        row["kind"],
        f"{row['matches']:,.0f}",
        f"{row['candidates']:,.0f}",
        *map(number_text, rates),
        number_text(rates[1] / rates[2]),
        number_text(row["count_events"] / 1e6),
        number_text(row["first_seconds"]),
    ]


def _timeline(row: Row) -> list[str]:
    steps = row["timeline"]
    sums = [sum(steps.get(name, 0.0) for name in names) * 1e3 for names in _STEPS.values()]
    return [row["shape"], row["kind"], *map(number_text, sums)]


def _shards(shards: Row) -> str:
    heads = ["subscriptions", "shards", "matches", "built in, s", "bytes on the card", "GPU", "counts"]
    line = [
        f"{shards['subscriptions']:,}",
        str(shards["shards"]),
        f"{shards['matches']:,.0f}",
        f"{shards['build_seconds']:.0f}",
        f"{shards['card_bytes'] / 1e9:.1f} GB",
        number_text(shards["gpu_events"] / 1e6),
        number_text(shards["count_events"] / 1e6),
    ]
    return table(heads, [line])
