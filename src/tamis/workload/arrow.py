"""Flat arrays to Arrow, in the forms that Tamis reads.

    subscriptions   id: int64, predicates: list<struct<attribute: string, operator: string, values: list<V>>>
    events          event: list<struct<attribute: string, value: V>>, or wide: one column per attribute

V is int64 or double. If all attributes have strings, V is string. If only some have strings, V is a struct with a nullable field
for each kind, one of them set: ``struct<integer: int64, string: string>``, or with floats
``struct<number: double, string: string>``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.kernels.numbers import Bools, I32s, I64s, U8s
from tamis.workload.arrays import EventArrays, PredicateArrays, offsets
from tamis.workload.domain import Domain
from tamis.workload.implied import OPERATORS
from tamis.workload.zipf import Floats


class ArrowForm:
    """Turns the arrays of one domain into record batches."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._names = pa.array(domain.names, pa.string())
        self._operators = pa.array([str(operator) for operator in OPERATORS], pa.string())
        value = self._value_type()
        predicate = pa.struct([("attribute", pa.string()), ("operator", pa.string()), ("values", pa.list_(value))])
        pair = pa.struct([("attribute", pa.string()), ("value", value)])
        self.subscription_schema = pa.schema([("id", pa.int64()), ("predicates", pa.list_(predicate))])
        self.event_schema = pa.schema([("event", pa.list_(pair))])
        self.wide_schema = pa.schema(
            [
                (name, pa.string() if string else self._number())
                for name, string in zip(domain.names, domain.strings, strict=True)
            ]
        )

    def subscriptions(self, ids: I64s, arrays: PredicateArrays) -> pa.RecordBatch:
        counts = np.diff(arrays.literal_ptr)
        values = self._values(np.repeat(arrays.attribute, counts), arrays.literals, np.repeat(arrays.prefix, counts))
        predicate = pa.StructArray.from_arrays(
            [
                self._names.take(pa.array(arrays.attribute)),
                self._operators.take(pa.array(arrays.operator)),
                _lists(arrays.literal_ptr, values),
            ],
            fields=list(self.subscription_schema.field("predicates").type.value_type),
        )
        return pa.RecordBatch.from_arrays(
            [pa.array(ids), _lists(arrays.ptr, predicate)], schema=self.subscription_schema
        )

    def events(self, arrays: EventArrays) -> pa.RecordBatch:
        used = arrays.attribute >= 0
        attribute = arrays.attribute[used]
        pair = pa.StructArray.from_arrays(
            [self._names.take(pa.array(attribute)), self._values(attribute, arrays.value[used])],
            fields=list(self.event_schema.field("event").type.value_type),
        )
        return pa.RecordBatch.from_arrays(
            [_lists(offsets(np.count_nonzero(used, axis=1)), pair)], schema=self.event_schema
        )

    def wide_events(self, arrays: EventArrays) -> pa.RecordBatch:
        """A column per attribute. It is NULL if an event lacks the attribute."""
        values = np.zeros((len(arrays.value), len(self._names)), arrays.value.dtype)
        absent = np.ones(values.shape, np.bool_)
        used = arrays.attribute >= 0
        rows, attribute = np.nonzero(used)[0], arrays.attribute[used]
        values[rows, attribute] = arrays.value[used]
        absent[rows, attribute] = False
        columns = [self._column(rank, values[:, rank], absent[:, rank]) for rank in range(len(self._names))]
        return pa.RecordBatch.from_arrays(columns, schema=self.wide_schema)

    def _column(self, rank: int, values: I64s | Floats, absent: Bools) -> pa.Array:
        if self._domain.strings[rank]:
            return self._strings(values, absent)
        attribute = np.full(len(values), rank, np.int32)
        return pa.array(self._domain.numbers(attribute, values), self._number(), mask=absent)

    def _number(self) -> pa.DataType:
        return pa.float64() if self._domain.floats else pa.int64()

    def _value_type(self) -> pa.DataType:
        if not self._domain.has_strings:
            return self._number()
        if not self._domain.has_numbers:
            return pa.string()
        return pa.struct([("number" if self._domain.floats else "integer", self._number()), ("string", pa.string())])

    def _values(self, attribute: I32s, values: I64s | Floats, prefix: U8s | None = None) -> pa.Array:
        """Values of the type V. `prefix` is as in PredicateArrays; None stands for zeros."""
        numbers = self._domain.numbers(attribute, values)
        if not self._domain.has_strings:
            return pa.array(numbers, self._number())
        string = self._domain.strings[attribute]
        strings = self._strings(values, ~string, prefix)
        if not self._domain.has_numbers:
            return strings
        return pa.StructArray.from_arrays(
            [pa.array(numbers, self._number(), mask=string), strings], fields=list(self._value_type())
        )

    def _strings(self, values: I64s | Floats, absent: Bools, prefix: U8s | None = None) -> pa.Array:
        """The strings of values. Absent values are NULL."""
        present = ~absent
        kept = np.zeros(np.count_nonzero(present), np.uint8) if prefix is None else prefix[present]
        ends, text = self._domain.spell(values[present], kept)
        # An absent string is empty: it ends where the last present string ends.
        places = ends[np.concatenate([[0], np.cumsum(present)])].astype(np.int32)
        validity = pa.py_buffer(np.packbits(present, bitorder="little"))
        return pa.StringArray.from_buffers(len(values), pa.py_buffer(places), pa.py_buffer(text), validity)


def _lists(ptr: npt.NDArray[Any], values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(ptr, pa.int32()), values)
