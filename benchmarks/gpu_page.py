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
  processors of the machine, and so has the GPU: they encode events.
- *First*: the first batch, which compiles the kernels and uploads the index.
- Both find the same matches in the first 2,000 events."""

Row = dict[str, Any]


def to_tables(result: Row) -> str:
    """All tables as Markdown."""
    device = result["device"]
    card = f"Card: {device['name']}, {device['memory'] / 1e9:.0f} GB. CPU: {result['threads']} threads."
    heads = ["subscriptions", "shape", "events", "matches", "entries", "kernel", "GPU", "CPU", "GPU / CPU", "first, s"]
    return f"{card} Millions of events per second:\n\n{table(heads, [_line(row) for row in result['rows']])}"


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
        number_text(row["first_seconds"]),
    ]
