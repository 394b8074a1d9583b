"""Figures of the process. Only an operator sees its memory."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from tamis.service.metrics import Page
from tamis.service.service import Service


def process_record(service: Service, *, sees_all: bool) -> dict[str, Any]:
    """Figures of the process. What depends on all tenants is for those who see them all."""
    found: dict[str, Any] = {"started": service.started, "uptime": time.time() - service.started}
    return {**found, "resident_bytes": resident_bytes()} if sees_all else found


def process_text(page: Page, service: Service) -> None:
    """Add the figures of the process."""
    page.add("tamis_start_time_seconds", "gauge", "When the process started.", service.started)
    page.add("tamis_resident_bytes", "gauge", "Memory of the process.", resident_bytes())
    page.add("tamis_log_dropped_total", "counter", "Lines of the log that nobody read in time.", service.log.dropped)
    for (method, route, status), count in sorted(service.requests.items()):
        labels = {"tenant": "", "method": method, "route": route, "status": str(status)}
        page.add("tamis_requests_total", "counter", "Requests.", count, labels)


def resident_bytes() -> int:
    """The memory that the process uses now; where the system does not say, the most that it has used."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    import resource

    return pages * resource.getpagesize()
