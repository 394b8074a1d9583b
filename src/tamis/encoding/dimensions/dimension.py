"""Dimensions: an attribute together with the facet of its values that a predicate asks about.

    facet                     the event's value becomes
    number                    a double's code, or a label for large integers       (keys)
    boolean, timestamp        0 or 1, microseconds
    string, lower             the label of the string, or of its lower case        (labels)
    reversed, lower reversed  the same of the string read backwards, so that a suffix is a prefix
    needle, lower needle      the numbers of the substrings it contains            (patterns)
    regex, lower regex        the numbers of the regular expressions it matches
    upper ...                 each of the lower ones once more, in upper case
    address                   the label of the address, nothing if the string is none
    presence                  0, whatever its kind

The pattern facets are sets: every string has the key `PRESENT` besides its hits. So "contains none of these" differs from "is
missing". An index only sees numbers of dimensions and keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.dimensions import texts
from tamis.encoding.dimensions.keys import (
    INT_BEYOND,
    INT_EXACT,
    KEY_MIN,
    LARGE_FIRST,
    LARGE_LAST,
    SMALL_FIRST,
    SMALL_LAST,
    KeyKind,
    double_code,
    double_codes,
    is_labelled,
)
from tamis.encoding.dimensions.labels import Labels, Relabelling
from tamis.encoding.dimensions.patterns import Needles, Regexes
from tamis.kernels.numbers import Bools, I64s
from tamis.kernels.ranges import span_indices
from tamis.language.addresses import address_text
from tamis.language.operators import Case
from tamis.language.values import Kind, to_microseconds

PRESENT = -1
"""The key that every present string has in a pattern facet; hits count from 0."""

Keys = I64s
State = tuple[list[str], list[int]]
"""The constants that a dimension knows, as strings and integers."""

# Up to this many strings, looking up each string is cheaper than a call of the kernel.
_FEW = 16


class Facet(StrEnum):
    """What a dimension sees of an attribute's value."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    PRESENCE = "presence"
    LOWER = "lower"
    REVERSED = "reversed"
    LOWER_REVERSED = "lower reversed"
    NEEDLE = "needle"
    LOWER_NEEDLE = "lower needle"
    REGEX = "regex"
    LOWER_REGEX = "lower regex"
    UPPER = "upper"
    UPPER_REVERSED = "upper reversed"
    UPPER_NEEDLE = "upper needle"
    UPPER_REGEX = "upper regex"
    ADDRESS = "address"


NEEDLES = frozenset({Facet.NEEDLE, Facet.LOWER_NEEDLE, Facet.UPPER_NEEDLE})
REGEXES = frozenset({Facet.REGEX, Facet.LOWER_REGEX, Facet.UPPER_REGEX})
CASE_OF: dict[Facet, Case] = {
    facet: case for case in Case for facet in Facet if facet.value == case.value or facet.startswith(f"{case} ")
}
"""Facet -> the case to which it changes strings."""

FACET_OF_KIND = {kind: Facet(kind.value) for kind in Kind}


class Dimension(ABC):
    """One dimension: its number, and how values become keys. Constants are added before their keys are asked for."""

    key_kind: ClassVar[KeyKind] = KeyKind.INTEGER

    def __init__(self, number: int, attribute: str, facet: Facet) -> None:
        self.number = number
        self.attribute = attribute
        self.facet = facet

    def missing(self, constants: Iterable[Any]) -> list[Any]:
        """The constants of predicates that it must know and does not know yet."""
        return []

    def add(self, missing: list[Any]) -> list[Relabelling]:
        """Add constants; returns how labels must move before all of them are known."""
        return []

    @abstractmethod
    def key(self, value: Any) -> int:
        """The key of one value, of a predicate or of an event."""

    def constant_key(self, constant: Any) -> int:
        """The key of a constant that was added."""
        return self.key(constant)

    def listen(self, changed: Callable[[], None]) -> None:  # noqa: B027 - for dimensions of strings
        """Let `changed` be called whenever keys of strings may have changed."""

    def words(self) -> int:
        """How many constants and patterns it knows."""
        return 0

    def labels_at(self, key: int) -> Labels | None:
        """The labels among which a key lies; None if the key is a code."""
        return None

    def keeping(self, lows: Keys, highs: Keys) -> Callable[[], None]:
        """A quick function that forgets the constants on which none of these intervals depends. Making it may take longer."""
        return lambda: None

    def state(self) -> State:
        """The constants that it knows."""
        return [], []

    def restore(self, texts: list[str], numbers: list[int]) -> None:  # noqa: B027 - as above
        """Take over the state of another."""


class NumberDimension(Dimension):
    key_kind = KeyKind.NUMBER

    def __init__(self, number: int, attribute: str, facet: Facet) -> None:
        super().__init__(number, attribute, facet)
        self._large = Labels(LARGE_FIRST, LARGE_LAST)
        self._small = Labels(SMALL_FIRST, SMALL_LAST)

    def missing(self, constants: Iterable[Any]) -> list[Any]:
        labelled = [int(constant) for constant in constants if is_labelled(constant)]
        large = self._large.missing(constant for constant in labelled if constant > 0)
        return self._small.missing(constant for constant in labelled if constant < 0) + large

    def add(self, missing: list[Any]) -> list[Relabelling]:
        small = bisect_left(missing, 0)
        moved = self._small.add(missing[:small]), self._large.add(missing[small:])
        return [relabelling for relabelling in moved if relabelling is not None]

    def key(self, value: float) -> int:
        if -INT_EXACT < value < INT_EXACT or not is_labelled(value):
            return double_code(float(value))
        return (self._large if value > 0 else self._small).locate(int(value))

    def keys(self, values: npt.NDArray[Any]) -> Keys:
        """The keys of an array of int64 or float64 without NaN."""
        codes = double_codes(values.astype(np.float64))
        labelled = self.labelled(values)
        for labels, side in ((self._large, values > 0), (self._small, values < 0)):
            chosen = np.flatnonzero(labelled & side)
            if len(chosen):
                codes[chosen] = labels.locate_integers(values[chosen].astype(np.int64))
        return codes

    def words(self) -> int:
        return len(self._large) + len(self._small)

    def labels_at(self, key: int) -> Labels | None:
        for labels in (self._large, self._small):
            if labels.first < key < labels.last:
                return labels
        return None

    def keeping(self, lows: Keys, highs: Keys) -> Callable[[], None]:
        if not self.words():
            return super().keeping(lows, highs)
        ends = np.concatenate((lows, highs))
        large, small = self._large.keeping(ends), self._small.keeping(ends)

        def keep() -> None:
            large()
            small()

        return keep

    def state(self) -> State:
        large, small = self._large, self._small
        return [], [len(large), *large.constants, *large.labels, *small.constants, *small.labels]

    def restore(self, texts: list[str], numbers: list[int]) -> None:
        large, rest = 2 * numbers[0], numbers[1:]
        for labels, part in ((self._large, rest[:large]), (self._small, rest[large:])):
            labels.restore(part[: len(part) // 2], part[len(part) // 2 :])

    @staticmethod
    def labelled(values: npt.NDArray[Any]) -> Bools:
        """Which numbers lie where keys are labels."""
        if values.dtype == np.int64:
            return np.asarray((values >= INT_EXACT) | ((values <= -INT_EXACT) & (values != KEY_MIN)), np.bool_)
        magnitude = np.abs(values)
        return np.asarray((magnitude >= INT_EXACT) & (magnitude < INT_BEYOND), np.bool_)


class TimestampDimension(Dimension):
    def key(self, value: Any) -> int:
        return to_microseconds(value)

    def keys(self, values: I64s) -> Keys:
        """The keys of an array of microseconds."""
        return values


class BooleanDimension(Dimension):
    def key(self, value: bool) -> int:
        return int(value)

    def keys(self, values: Bools) -> Keys:
        return values.astype(np.int64)


class PresenceDimension(Dimension):
    def key(self, value: Any) -> int:
        return 0


class LabelledDimension(Dimension):
    """Values by the labels of the constants, which are strings."""

    key_kind = KeyKind.NAME

    def __init__(self, number: int, attribute: str, facet: Facet) -> None:
        super().__init__(number, attribute, facet)
        self._labels = Labels(-(2**62), 2**62)

    def missing(self, constants: Iterable[str]) -> list[str]:
        return self._labels.missing(constants)

    def add(self, missing: list[str]) -> list[Relabelling]:
        relabelling = self._labels.add(missing)
        return [] if relabelling is None else [relabelling]

    def listen(self, changed: Callable[[], None]) -> None:
        self._labels.changed = changed

    def words(self) -> int:
        return len(self._labels)

    def labels_at(self, key: int) -> Labels | None:
        return self._labels

    def keeping(self, lows: Keys, highs: Keys) -> Callable[[], None]:
        return self._labels.keeping(np.concatenate((lows, highs)))

    def state(self) -> State:
        return list(self._labels.constants), list(self._labels.labels)

    def restore(self, texts: list[str], numbers: list[int]) -> None:
        self._labels.restore(texts, numbers)


class StringDimension(LabelledDimension):
    """Strings, as they are or changed by `_TEXT[facet]`, by the labels of the constants.

    Added constants must be changed already: a suffix is given backwards.
    """

    def __init__(self, number: int, attribute: str, facet: Facet) -> None:
        super().__init__(number, attribute, facet)
        self._change = _TEXT[facet]
        self._change_column = _COLUMN[facet]

    def constant_key(self, constant: str) -> int:
        return self._labels.label(constant)

    def texts_at(self, keys: Iterable[int]) -> list[str]:
        """The constants that have some of these keys."""
        return self._labels.constants_at(keys)

    def __contains__(self, constant: object) -> bool:
        """Whether a constant was added."""
        return constant in self._labels

    def key(self, value: str) -> int:
        return self._labels.locate(self._change(value))

    def finder(self) -> Callable[[str], int]:
        """The fastest function that does what `key` does: unchanged strings go straight to the labels."""
        return self._labels.locate if self.facet is Facet.STRING else self.key

    def keys(self, values: pa.Array) -> Keys:
        """The keys of a column of strings without nulls."""
        changed = self._change_column(values)
        if len(values) <= _FEW:
            return np.array([self._labels.locate(text) for text in changed.to_pylist()], np.int64)
        return texts.locate(changed, self._labels.texts(), self._labels.label_array(), self._labels.first + 1)


class AddressDimension(LabelledDimension):
    """Addresses in the order of `language.addresses`, by the labels of the ends of networks."""

    def key(self, value: str) -> int:
        """The key of an end of a network that was added."""
        return self._labels.label(value)

    def located(self, texts: Iterable[str]) -> list[int | None]:
        """The keys of strings of events; None for a string that is not an address."""
        addresses = map(address_text, texts)
        return [None if address is None else self._labels.locate(address) for address in addresses]


class PatternDimension(Dimension):
    """The patterns found in a string; several keys a value."""

    key_kind = KeyKind.NAME

    def __init__(self, number: int, attribute: str, facet: Facet) -> None:
        super().__init__(number, attribute, facet)
        self._case = CASE_OF.get(facet)
        self._patterns = Needles() if facet in NEEDLES else Regexes(one_case=self._case is not None)

    def missing(self, constants: Iterable[str]) -> list[str]:
        return [pattern for pattern in dict.fromkeys(constants) if pattern not in self._patterns]

    def add(self, missing: list[str]) -> list[Relabelling]:
        for pattern in missing:
            self._patterns.add(pattern)
        return []

    def listen(self, changed: Callable[[], None]) -> None:
        self._patterns.changed = changed

    def key(self, value: str) -> int:
        """The number of a pattern that was added."""
        return self._patterns.number(value)

    def hits(self, text: str) -> list[int]:
        """The keys of a string of an event."""
        return [PRESENT, *self._patterns.hits(text if self._case is None else self._case.change(text))]

    def words(self) -> int:
        return len(self._patterns)

    def pattern(self, number: int) -> str:
        """The pattern that has a number."""
        return self._patterns.pattern(number)

    def keeping(self, lows: Keys, highs: Keys) -> Callable[[], None]:
        return self._patterns.keeping(set(span_indices(lows, highs - lows + 1).tolist()))

    def state(self) -> State:
        return self._patterns.state()

    def restore(self, texts: list[str], numbers: list[int]) -> None:
        self._patterns.restore(texts, numbers)

    def keys(self, values: pa.Array | texts.Texts) -> tuple[Keys, I64s]:
        """The keys of a column of strings without nulls, and how many each string has."""
        return self._patterns.keys(_IN_CASE[self._case](values), PRESENT)


_TEXT: dict[Facet, Callable[[str], str]] = {
    Facet.STRING: lambda text: text,
    Facet.LOWER: str.lower,
    Facet.REVERSED: lambda text: text[::-1],
    Facet.LOWER_REVERSED: lambda text: text.lower()[::-1],
    Facet.UPPER: str.upper,
    Facet.UPPER_REVERSED: lambda text: text.upper()[::-1],
}
_IN_CASE: dict[Case | None, Callable[[pa.Array | texts.Texts], texts.Texts]] = {
    None: texts.texts_of,
    Case.LOWER: texts.lowered,
    Case.UPPER: texts.uppered,
}
_COLUMN: dict[Facet, Callable[[pa.Array], pa.Array]] = {
    Facet.STRING: lambda column: column,
    Facet.LOWER: texts.lowered,
    Facet.UPPER: texts.uppered,
    Facet.REVERSED: texts.reversed_texts,
    Facet.LOWER_REVERSED: lambda column: texts.reversed_texts(texts.lowered(column)),
    Facet.UPPER_REVERSED: lambda column: texts.reversed_texts(texts.uppered(column)),
}
CLASSES: dict[Facet, type[Dimension]] = {
    Facet.NUMBER: NumberDimension,
    Facet.TIMESTAMP: TimestampDimension,
    Facet.BOOLEAN: BooleanDimension,
    Facet.PRESENCE: PresenceDimension,
    **dict.fromkeys(_TEXT, StringDimension),
    **dict.fromkeys(NEEDLES | REGEXES, PatternDimension),
    Facet.ADDRESS: AddressDimension,
}
