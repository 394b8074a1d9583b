"""The store of a matcher as something that can be pickled: a snapshot of the engine, the expressions of any other index."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.language.expression import Expression
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.expression_store import GivenExpressions
from tamis.matcher.ids import Id
from tamis.matcher.paper_store import IndexStore
from tamis.matcher.snapshot import contents_of_bytes, snapshot_bytes
from tamis.matcher.store import Store
from tamis.papers.options import Options
from tamis.papers.registry import find_index


class PickledEngine(NamedTuple):
    """A store over the engine."""

    snapshot: bytes


class PickledIndex(NamedTuple):
    """A store over an index; subscriptions in order of addition."""

    name: str
    options: Options
    ids: list[Id]
    expressions: list[Expression]
    weights: npt.NDArray[np.float64]


def pickled(store: Store[Any]) -> PickledEngine | PickledIndex:
    """All subscriptions of a store, as they are at one moment."""
    if isinstance(store, EngineStore):
        return PickledEngine(snapshot_bytes(store.contents()))
    assert isinstance(store, IndexStore)
    with store.changing():
        slots = store.ids.slots()
        expressions = [store.sources.expression(slot) for slot in slots.tolist()]
        return PickledIndex(store.index.name, store.options, store.ids.listed(), expressions, store.weights(slots))


def unpickled(given: PickledEngine | PickledIndex, scalars: Container[str]) -> Store[Any]:
    """The same store again.

    Raises
    ------
    SnapshotError
        When it was pickled by another version of Tamis.
    """
    if isinstance(given, PickledEngine):
        engine = EngineStore(scalars)
        engine.restore(contents_of_bytes(given.snapshot))
        return engine
    index = find_index(given.name)
    assert index is not None
    store = IndexStore(index, given.options, scalars)
    store.add(given.ids, store.compile(given.expressions), GivenExpressions(given.expressions), given.weights)
    return store
