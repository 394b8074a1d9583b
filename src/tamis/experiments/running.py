"""Runs points: each in a process of its own, with one JSON file as its result. A run that was stopped goes on where it was.

FOLDER/points/matching-be-tree-0a1b2c3d4e5f.json     point, scale, machine, versions, and figures or a failure
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import tamis
from tamis.errors import ExperimentError
from tamis.experiments.contenders import find_contender
from tamis.experiments.machine import machine, versions
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale
from tamis.experiments.tasks import measured
from tamis.storage.replacing import replacing_target

_STARTING = 2.2
"""Seconds to start a process, and to load and compile for a point."""
_DRAWING = 12.0
"""Microseconds to make and encode a subscription."""
_SUBSCRIPTION_BYTES = 1_200
"""Bytes of a subscription while it is drawn, encoded and checked, without the index."""
_STARTED_BYTES = 400e6
"""Bytes of a process without subscriptions."""
_SHARE = 0.8
"""The most of the machine's memory that a point may need."""


class Need(NamedTuple):
    """What a point, or a whole run, is estimated to need."""

    seconds: float
    bytes: float


class Progress(NamedTuple):
    """How far a run is."""

    done: int
    points: int
    seconds_left: float
    point: Point
    result: Mapping[str, Any]


def need(point: Point, scale: Scale) -> Need:
    """What a point is estimated to need. The seconds are those of a machine such as a laptop."""
    contender, count = find_contender(point.contender), point.workload.subscriptions
    building = count * (_DRAWING + contender.build) / 1e6
    passes = 2 * (3 * scale.events * contender.match * count / 1e9 + scale.budget)
    return Need(
        _STARTING + building + passes,
        _STARTED_BYTES + count * (_SUBSCRIPTION_BYTES + contender.bytes_each),
    )


def need_of_all(points: Iterable[Point], scale: Scale) -> Need:
    """What a run is estimated to need: the seconds of all points, and the bytes of the largest."""
    needs = [need(point, scale) for point in points]
    return Need(sum(each.seconds for each in needs), max((each.bytes for each in needs), default=0.0))


def fits(point: Point, scale: Scale, room: float) -> bool:
    """Whether a point is measured if there are `room` bytes for it."""
    return need(point, scale).bytes <= _SHARE * room


def memory() -> float:
    """The bytes of the machine's memory."""
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def run(
    points: Iterable[Point],
    scale: Scale,
    folder: Path,
    progress: Callable[[Progress], None] = lambda _: None,
    apart: bool = True,
    jobs: int = 1,
) -> dict[Point, dict[str, Any]]:
    """The results of points, which are measured unless the folder has them. Each is kept as soon as it is there.

    A point that does not fit into the machine's memory, fails or takes too long has a "failure" instead of "figures".
    With `apart` False, all of them are measured in this process, and the time to compile counts. Otherwise `jobs` are measured
    at the same time, each in processor time.

    Raises
    ------
    ExperimentError
        If the folder holds results of another machine, or of other versions.
    """
    wanted = list(dict.fromkeys(points))
    results = {point: result for point in wanted if (result := _kept(point, scale, folder)) is not None}
    missing = [point for point in wanted if point not in results]
    left = need_of_all(missing, scale).seconds
    estimated, begun = 0.0, time.perf_counter()
    jobs = jobs if apart else 1
    with ThreadPoolExecutor(jobs) as pool:
        coming = {pool.submit(_measured, point, scale, apart, memory() / jobs): point for point in missing}
        try:
            for done in as_completed(coming):
                point = coming[done]
                result = {"point": point.to_dict(), "scale": scale._asdict(), **circumstances(), **done.result()}
                results[point] = result
                keep(point, scale, folder, result)
                seconds = need(point, scale).seconds
                estimated += seconds
                left -= seconds
                # Estimates are corrected by how wrong they were so far.
                rate = (time.perf_counter() - begun) / estimated
                progress(Progress(len(results), len(wanted), max(left, 0.0) * rate, point, result))
        finally:
            pool.shutdown(cancel_futures=True)
    return results


def results_of(points: Iterable[Point], scale: Scale, folder: Path) -> dict[Point, dict[str, Any]]:
    """The results that a folder has of some points."""
    return {
        point: result for point in dict.fromkeys(points) if (result := _read(_file(point, scale, folder))) is not None
    }


def _measured(point: Point, scale: Scale, apart: bool, room: float) -> dict[str, Any]:
    """Figures of a point, or its failure. It has `room` bytes of the machine's memory."""
    if not fits(point, scale, room):
        needed = need(point, scale).bytes
        return {"failure": f"needs about {needed / 2**30:.0f} GiB; there are {room / 2**30:.0f} GiB for it"}
    if not apart:
        return {"figures": measured(point, scale)}
    request = json.dumps({"point": point.to_dict(), "scale": scale._asdict()})
    command = [sys.executable, "-m", "tamis.experiments.measuring"]
    # The libraries measured beside have one thread, as all others.
    environment = {**os.environ, "POLARS_MAX_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            input=request,
            capture_output=True,
            text=True,
            timeout=scale.limit + _STARTING,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return {"failure": f"takes more than {scale.limit:.0f} s"}
    if done.returncode == 0:
        return {"figures": json.loads(done.stdout.splitlines()[-1])}
    if done.returncode < 0:
        return {"failure": f"ended by signal {-done.returncode}"}
    return {"failure": (done.stderr.strip().splitlines() or ["no message"])[-1]}


def circumstances() -> dict[str, Any]:
    """What must be equal for figures to stand in one plot."""
    return {"machine": machine(), "versions": versions(), "tamis": tamis.__version__}


def _file(point: Point, scale: Scale, folder: Path) -> Path:
    return folder / "points" / f"{scale.name}-{point.name}.json"


def _read(file: Path) -> dict[str, Any] | None:
    try:
        text = file.read_text()
    except FileNotFoundError:
        return None
    try:
        result = json.loads(text)
    except ValueError:
        result = None
    if not isinstance(result, dict) or "point" not in result:
        raise ExperimentError(f"{file} is not the result of a point. Remove it, and it is measured again")
    return result


def _kept(point: Point, scale: Scale, folder: Path) -> dict[str, Any] | None:
    """The result of a point, if the folder has it."""
    file = _file(point, scale, folder)
    result = _read(file)
    if result is None:
        return None
    for name, now in circumstances().items():
        if result[name] != now:
            raise ExperimentError(
                f"{file} was measured with another {name}: {result[name]}, here {now}. Hint: choose another folder, "
                "or remove its points"
            )
    return result


def keep(point: Point, scale: Scale, folder: Path, result: Mapping[str, Any]) -> None:
    file = _file(point, scale, folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing_target(file, durable=False) as stream:
        stream.write(json.dumps(result, indent=1).encode() + b"\n")
