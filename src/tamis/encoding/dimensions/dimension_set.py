"""All dimensions that predicates have asked for, by number and by attribute, with short cuts for events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encoding.dimensions.dimension import (
    CLASSES,
    AddressDimension,
    BooleanDimension,
    Dimension,
    Facet,
    NumberDimension,
    PatternDimension,
    PresenceDimension,
    StringDimension,
    TimestampDimension,
)
from tamis.encoding.dimensions.premises import NO_PREMISES
from tamis.kernels.numbers import I32s
from tamis.language.values import Kind


class ValueKeys(NamedTuple):
    """All keys of a value: the dimension of each, and 1 if a predicate needs another kind of value, else 0."""

    dimension: list[int]
    keys: list[int]
    mismatched: int


class Facets:
    """The dimensions of one attribute, arranged by the kind of value that feeds them."""

    __slots__ = ("address", "asked", "boolean", "known", "number", "patterns", "presence", "texts", "timestamp")

    def __init__(self) -> None:
        self.asked: frozenset[Kind | Facet] = frozenset()
        """The kinds that some predicate compares with, and ADDRESS if one asks for addresses."""
        self.address: AddressDimension | None = None
        self.number: NumberDimension | None = None
        self.timestamp: TimestampDimension | None = None
        self.boolean: BooleanDimension | None = None
        self.presence: PresenceDimension | None = None
        self.texts: list[StringDimension] = []
        self.patterns: list[PatternDimension] = []
        self.known: dict[str, ValueKeys] = {}
        """Strings that events had lately. They are forgotten when their keys may have changed."""

    def add(self, dimension: Dimension) -> None:
        self.known.clear()
        dimension.listen(self.known.clear)
        if isinstance(dimension, StringDimension):
            self.asked |= {Kind.STRING}
            self.texts.append(dimension)
        elif isinstance(dimension, PatternDimension):
            self.asked |= {Kind.STRING}
            self.patterns.append(dimension)
        elif isinstance(dimension, AddressDimension):
            self.asked |= {Kind.STRING, Facet.ADDRESS}
            self.address = dimension
        else:
            setattr(self, dimension.facet.value, dimension)
            if dimension.facet is not Facet.PRESENCE:
                self.asked |= {Kind(dimension.facet.value)}

    def number_keys(self, number: float) -> ValueKeys:
        """All keys of a number of an event, which is within the language."""
        dimension = [] if self.presence is None else [self.presence.number]
        keys = [0] * len(dimension)
        if self.number is not None:
            dimension.append(self.number.number)
            keys.append(self.number.key(number))
        return ValueKeys(dimension, keys, int(not self.asked <= _A_NUMBER))

    def string_keys(self, text: str) -> ValueKeys:
        """All keys of a string of an event."""
        dimension: list[int] = []
        keys: list[int] = []
        found: set[Kind | Facet] = {Kind.STRING}
        if self.presence is not None:
            dimension.append(self.presence.number)
            keys.append(0)
        for each in self.texts:
            dimension.append(each.number)
            keys.append(each.key(text))
        for pattern in self.patterns:
            hits = pattern.hits(text)
            dimension += [pattern.number] * len(hits)
            keys += hits
        if self.address is not None:
            located = [key for key in self.address.located([text]) if key is not None]
            dimension += [self.address.number] * len(located)
            keys += located
            found |= {Facet.ADDRESS} if located else set()
        return ValueKeys(dimension, keys, int(not self.asked <= found))

    def is_mismatched_by_strings(self) -> bool:
        """Whether predicates need another kind than strings. An address is found by looking at the string."""
        return not self.asked <= _A_STRING


_A_NUMBER, _A_STRING = frozenset({Kind.NUMBER}), frozenset({Kind.STRING})
_LONGEST_KNOWN = 256
"""The longest string that is remembered."""

NOT_ASKED = -1
"""Instead of the dimension of an attribute that has none."""


def parents_of(attribute: str) -> Iterator[str]:
    """The names of the objects that an attribute may lie in."""
    at = attribute.find(".")
    while at >= 0:
        yield attribute[:at]
        at = attribute.find(".", at + 1)


class Dimensions:
    """All dimensions that predicates have asked for, numbered from 0. At most `most_known` strings of events are remembered."""

    def __init__(self, *, most_known: int = 1 << 15) -> None:
        self._most_known = most_known
        self._known = 0
        self.premises = NO_PREMISES
        self._all: list[Dimension] = []
        self.count = 0
        """How many there are. It is read in a third of the time of `len`."""
        self._by_name: dict[tuple[str, Facet], Dimension] = {}
        self.by_attribute: dict[str, Facets] = {}
        self.parents: set[str] = set()
        """The names of objects around attributes: for ``a.b.c``, these are ``a`` and ``a.b``."""
        self.only_number: dict[str, int] = {}
        """Attribute -> its dimension, if it has only one, which is of numbers."""
        self.only_text: dict[str, tuple[int, Callable[[str], int]]] = {}
        """Attribute -> its dimension and the function from strings to keys, if it has only one dimension, which is of strings."""
        self.numbers_expected = False
        """Whether the last event of `plain_values` had only numbers of `only_number`: a guess for the next event."""
        self.forms: dict[str, Any] = {}
        """What `one_event` knows of the attributes that events have together; forgotten with every new dimension."""

        self.table_form: tuple[Any, ...] | None = None
        """The same for `event_table`, of the columns that the last table had."""
        self.names_form: tuple[Any, ...] | None = None
        """The same again, of all attributes."""
        self.mapping_form: Any = None
        """What `mapping_columns` knows of all attributes."""
        self.json_form: tuple[Any, ...] | None = None
        """What `json_lines` knows of all attributes, and the schema that it knows them with."""
        self.premise_form: Any = None
        """What `needed_strings` knows of premises."""

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._all)

    def __getitem__(self, number: int) -> Dimension:
        return self._all[number]

    def words(self) -> int:
        """How many dimensions, constants and patterns there are."""
        return len(self) + sum(dimension.words() for dimension in self._all)

    def get(self, attribute: str, facet: Facet) -> Dimension:
        """The dimension, made when it is first asked for."""
        dimension = self._by_name.get((attribute, facet))
        if dimension is None:
            dimension = CLASSES[facet](len(self._all), attribute, facet)
            self._enter(dimension)
        return dimension

    def find(self, attribute: str, facet: Facet) -> Dimension | None:
        """The dimension, if there is one."""
        return self._by_name.get((attribute, facet))

    def __getstate__(self) -> pa.Table:
        return self.state()

    def __setstate__(self, state: pa.Table) -> None:
        vars(self).update(vars(Dimensions()))
        self.restore(state)

    def state(self) -> pa.Table:
        """All dimensions with what they know of constants, a row each."""
        states = [dimension.state() for dimension in self._all]
        return pa.table(
            {
                "attribute": pa.array([dimension.attribute for dimension in self._all], pa.string()),
                "facet": pa.array([str(dimension.facet) for dimension in self._all], pa.string()),
                "texts": pa.array([texts for texts, _ in states], pa.large_list(pa.large_string())),
                "numbers": pa.array([numbers for _, numbers in states], pa.large_list(pa.int64())),
            }
        )

    def restore(self, state: pa.Table) -> None:
        """Take over the dimensions of others, where there are none yet."""
        columns = (state[name].to_pylist() for name in ("attribute", "facet", "texts", "numbers"))
        for attribute, facet, strings, numbers in zip(*columns, strict=True):
            self.get(attribute, Facet(facet)).restore(strings, numbers)
        self.premises = self.premises.with_rows((attribute, None) for attribute in self.by_attribute)

    def kept(self, numbers: Iterable[int]) -> Dimensions:
        """Only some of the dimensions, with new numbers in the same order."""
        kept = Dimensions()
        for number in numbers:
            dimension = self._all[number]
            dimension.number = len(kept)
            kept._enter(dimension)
        kept.premises = self.premises.only(kept.by_attribute)
        return kept

    def numbers_if_kept(self, numbers: list[int]) -> I32s:
        """The number that each dimension would have if these alone were kept; NOT_ASKED for the others."""
        renumbered = np.full(len(self), NOT_ASKED, np.int32)
        renumbered[numbers] = np.arange(len(numbers), dtype=np.int32)
        return renumbered

    def string_keys(self, facets: Facets, text: str) -> ValueKeys:
        """All keys of a string of an event. Strings come again, so they are remembered.

        Finding the keys takes 1 to 10 us, and remembering them 0.1.
        """
        known = facets.known.get(text)
        if known is None:
            known = facets.string_keys(text)
            if len(text) <= _LONGEST_KNOWN:
                if self._known >= self._most_known:
                    for each in self.by_attribute.values():
                        each.known.clear()
                    self._known = 0
                facets.known[text] = known
                self._known += 1
        return known

    def _enter(self, dimension: Dimension) -> None:
        self.forms, self.table_form, self.names_form = {}, None, None
        self.mapping_form, self.json_form, self.premise_form = None, None, None
        self._all.append(dimension)
        self.count += 1
        if dimension.attribute in self.by_attribute:
            self.only_number.pop(dimension.attribute, None)
            self.only_text.pop(dimension.attribute, None)
        elif isinstance(dimension, NumberDimension):
            self.only_number[dimension.attribute] = dimension.number
        elif isinstance(dimension, StringDimension):
            self.only_text[dimension.attribute] = dimension.number, dimension.finder()
        self.by_attribute.setdefault(dimension.attribute, Facets()).add(dimension)
        self.parents.update(parents_of(dimension.attribute))
        # Last: code that finds the dimension relies on all of the above, even if this was interrupted.
        self._by_name[dimension.attribute, dimension.facet] = dimension
