"""The figures of the indexes as text."""

from __future__ import annotations

from typing import Any


def line_of(row: dict[str, Any]) -> str:
    """One figure as it is printed while the others are measured."""
    place = f"{row['index']:18} {row['shape']:9} {row['subscriptions']:9,}"
    if "failure" in row:
        return f"{place}  {row['failure']}"
    ratio = row["scan_microseconds"] / row["microseconds"]
    return (
        f"{place} {row['kind']:8} {row['microseconds']:9.1f} us, {ratio:7.1f} times a scan, {row['matches']:6.0f} matches of "
        f"{row['candidates']:9.1f} candidates, {row['nodes']:8.1f} nodes, build {row['build_seconds']:6.2f} s, "
        f"{row['bytes_each']:5.0f} B each"
    )
