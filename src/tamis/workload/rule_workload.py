"""RuleWorkload: detection rules as SQL text, and events of strings."""

from __future__ import annotations

from functools import cached_property, lru_cache, partial
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from tamis.workload.arrays import offsets
from tamis.workload.detection import DetectionConfig
from tamis.workload.detection.draw import draw_rule
from tamis.workload.detection.events import Event, draw_event, plant
from tamis.workload.detection.fields import FIELDS, LOG_SOURCE_FIELDS, SOURCES
from tamis.workload.draw import SUBSCRIPTION_BLOCK
from tamis.workload.workload import Workload

if TYPE_CHECKING:
    import pyarrow as pa


class RuleWorkload(Workload):
    """The workload of style detection.

    subscriptions   id: int64, expression: string
    events          event: list<struct<attribute: string, value: string>>, or wide: one column per field
    """

    config: DetectionConfig

    def __init__(self, config: DetectionConfig) -> None:
        self.config = config
        self._rule = lru_cache(SUBSCRIPTION_BLOCK)(partial(draw_rule, config.seed))

    @cached_property
    def attribute_names(self) -> list[str]:
        """The names of the fields: first the fields that rules use, then the other fields of events."""
        events = [draw_event(Random(0), 0, source) for source in SOURCES]
        return list(dict.fromkeys([*FIELDS, *LOG_SOURCE_FIELDS, *(name for event in events for name in event)]))

    @property
    def subscription_schema(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([("id", pa.int64()), ("expression", pa.string())])

    def _event_schema(self, wide: bool) -> pa.Schema:
        import pyarrow as pa

        if wide:
            return pa.schema([(name, pa.string()) for name in self.attribute_names])
        return pa.schema([("event", pa.list_(pa.struct([("attribute", pa.string()), ("value", pa.string())])))])

    def _subscription_batch(self, block: int) -> pa.RecordBatch:
        import pyarrow as pa

        first = block * SUBSCRIPTION_BLOCK
        numbers = range(first, min(first + SUBSCRIPTION_BLOCK, self.config.subscriptions))
        texts = [str(self._rule(number).expression()) for number in numbers]
        return pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(texts)], schema=self.subscription_schema)

    def _event_batch(self, rows: range, wide: bool, other: bool) -> pa.RecordBatch:
        import pyarrow as pa

        drawn = [self._other_event(row) if other else self._event(row) for row in rows]
        schema = self._event_schema(wide)
        if wide:
            columns = [pa.array([event.get(name) for event in drawn], pa.string()) for name in schema.names]
            return pa.RecordBatch.from_arrays(columns, schema=schema)
        pairs = pa.StructArray.from_arrays(
            [
                pa.array([name for event in drawn for name in event], pa.string()),
                pa.array([value for event in drawn for value in event.values()], pa.string()),
            ],
            fields=list(schema.field("event").type.value_type),
        )
        ends = offsets(np.array([len(event) for event in drawn]))
        return pa.RecordBatch.from_arrays([pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pairs)], schema=schema)

    def _event(self, number: int) -> Event:
        """An event by its number. Planted event k satisfies rule k."""
        rng = Random(f"event {number} of {self.config.seed}")
        before, after = (int(self.config.planted_share * count) for count in (number, number + 1))
        if after == before:
            return draw_event(rng, number)
        rule = self._rule(before % self.config.subscriptions)
        event = draw_event(rng, number, rule.source)
        plant(rule, event, rng)
        return event

    def _other_event(self, number: int) -> Event:
        return draw_event(Random(f"other event {number} of {self.config.seed}"), number)
