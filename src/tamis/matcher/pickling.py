"""The store of a matcher in a form that can be pickled: a snapshot of the engine, or the expressions over another index."""

from __future__ import annotations

from typing import Any, NamedTuple

from tamis.kernels.numbers import F64s
from tamis.language.expression import Expression
from tamis.language.schema import Schema
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.expression_store import GivenExpressions
from tamis.matcher.history_store import store_of
from tamis.matcher.ids import Id
from tamis.matcher.limits import StoreLimits
from tamis.matcher.paper_store import PaperStore
from tamis.matcher.snapshot import contents_of_bytes, snapshot_bytes
from tamis.matcher.store import Store
from tamis.papers.options import Options
from tamis.papers.registry import find_index


class PickledEngine(NamedTuple):
    """A store over the engine."""

    snapshot: bytes
    limits: StoreLimits


class PickledIndex(NamedTuple):
    """A store over an index; subscriptions in order of addition."""

    name: str
    options: Options
    ids: list[Id]
    expressions: list[Expression]
    weights: F64s
    limits: StoreLimits


def pickled(store: Store[Any]) -> PickledEngine | PickledIndex:
    """All subscriptions of a store at one moment."""
    if isinstance(store, EngineStore):
        return PickledEngine(snapshot_bytes(store.contents()), store.limits)
    assert isinstance(store, PaperStore)
    with store.changing():
        slots = store.ids.slots()
        expressions = [store.sources.expression(slot) for slot in slots.tolist()]
        ids, weights = store.ids.listed(), store.weights(slots)
        return PickledIndex(store.index.name, store.options, ids, expressions, weights, store.limits)


def unpickled(given: PickledEngine | PickledIndex, schema: Schema | None) -> Store[Any]:
    """The same store again.

    Raises
    ------
    SnapshotError
        If another version of Tamis pickled the store.
    """
    if isinstance(given, PickledEngine):
        return store_of(contents_of_bytes(given.snapshot), schema, given.limits)
    index = find_index(given.name)
    assert index is not None
    store = PaperStore(index, given.options, schema, given.limits)
    store.add(given.ids, store.compile(given.expressions), GivenExpressions(given.expressions), given.weights)
    return store
