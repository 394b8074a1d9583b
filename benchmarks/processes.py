"""A process and all its descendants, on Linux: who they are, and what they have used."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def family(process: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        fields = _stat(int(entry.parent.name))
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, at = [process], 0
    while at < len(found):
        found += children.get(found[at], [])
        at += 1
    return found


def processor_seconds(processes: list[int]) -> float:
    """The processor time of some processes, and of their children that have ended."""
    return sum(sum(map(int, _stat(process)[11:15])) for process in processes) / _TICKS


def _stat(process: int) -> list[str]:
    """The fields of a process after its name; none if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
