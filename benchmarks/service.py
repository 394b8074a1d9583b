"""What the network costs: publishing over HTTP beside the broker itself, and latency under many connections.

python -m benchmarks.service [--quick] [--folder FOLDER] [--json FILE]

The load client speaks HTTP over plain sockets, so that little of its own time is measured. It shares the machine with the
service. Filling a broker with 1,000,000 subscriptions takes minutes, so `FOLDER` keeps it for the next time.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import tamis
from benchmarks.broker import filled_broker, offers
from tamis.experiments.machine import machine, versions
from tamis.experiments.timing import seconds_of
from tamis.service.tenant_names import DEFAULT, folder_of

CONNECTIONS = 64
_AT_ONCE = 1000
"""Events of one call of `publish_many`."""
_LINES = {"Content-Type": "application/x-ndjson"}

Figures = dict[str, Any]


class Sizes:
    """How much is measured."""

    def __init__(self, quick: bool) -> None:
        self.subscriptions = 2_000 if quick else 1_000_000
        self.events = 1_000 if quick else 50_000
        self.turns = 2 if quick else 5
        self.seconds = 0.5 if quick else 20.0
        self.warm_seconds = 0.2 if quick else 3.0
        """A crowd that is not measured: kernels are loaded, and connections made."""


class Served:
    """A service in a process of its own."""

    def __init__(self, folder: Path) -> None:
        words = [sys.executable, "-m", "tamis", "serve", str(folder), "--port", "0", "--log", "warning"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rpartition(":")[2])
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port)

    def post(self, path: str, body: bytes, headers: dict[str, str]) -> Any:
        self._connection.request("POST", path, body, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise AssertionError(text)
        return json.loads(text)

    def peak_bytes(self) -> int:
        """The most memory that the service has used."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    def stop(self) -> None:
        self._connection.close()
        self.process.terminate()
        self.process.wait()


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """A service that ends with the block."""
    found = Served(folder)
    try:
        yield found
    finally:
        found.stop()


def lines_of(events: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


# -- one connection that publishes lines


WAYS = ("one body", "bodies", "client", "counting client")
"""One body of lines for all events, a body for each thousand, or calls of our own client: its receipts name the matches, or only
count them."""


def publishing(service: Served, broker: tamis.broker.Broker, sizes: Sizes, way: str) -> Figures:
    """Events per second through the service and by the broker, by turns. Each event has one match."""
    taken: dict[str, list[float]] = {"http": [], "broker": []}
    client = tamis.connect(f"http://127.0.0.1:{service.port}")
    for turn in range(sizes.turns + 1):
        events = offers(turn, sizes.events, sizes.subscriptions)
        groups = [events[at : at + _AT_ONCE] for at in range(0, len(events), _AT_ONCE)]
        bodies = [lines_of(events)] if way == "one body" else list(map(lines_of, groups))

        def over_http(bodies: list[bytes] = bodies) -> None:
            for body in bodies:
                service.post("/v1/events", body, _LINES)

        def by_client(groups: list[list[dict[str, Any]]] = groups) -> None:
            for group in groups:
                client.publish_many(group, with_matches=way == "client")

        def direct(groups: list[list[dict[str, Any]]] = groups) -> None:
            for group in groups:
                broker.publish_many(group)

        sent = by_client if "client" in way else over_http
        works: dict[str, Callable[[], None]] = {"http": sent, "broker": direct}
        for name in sorted(works, reverse=bool(turn % 2)):
            seconds = seconds_of(works[name])
            if turn:  # The first turn warms up.
                taken[name].append(seconds)
    client.close()
    ratios = [ours / plain for ours, plain in zip(taken["broker"], taken["http"], strict=True)]
    rates = {name: sizes.events / median(seconds) for name, seconds in taken.items()}
    return {"way": way, "events": sizes.events, "rates": rates, "ratio": median(ratios)}


# -- many connections


class Connection:
    """One connection that sends a request and waits for its answer, again and again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.seconds: list[float] = []

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
        """The body of an answer. Its time is noted."""
        began = time.perf_counter()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        found = await self._reader.readexactly(length)
        self.seconds.append(time.perf_counter() - began)
        if not answer.startswith(b"HTTP/1.1 2"):
            raise AssertionError(found)
        return found

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


def ask_health(port: int, seconds: float) -> list[float]:
    """How long answers about the health take, ten milliseconds after each other.

    It runs in a process of its own, as a probe does. Beside the crowd, it would wait for the load client, too.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port)
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while not taken or time.perf_counter() < end:
        began = time.perf_counter()
        connection.request("GET", "/health")
        if connection.getresponse().read() != b'{"status":"ok"}':
            raise AssertionError("the service is not well")
        taken.append(time.perf_counter() - began)
        time.sleep(0.01)
    connection.close()
    return taken


async def crowd(
    port: int, sizes: Sizes, seconds: float, connections: int, streams: bool, probe: ProcessPoolExecutor
) -> Figures:
    """Publish by many connections for some seconds, while subscriptions change and the process `probe` asks for the health.

    With `streams`, one more connection publishes lines as fast as it can.
    """
    events = [json.dumps(event).encode() for event in offers(77, 1000, sizes.subscriptions)]
    body = lines_of(offers(78, 20 * _AT_ONCE, sizes.subscriptions))
    numbers = count()

    async def publish(connection: Connection) -> None:
        await connection.ask("POST", "/v1/events", events[next(numbers) % len(events)])

    async def change(connection: Connection) -> None:
        number = next(numbers) % 1000
        text = json.dumps({"expression": f"item = {number} AND price < 1 AND stock >= 1"}).encode()
        await connection.ask("PUT", f"/v1/subscribers/changer/subscriptions/n{number}", text)

    async def stream(connection: Connection) -> None:
        await connection.ask("POST", "/v1/events", body, "application/x-ndjson")

    async def again(work: Callable[[Connection], Awaitable[None]], connection: Connection) -> Connection:
        await connection.open()
        await work(connection)  # Each connection counts, however slow the machine is.
        while time.perf_counter() < end:
            await work(connection)
        await connection.close()
        return connection

    kinds: dict[str, tuple[Callable[[Connection], Awaitable[None]], int]] = {
        "publish": (publish, connections),
        "change": (change, 1),
        "stream": (stream, int(streams)),
    }
    began = time.perf_counter()
    end = began + seconds
    health = asyncio.get_running_loop().run_in_executor(probe, ask_health, port, seconds)
    tasks = {
        name: [asyncio.create_task(again(work, Connection(port))) for _ in range(number)]
        for name, (work, number) in kinds.items()
    }
    found: Figures = {"connections": connections, "streams": int(streams)}
    for name, running in tasks.items():
        taken = np.concatenate([np.array((await task).seconds) for task in running] or [np.empty(0)])
        found[name] = percentiles(taken, time.perf_counter() - began)
    found["health"] = percentiles(np.array(await health), seconds)
    if streams:
        found["stream"]["events_per_second"] = found["stream"]["rate"] * 20 * _AT_ONCE
    return found


def percentiles(seconds: np.ndarray[Any, np.dtype[np.float64]], over: float) -> Figures:
    """Requests per second, and milliseconds of answers."""
    if not len(seconds):
        return {"rate": 0.0}
    p50, p95, p99 = (float(1000 * each) for each in np.percentile(seconds, [50, 95, 99]))
    return {"rate": len(seconds) / over, "p50": p50, "p95": p95, "p99": p99, "most": float(1000 * seconds.max())}


def filled_folder(home: Path, subscriptions: int) -> Path:
    """The folder of a service that has the subscriptions. It is made if it is not there."""
    found = home / f"filled-{subscriptions}"
    if not found.is_dir():
        part = home / f"{found.name}.part"
        shutil.rmtree(part, ignore_errors=True)
        folder_of(part, DEFAULT).mkdir(parents=True)
        # In a process of its own, which gives its memory back.
        process = multiprocessing.get_context("spawn").Process(target=_fill, args=(part, subscriptions))
        process.start()
        process.join()
        if process.exitcode != 0:
            raise AssertionError("the subscriptions could not be added")
        part.rename(found)
    return found


def _fill(folder: Path, subscriptions: int) -> None:
    filled_broker(folder_of(folder, DEFAULT), subscriptions, subscriptions, "off").close()


def measure(quick: bool, folder: str | None) -> Figures:
    """All figures. With a `folder`, the subscriptions stay there for the next time."""
    sizes = Sizes(quick)
    figures: Figures = {
        "benchmark": "service",
        "machine": machine(),
        "versions": versions(),
        "tamis": tamis.__version__,
    }
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as home:
        own, plain = Path(home) / "served", Path(home) / "plain"
        filled = filled_folder(Path(home if folder is None else folder), sizes.subscriptions)
        shutil.copytree(filled, own)
        shutil.copytree(folder_of(own, DEFAULT), plain)
        figures["subscriptions"] = sizes.subscriptions
        with served(own) as service:
            with tamis.open(plain) as broker:
                _note(figures, "publishing", [publishing(service, broker, sizes, each) for each in WAYS])
            spawn = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(1, spawn) as probe:
                asyncio.run(crowd(service.port, sizes, sizes.warm_seconds, CONNECTIONS, True, probe))
                loads = ((CONNECTIONS, False), (0, True), (CONNECTIONS, True))
                crowds = [asyncio.run(crowd(service.port, sizes, sizes.seconds, *load, probe)) for load in loads]
            _note(figures, "crowds", crowds)
            figures["service_peak_bytes"] = service.peak_bytes() if sys.platform == "linux" else 0
    figures["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return figures


def _note(figures: Figures, name: str, found: list[Any]) -> None:
    figures[name] = found
    for each in found:
        sys.stdout.write(f"{name}: {json.dumps(each)}\n")
        sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="little data, to try the benchmark")
    parser.add_argument("--folder", help="a folder on the disk to measure; it keeps the filled broker")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = parser.parse_args()
    figures = measure(given.quick, given.folder)
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
