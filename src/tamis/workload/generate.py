"""The generator's public face: the subscriptions and events of a config, as Arrow or as flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tamis.errors import WorkloadError
from tamis.workload.arrays import EventArrays, PredicateArrays, concatenate
from tamis.workload.config import WorkloadConfig
from tamis.workload.domain import Domain
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK, Draws
from tamis.workload.zipf import Integers

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.workload.arrow import ArrowForm

MAX_WIDE = 10_000
"""The most dimensions that events with a column per attribute may have."""


def generate(config: WorkloadConfig) -> Workload:
    """The workload of a config. Nothing is drawn before it is asked for.

    >>> from tamis.workload import generate, preset
    >>> workload = generate(preset("dense", subscriptions=20_000))
    >>> workload.subscriptions().num_rows, workload.events(5).num_rows
    (20000, 5)
    """
    return Workload(config)


class Workload:
    """Subscriptions and events. Methods can be called in any order, and again, and give the same each time."""

    def __init__(self, config: WorkloadConfig) -> None:
        self.config = config
        self._domain = Domain(config)
        self._draws = Draws(config, self._domain)

    def __reduce__(self) -> tuple[type[Workload], tuple[WorkloadConfig]]:
        # Travels to other processes as its config.
        return type(self), (self.config,)

    @property
    def attribute_names(self) -> list[str]:
        """The names of the attributes, by the numbers that the flat arrays hold; the most popular first."""
        return list(self._domain.names)

    @property
    def blocks(self) -> int:
        """How many blocks the subscriptions have, each of SUBSCRIPTION_BLOCK, the last perhaps shorter."""
        return -(-self.config.subscriptions // SUBSCRIPTION_BLOCK)

    def subscriptions(self) -> pa.Table:
        """All subscriptions: `id` (0, 1, ...) and `predicates`, see `tamis.workload.arrow`."""
        import pyarrow as pa

        return pa.Table.from_batches(self.subscription_blocks(), self.subscription_schema)

    def subscription_blocks(self) -> Iterator[pa.RecordBatch]:
        """The subscriptions, a block at a time."""
        return (self.subscription_block(block) for block in range(self.blocks))

    def subscription_block(self, block: int) -> pa.RecordBatch:
        """One block of the subscriptions, the same whether others are made or not."""
        arrays = self._draw_block(block)
        ids = block * SUBSCRIPTION_BLOCK + np.arange(len(arrays.ptr) - 1)
        return self._arrow.subscriptions(ids, arrays)

    def events(self, count: int | None = None, *, wide: bool = False) -> pa.Table:
        """The first `count` events; None: as many as the config says.

        In style be-gen they are the base events, each matched by the subscriptions derived from it; beyond the number of
        base events they repeat. With `wide` there is a column per attribute, for few dimensions.
        """
        import pyarrow as pa

        return pa.Table.from_batches(self.event_blocks(count, wide=wide), self.event_schema(wide=wide))

    def event_blocks(self, count: int | None = None, *, wide: bool = False) -> Iterator[pa.RecordBatch]:
        """The same as `events`, up to EVENT_BLOCK at a time."""
        return self._blocks_of(self._draws.events, self._event_count(count), wide)

    def other_events(self, count: int | None = None, *, wide: bool = False) -> pa.Table:
        """Events that are drawn as the others are, but from which no subscription is derived."""
        import pyarrow as pa

        return pa.Table.from_batches(self.other_event_blocks(count, wide=wide), self.event_schema(wide=wide))

    def other_event_blocks(self, count: int | None = None, *, wide: bool = False) -> Iterator[pa.RecordBatch]:
        """The same as `other_events`, up to EVENT_BLOCK at a time."""
        return self._blocks_of(self._draws.other_events, self._other_event_count(count), wide)

    def arrays(self, block: int | None = None) -> PredicateArrays:
        """The subscriptions, all or those of one block, as flat arrays: see `tamis.workload.arrays`."""
        blocks = range(self.blocks) if block is None else (block,)
        arrays = concatenate([self._draw_block(each) for each in blocks])
        attribute = np.repeat(arrays.attribute, np.diff(arrays.literal_ptr))
        return arrays._replace(literals=self._domain.numbers(attribute, arrays.literals))

    def event_arrays(self, count: int | None = None) -> EventArrays:
        """The same as `events`, as flat arrays."""
        return self._numbers(self._draws.events(np.arange(self._event_count(count))))

    def other_event_arrays(self, count: int | None = None) -> EventArrays:
        """The same as `other_events`, as flat arrays."""
        return self._numbers(self._draws.other_events(np.arange(self._other_event_count(count))))

    @property
    def subscription_schema(self) -> pa.Schema:
        """The Arrow schema of the subscriptions."""
        return self._arrow.subscription_schema

    def event_schema(self, *, wide: bool = False) -> pa.Schema:
        """The Arrow schema of the events."""
        if not wide:
            return self._arrow.event_schema
        if self.config.dimensions > MAX_WIDE:
            raise WorkloadError(
                f"{self.config.dimensions:,} dimensions are too many for a column per attribute (at most {MAX_WIDE:,}). "
                "Hint: leave out wide"
            )
        return self._arrow.wide_schema

    @cached_property
    def _arrow(self) -> ArrowForm:
        from tamis.workload.arrow import ArrowForm

        return ArrowForm(self._domain)

    def _draw_block(self, block: int) -> PredicateArrays:
        if not 0 <= block < self.blocks:
            raise WorkloadError(f"there is no block {block}: the workload has {self.blocks}, counted from 0")
        return self._draws.subscriptions(block)

    def _blocks_of(self, draw: Callable[[Integers], EventArrays], count: int, wide: bool) -> Iterator[pa.RecordBatch]:
        self.event_schema(wide=wide)  # refuses too many columns now, not when the first block is asked for
        form = self._arrow.wide_events if wide else self._arrow.events
        starts = range(0, count, EVENT_BLOCK)
        return (form(draw(np.arange(start, min(start + EVENT_BLOCK, count)))) for start in starts)

    def _numbers(self, events: EventArrays) -> EventArrays:
        return events._replace(value=self._domain.numbers(events.attribute, events.value))

    def _event_count(self, count: int | None) -> int:
        return self.config.event_count if count is None else _checked(count)

    def _other_event_count(self, count: int | None) -> int:
        return self.config.other_events if count is None else _checked(count)


def _checked(count: int) -> int:
    if count < 0:
        raise WorkloadError(f"a number of events is not negative: {count}")
    return count
