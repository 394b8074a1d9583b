"""Measures one point in a process of its own: a point cannot spoil another one's memory or caches, and may be stopped.

python -m tamis.experiments.measuring < request > answer      both are JSON
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from typing import Any

from tamis.experiments.contenders import find_contender
from tamis.experiments.point import Point
from tamis.experiments.scales import SMOKE, Scale
from tamis.experiments.tasks import measured
from tamis.kernels.notice import notice
from tamis.workload import DetectionConfig

_WARM = 500
"""Subscriptions of the workload that everything is compiled with."""


def measured_warm(point: Point, scale: Scale) -> dict[str, Any]:
    """The figures of a point, measured after everything is compiled. The seconds for that are among them."""
    begun = time.perf_counter()
    few = min(_WARM, point.workload.subscriptions)
    if find_contender(point.contender).index_name != "scan" and not isinstance(point.workload, DetectionConfig):
        measured(replace(point, workload=replace(point.workload, subscriptions=few)), SMOKE)
    compiled, spent = time.perf_counter(), notice.spent
    figures = measured(point, scale)
    if notice.spent > spent:  # Many subscriptions need kernels that few do not need.
        compiled = time.perf_counter()
        figures = measured(point, scale)
    return {
        **figures,
        "compile_seconds": compiled - begun,
        "seconds": time.perf_counter() - compiled,
    }


def main() -> None:
    request = json.load(sys.stdin)
    figures = measured_warm(Point.from_dict(request["point"]), Scale(**request["scale"]))
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
