"""Counters and histograms, and Prometheus' text of them. All of them are changed in the event loop alone, so they need no lock.

There is no need for a registry shared by the process: each tenant has its own figures, and its text shows no others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of histograms of seconds."""


class Histogram:
    """How often values came, by upper bounds."""

    def __init__(self, bounds: tuple[float, ...] = BOUNDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def record(self) -> dict[str, Any]:
        """The histogram for JSON. The last count is of values above all bounds."""
        return {"le": list(self.bounds), "counts": list(self.counts), "sum": self.sum, "count": self.count}


class WebhookMetrics:
    """What became of the messages of the webhooks of one tenant."""

    def __init__(self) -> None:
        self.deliveries = 0
        """Messages that receivers have taken."""
        self.notes = 0
        """Their notes."""
        self.failures = 0
        """Tries that failed."""
        self.dead = 0
        """Notes that became dead letters."""
        self.seconds = Histogram()
        """For each try."""

    def tried(self, delivered: bool, notes: int, seconds: float) -> None:
        """Count a try to send a message."""
        self.seconds.add(seconds)
        if delivered:
            self.deliveries += 1
            self.notes += notes
        else:
            self.failures += 1


class TenantMetrics:
    """What happened to one tenant since the service started."""

    def __init__(self) -> None:
        self.events = 0
        self.matches = 0
        self.notes_read = 0
        self.refused = 0
        """Requests beyond a rate."""
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """By method, route and status."""
        self.request_seconds = Histogram()
        self.publish_seconds = Histogram()
        """For each call that publishes, one event or a block of lines: until it is on disk."""
        self.streams = 0
        """Streams that are open."""
        self.webhooks = WebhookMetrics()

    def published(self, events: int, matches: int, seconds: float) -> None:
        self.events += events
        self.matches += matches
        self.publish_seconds.add(seconds)


class Page:
    """Prometheus' text, line by line. All samples of a name stand together."""

    def __init__(self) -> None:
        self._families: dict[str, list[str]] = {}

    def add(self, name: str, kind: str, help: str, value: float, labels: Mapping[str, str] | None = None) -> None:
        """Add a sample of a counter or a gauge."""
        self._family(name, kind, help).append(f"{name}{_labels(labels)} {_number(value)}")

    def add_histogram(self, name: str, help: str, found: Histogram, labels: Mapping[str, str]) -> None:
        """Add a histogram."""
        lines, total = self._family(name, "histogram", help), 0
        for bound, count in zip((*map(str, found.bounds), "+Inf"), found.counts, strict=True):
            total += count
            lines.append(f"{name}_bucket{_labels({**labels, 'le': bound})} {total}")
        lines.append(f"{name}_sum{_labels(labels)} {_number(found.sum)}")
        lines.append(f"{name}_count{_labels(labels)} {total}")

    def _family(self, name: str, kind: str, help: str) -> list[str]:
        return self._families.setdefault(name, [f"# HELP {name} {help}", f"# TYPE {name} {kind}"])

    def text(self) -> str:
        return "".join(f"{line}\n" for lines in self._families.values() for line in lines)


def add_tenant(page: Page, tenant: str, found: TenantMetrics, figures: Mapping[str, Any]) -> None:
    """Add what is known of a tenant. `figures` are those of `Figures.record`."""
    own = {"tenant": tenant}
    for name, help, value in (
        ("tamis_events_total", "Events that were published.", found.events),
        ("tamis_matches_total", "Subscriptions that events satisfied.", found.matches),
        ("tamis_candidates_total", "Entries of the index that events visited.", figures["candidates"]),
        ("tamis_notes_read_total", "Notes that were handed out.", found.notes_read),
        ("tamis_refused_total", "Requests that were refused beyond a rate.", found.refused),
    ):
        page.add(name, "counter", help, value, own)
    hooks = found.webhooks
    for name, help, value in (
        ("tamis_webhook_deliveries_total", "Messages that receivers of webhooks have taken.", hooks.deliveries),
        ("tamis_webhook_notes_total", "Notes that receivers of webhooks have taken.", hooks.notes),
        ("tamis_webhook_failures_total", "Tries to send a message that failed.", hooks.failures),
        ("tamis_webhook_dead_letters_total", "Notes that became dead letters.", hooks.dead),
    ):
        page.add(name, "counter", help, value, own)
    for (method, route, status), count in sorted(found.requests.items()):
        labels = {**own, "method": method, "route": route, "status": str(status)}
        page.add("tamis_requests_total", "counter", "Requests.", count, labels)
    page.add_histogram("tamis_request_seconds", "Time of requests, without streams.", found.request_seconds, own)
    page.add_histogram("tamis_publish_seconds", "Time until events were safe on disk.", found.publish_seconds, own)
    page.add_histogram("tamis_webhook_seconds", "Time of tries to send a message to a receiver.", hooks.seconds, own)
    for state, count in figures["webhooks"]["states"].items():
        page.add("tamis_webhooks", "gauge", "Webhooks, by their state.", count, {**own, "state": state})
    for name, help, value in (
        ("tamis_subscriptions", "Subscriptions.", figures["subscriptions"]),
        ("tamis_subscribers", "Subscribers.", figures["subscribers"]),
        ("tamis_stored_events", "Events in the tables.", figures["stored_events"]),
        ("tamis_waiting_notes", "Notes that were not acknowledged.", figures["waiting"]),
        ("tamis_streams", "Open streams and requests that wait for notes.", figures["streams"]),
        ("tamis_kept_dead_letters", "Dead letters that are kept.", figures["webhooks"]["dead_letters"]),
        ("tamis_index_bytes", "Memory of the index.", figures["index_bytes"]),
        ("tamis_problem", "1 if work in the background has failed.", figures["problem"] is not None),
    ):
        page.add(name, "gauge", help, value, own)
    _add_named(page, "tamis_queue_depth", "Notes that wait, of the deepest queues.", own, figures["deepest"], "waiting")
    hottest = "Matches of the subscriptions with the most."
    _add_named(page, "tamis_hottest_matches", hottest, own, figures["hottest"], "matches")
    slowest = "Expected cost of the most expensive subscriptions among a sample, for each event."
    _add_named(page, "tamis_slowest_nanoseconds", slowest, own, figures["slowest"], "nanoseconds")


def _add_named(
    page: Page, name: str, help: str, own: Mapping[str, str], records: Iterable[Mapping[str, Any]], value: str
) -> None:
    for record in records:
        labels = {key: str(record[key]) for key in ("subscriber", "name") if key in record}
        page.add(name, "gauge", help, record[value], {**own, **labels})


def _labels(labels: Mapping[str, str] | None) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
