"""The attributes that predicates or the schema use. Other attributes are not read."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterable
from typing import NamedTuple

from tamis.encoding.dimensions.dimension_set import Dimensions, parents_of
from tamis.language.schema import Schema


class Asked(NamedTuple):
    """The names of the attributes to read, and of the objects that contain them."""

    attributes: tuple[Container[str], ...]
    parents: tuple[Container[str], ...]

    @staticmethod
    def of(dimensions: Dimensions, schema: Schema | None = None) -> Asked:
        """The attributes of predicates, and the attributes that the schema declares: their values are checked."""
        if schema is None:
            return Asked((dimensions.by_attribute,), (dimensions.parents,))
        return Asked((dimensions.by_attribute, schema), (dimensions.parents, _parents_in(schema)))

    @staticmethod
    def names(attributes: Iterable[str], schema: Schema | None = None) -> Asked:
        """These attributes, and the attributes that the schema declares."""
        every = frozenset(attributes).union(() if schema is None else schema)
        return Asked((every,), (frozenset(parent for name in every for parent in parents_of(name)),))

    def has(self, name: str) -> bool:
        """Whether to read this attribute."""
        return any(name in names for names in self.attributes)

    def every(self) -> set[str]:
        """All attributes to read, if they are known by name."""
        return {name for names in self.attributes if isinstance(names, Iterable) for name in names}

    def leads_to(self, name: str) -> bool:
        """Whether to read an attribute below this name, like `a.b` below `a`."""
        return any(name in names for names in self.parents)


class _Everything:
    def __contains__(self, name: object) -> bool:
        return bool(name)


EVERYTHING = Asked((_Everything(),), (_Everything(),))
"""All names except the empty one. No expression can contain the empty name."""


NOTHING = Asked((), ())
"""No name."""


@functools.lru_cache(maxsize=64)
def _parents_in(schema: Schema) -> frozenset[str]:
    return frozenset(parent for name in schema for parent in parents_of(name))
