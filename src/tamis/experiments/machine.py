"""The facts about a machine that affect times and memory."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from llvmlite.binding import get_host_cpu_name


def machine() -> dict[str, Any]:
    """The facts about the machine that affect times."""
    return {
        "processor": platform.machine(),
        "model": get_host_cpu_name(),
        "system": platform.system(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "caches": _caches(),
    }


def _caches() -> dict[str, int]:
    """The bytes of the outer caches of a core, if the system tells. They matter: much of matching is waiting for memory."""
    sizes = {}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, size = ((folder / name).read_text().strip() for name in ("level", "size"))
        except OSError:
            continue
        if level in ("2", "3") and size.endswith("K"):
            sizes[f"L{level}"] = int(size[:-1]) * 1024
    return dict(sorted(sizes.items()))


def versions() -> dict[str, str]:
    """The versions of the libraries that affect times."""
    return {name: version(name) for name in ("numba", "numpy", "pyarrow")}
