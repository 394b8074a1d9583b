"""What predicates mean, spelled out once more and as plainly as possible, to check the generator with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.workload import OPERATORS, EventArrays, PredicateArrays

Rows = list[dict[str, Any]]


def plain(value: Any) -> Any:
    """A value of a table as a Python scalar: a struct of kinds has one field set."""
    if isinstance(value, dict):
        (only,) = [part for part in value.values() if part is not None]
        return only
    return value


def event_dicts(table: pa.Table) -> list[dict[str, Any]]:
    """The events of a table of pairs; an attribute that occurs twice is an error."""
    events = []
    for pairs in table["event"].to_pylist():
        event = {pair["attribute"]: plain(pair["value"]) for pair in pairs}
        assert len(event) == len(pairs)
        events.append(event)
    return events


def holds(operator: str, literals: list[Any], value: Any) -> bool:
    first = literals[0]
    match operator:
        case "=":
            return bool(value == first)
        case "<>":
            return bool(value != first)
        case "<":
            return bool(value < first)
        case "<=":
            return bool(value <= first)
        case ">":
            return bool(value > first)
        case ">=":
            return bool(value >= first)
        case "between":
            return bool(first <= value <= literals[1])
        case "in":
            return value in literals
        case "not in":
            return value not in literals
        case "like":
            assert first.endswith("%")
            return bool(value.startswith(first[:-1]))
    raise AssertionError(f"unexpected operator {operator!r}")


def matches(predicates: Iterable[Mapping[str, Any]], event: Mapping[str, Any]) -> bool:
    """Whether a subscription of a table matches an event."""
    return all(
        predicate["attribute"] in event
        and holds(predicate["operator"], [plain(value) for value in predicate["values"]], event[predicate["attribute"]])
        for predicate in predicates
    )


def planted_holds(arrays: PredicateArrays, events: EventArrays) -> npt.NDArray[np.bool_]:
    """For each predicate but LIKE (always true here): whether the event with its subscription's number satisfies it.

    `events` has a row for each subscription.
    """
    owner = np.repeat(np.arange(len(events.value)), np.diff(arrays.ptr))
    same = events.attribute[owner] == arrays.attribute[:, None]
    present: npt.NDArray[np.bool_] = same.any(axis=1)
    value = events.value[owner, same.argmax(axis=1)]
    first = arrays.literals[arrays.literal_ptr[:-1]]
    last = arrays.literals[arrays.literal_ptr[1:] - 1]
    member = np.logical_or.reduceat(
        arrays.literals == np.repeat(value, np.diff(arrays.literal_ptr)), arrays.literal_ptr[:-1]
    )
    answers = {
        "=": value == first,
        "<>": value != first,
        "<": value < first,
        "<=": value <= first,
        ">": value > first,
        ">=": value >= first,
        "between": (first <= value) & (value <= last),
        "in": member,
        "not in": ~member,
        "like": np.ones(len(value), np.bool_),
    }
    answer = np.zeros(len(value), np.bool_)
    for code, operator in enumerate(OPERATORS):
        answer |= (arrays.operator == code) & answers[operator]
    return present & answer
