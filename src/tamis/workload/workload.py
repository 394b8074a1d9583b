"""Workload: the subscriptions and events of a config of any style."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tamis.errors import WorkloadError
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK
from tamis.workload.styles import AnyConfig

if TYPE_CHECKING:
    import pyarrow as pa

MAX_WIDE = 10_000
"""The most attributes of events with a column per attribute."""


class Workload(ABC):
    """Subscriptions and events. Methods can be called in any order and any number of times. The results are always the same."""

    config: AnyConfig

    def __reduce__(self) -> tuple[type[Workload], tuple[AnyConfig]]:
        # Only the config is sent to other processes.
        return type(self), (self.config,)

    @property
    @abstractmethod
    def attribute_names(self) -> list[str]:
        """The names of the attributes."""

    @property
    def blocks(self) -> int:
        """The number of blocks of subscriptions. Each has SUBSCRIPTION_BLOCK subscriptions; the last may be shorter."""
        return -(-self.config.subscriptions // SUBSCRIPTION_BLOCK)

    def subscriptions(self) -> pa.Table:
        """All subscriptions: `id` (0, 1, ...), and `predicates` (see `tamis.workload.arrow`) or `expression` (SQL text)."""
        import pyarrow as pa

        return pa.Table.from_batches(self.subscription_blocks(), self.subscription_schema)

    def subscription_blocks(self) -> Iterator[pa.RecordBatch]:
        """The subscriptions, one block at a time."""
        return (self.subscription_block(block) for block in range(self.blocks))

    def subscription_block(self, block: int) -> pa.RecordBatch:
        """One block of the subscriptions. It does not depend on whether other blocks are made."""
        self._check_block(block)
        return self._subscription_batch(block)

    def events(self, count: int | None = None, *, wide: bool = False) -> pa.Table:
        """The first `count` events. None: the number in the config.

        In style be-gen, these are the base events, and the subscriptions derived from an event match it. If `count` is
        larger than the number of base events, they repeat. The same holds in styles ads and derived-grams. In styles detection,
        keywords, products and prefixes, a share of the events is planted: the first planted event satisfies subscription 0, the
        next subscription 1, and so on. In style grams, all are. In styles op-index, alerts, fabret and tatbul, events are
        independent of subscriptions. With `wide` there is a column per attribute, for few dimensions.
        """
        import pyarrow as pa

        return pa.Table.from_batches(self.event_blocks(count, wide=wide), self.event_schema(wide=wide))

    def event_blocks(self, count: int | None = None, *, wide: bool = False) -> Iterator[pa.RecordBatch]:
        """`events`, up to EVENT_BLOCK at a time."""
        return self._event_batches(self._event_count(count), wide, other=False)

    def other_events(self, count: int | None = None, *, wide: bool = False) -> pa.Table:
        """Events that are independent of the subscriptions: neither is derived from the other. Otherwise drawn like `events`."""
        import pyarrow as pa

        return pa.Table.from_batches(self.other_event_blocks(count, wide=wide), self.event_schema(wide=wide))

    def other_event_blocks(self, count: int | None = None, *, wide: bool = False) -> Iterator[pa.RecordBatch]:
        """`other_events`, up to EVENT_BLOCK at a time."""
        return self._event_batches(self._other_event_count(count), wide, other=True)

    def event_block(
        self, block: int, count: int | None = None, *, wide: bool = False, other: bool = False
    ) -> pa.RecordBatch:
        """One block of the first `count` events, or other events. It has EVENT_BLOCK events; the last may be shorter."""
        total = self._other_event_count(count) if other else self._event_count(count)
        start = block * EVENT_BLOCK
        if not 0 <= start < total:
            blocks = -(-total // EVENT_BLOCK)
            raise WorkloadError(f"there is no block {block} of events: {total:,} events have {blocks}, counted from 0")
        self.event_schema(wide=wide)
        return self._event_batch(range(start, min(start + EVENT_BLOCK, total)), wide, other)

    @property
    @abstractmethod
    def subscription_schema(self) -> pa.Schema:
        """The Arrow schema of the subscriptions."""

    def event_schema(self, *, wide: bool = False) -> pa.Schema:
        """The Arrow schema of the events."""
        if wide and len(self.attribute_names) > MAX_WIDE:
            raise WorkloadError(
                f"{len(self.attribute_names):,} dimensions are too many for a column per attribute (at most {MAX_WIDE:,}). "
                "Hint: leave out wide"
            )
        return self._event_schema(wide)

    @abstractmethod
    def _subscription_batch(self, block: int) -> pa.RecordBatch:
        """One block of the subscriptions."""

    @abstractmethod
    def _event_schema(self, wide: bool) -> pa.Schema:
        """The Arrow schema of the events."""

    @abstractmethod
    def _event_batch(self, rows: range, wide: bool, other: bool) -> pa.RecordBatch:
        """The events, or the other events, with these numbers."""

    def _event_batches(self, count: int, wide: bool, other: bool) -> Iterator[pa.RecordBatch]:
        self.event_schema(wide=wide)  # raises the error for too many columns now, not with the first block
        blocks = range(-(-count // EVENT_BLOCK))
        return (self.event_block(block, count, wide=wide, other=other) for block in blocks)

    def _check_block(self, block: int) -> None:
        if not 0 <= block < self.blocks:
            raise WorkloadError(f"there is no block {block}: the workload has {self.blocks}, counted from 0")

    def _event_count(self, count: int | None) -> int:
        return self.config.event_count if count is None else _checked(count)

    def _other_event_count(self, count: int | None) -> int:
        return self.config.other_events if count is None else _checked(count)


def _checked(count: int) -> int:
    if count < 0:
        raise WorkloadError(f"the number of events must not be negative: {count}")
    return count
