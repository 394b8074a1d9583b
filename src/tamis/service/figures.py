"""The figures of a tenant, for the metrics and the console. What takes long is looked up every few seconds only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tamis.broker import Broker
from tamis.broker.answer_json import subscriber_json
from tamis.errors import UnknownIdError
from tamis.service.hub import Hub
from tamis.service.metrics import TenantMetrics, WebhookMetrics
from tamis.service.webhooks.webhooks import Webhooks

SHOWN = 10
"""Subscriptions and subscribers in lists of the most extreme ones."""
_SAMPLE = 20
"""Subscriptions whose costs are looked at together. The most expensive ones of all samples are kept."""
_SHARE = 20
"""Figures that take long are looked up again after this many times the time that they took: at most 5 % of a thread."""

T = TypeVar("T")


class _Slow(Generic[T]):
    """A figure that takes long, and is looked up now and then."""

    def __init__(self, look: Callable[[Broker], T], seconds: float) -> None:
        self._look = look
        self._seconds = seconds
        self._due = 0.0
        self._found: T | None = None

    def get(self, broker: Broker) -> T:
        """The figure, at least as young as the last look."""
        began = time.monotonic()
        if self._found is None or began >= self._due:
            self._due = began + 3600  # Others take the last figure meanwhile.
            self._found = self._look(broker)
            ended = time.monotonic()
            self._due = ended + max(self._seconds, _SHARE * (ended - began))
        return self._found


class Figures:
    """Figures of one tenant. Its calls run in threads."""

    def __init__(self, tenant: str, metrics: TenantMetrics, hub: Hub, webhooks: Webhooks) -> None:
        self._tenant = tenant
        self._metrics = metrics
        self._hub = hub
        self._webhooks = _Slow(lambda broker: webhooks.figures(), 2)
        self._costs: dict[int, float] = {}
        self._counts = _Slow(lambda broker: broker.counts(), 2)
        self._depths = _Slow(lambda broker: broker.deepest(SHOWN), 2)
        self._slowest = _Slow(self._sampled, 10)

    def record(self, broker: Broker) -> dict[str, Any]:
        """All figures."""
        brief, counts = broker.brief(), self._counts.get(broker)
        waiting, deepest = self._depths.get(broker)
        metrics = self._metrics
        return {
            "time": time.time(),
            "tenant": self._tenant,
            "events": metrics.events,
            "matches": metrics.matches,
            "notes_read": metrics.notes_read,
            "refused": metrics.refused,
            "requests": sum(metrics.requests.values()),
            "errors": sum(count for (_, _, status), count in list(metrics.requests.items()) if status >= 400),
            "publish_seconds": metrics.publish_seconds.record(),
            "request_seconds": metrics.request_seconds.record(),
            "candidates": brief["matcher"]["candidates"],
            "subscriptions": counts["subscriptions"],
            "active": brief["matcher"]["subscriptions"],
            "subscribers": counts["subscribers"],
            "stored_events": counts["events"],
            "last_event": brief["last_event"],
            "notes": brief["notes"],
            "index_bytes": brief["matcher"]["bytes"],
            "drift": brief["matcher"]["index_stats"].get("drift"),
            "problem": brief["problem"],
            "waiting": waiting,
            "streams": metrics.streams,
            "webhooks": {**_counts(metrics.webhooks), **self._webhooks.get(broker)},
            "deepest": [subscriber_json(each) for each in deepest],
            "hottest": [{**_named(broker, number), "matches": count} for number, count in self._hub.hottest(SHOWN)],
            "slowest": [{**_named(broker, number), "nanoseconds": cost} for number, cost in self._slowest.get(broker)],
        }

    def _sampled(self, broker: Broker) -> list[tuple[int, float]]:
        """The most expensive subscriptions of all samples so far, with their costs of now."""
        known = {number: cost for number in self._costs if (cost := broker.cost(number)) is not None}
        known.update(broker.costs(_SAMPLE, seed=int(time.time())))
        self._costs = dict(sorted(known.items(), key=lambda pair: -pair[1])[:SHOWN])
        return list(self._costs.items())


def _counts(found: WebhookMetrics) -> dict[str, int]:
    return {"deliveries": found.deliveries, "notes": found.notes, "failures": found.failures, "dead": found.dead}


def _named(broker: Broker, number: int) -> dict[str, str]:
    try:
        subscriber, name = broker.names(number)
    except UnknownIdError:
        return {"subscriber": "", "name": str(number)}
    return {"subscriber": subscriber, "name": name}
