"""One event as a kernel takes it, in a buffer that is used for all events: allocating arrays would cost more than filling them.

    word   0        1      2          3             4 ...
           numbers  keys   kind       dimensions    doubles | keys | the highest of each, if INTERVALS | dimensions
                                      their address

Numbers come as doubles, which the kernel makes keys of (see `unpack_event`), all other values as keys. The dimensions lie behind
them, or with the *form* of the event. A stream has few combinations of attributes. A form is what is known of one combination.
Values that nobody asks about are left out.
"""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.keys import code_of_bits, is_small
from tamis.encoding.events.event_batch import BETWEEN, EventBatch, number_dimensions, plain_values, row_of
from tamis.kernels.fields import reader_of, word_of
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I32s, I64s
from tamis.kernels.packed import Packed, address_of
from tamis.language.event import FlatEvent

_COUNT_OF_NUMBERS, _COUNT_OF_KEYS, _KIND, _DIMENSIONS_AT = range(4)
HEAD = 4
_WORDS = 1024
_NUMBERS = frozenset({int, float})
_SCALARS = frozenset({int, float, str, bool, type(None)})
"""Types of values that can be left out. Attributes within an object may be asked about if the object is not."""
_SEEN_ONCE, _HAS_NONE = None, False
INTERVALS = 1


class EventValues(NamedTuple):
    """The values of the event in the buffer, packed."""

    dimension: I32s
    lo: I64s
    hi: I64s


DIMENSION, LO, HI = (word_of(EventValues, name) for name in EventValues._fields)
"""Where the packed form has the address of each array. The length follows."""
read_values = reader_of(EventValues)


class Form(NamedTuple):
    """The attributes of an event, each of them asked about as a number or not at all."""

    pack: Callable[..., None]
    size: int
    """How many attributes are asked about."""
    asked: Callable[[Sequence[Any]], Sequence[Any]] | None
    """Chooses the values that are asked about from all; None if that is all of them."""
    dimension: I32s
    address: int
    left_out: frozenset[str]
    """The attributes that are not asked about."""
    names: tuple[str, ...]
    """All attributes. Their number tells a form from events whose names contain the character between joined names."""


class OneEvent:
    """The buffer of one thread. If the dimensions have `most_forms` forms of events, they forget them before the next."""

    def __init__(self, *, most_forms: int = 4096) -> None:
        self._most_forms = most_forms
        self._reserve(_WORDS)
        self.form: Form | None = None
        """The form of the last event that `pack_known` or `pack_numbers` took; None if the event has none.

        It is kept alive while the buffer has its address.
        """

    def _reserve(self, words: int) -> None:
        # Python writes to bytes, the kernel reads words.
        self._bytes = bytearray(8 * words)
        self.words = np.frombuffer(self._bytes, np.int64)
        self._address = address_of(self.words)
        self._most = 2 * (words - HEAD - 1) // 5
        """The number of values that fit, with their highest keys and dimensions."""

    def pack_known(self, event: Any, dimensions: Dimensions) -> bool:
        """Take an event of a form that is known; whether it is one.

        Only this method may be called while dimensions change. A caller that finds that they did calls it again.
        """
        try:
            return type(event) is dict and self._pack_form(event, dimensions.forms.get(BETWEEN.join(event)))
        except Exception:  # names and numbers that are wrong, or more of them than there is room for here
            return False

    def pack_numbers(self, event: dict[str, Any], dimensions: Dimensions) -> bool:
        """Take an event of plain numbers, all of them asked about, whose names are of type str; whether it is one.

        The caller keeps dimensions from changing meanwhile.
        """
        try:
            if not dimensions.numbers_expected or len(event) > self._most:
                return False
            return self._pack_numbers(event, BETWEEN.join(event), dimensions)
        except Exception:  # names and numbers that are wrong
            return False

    def pack(self, event: Any, dimensions: Dimensions, flat: FlatEvent | None = None) -> int | None:
        """Take an event as it was given; returns the number of mismatched attributes, or None if it must be flattened.

        The kernel finds out whether the numbers are small. With `flat`, the flat form that the caller has, nothing is flattened
        here. The caller keeps dimensions from changing meanwhile.
        """
        if type(event) is not dict:
            return None
        if len(event) > self._most:
            self._reserve(HEAD + 4 * len(event))
        try:
            names = BETWEEN.join(event)
            if self._pack_form(event, dimensions.forms.get(names)):
                return 0
            if dimensions.numbers_expected and self._pack_numbers(event, names, dimensions):
                return 0
            return self._pack_plain(event, names, dimensions, flat is None)
        except Exception:  # names or numbers that are wrong, and classes that cannot be hashed: the long way tells
            return None

    def _pack_form(self, event: dict[str, Any], form: Form | None) -> bool:
        """Take an event whose attributes have this form, if they have one.

        Returns whether all values that are asked about are plain numbers, and whether all others can be left out.
        """
        if not form:
            return False
        values: Collection[Any] = event.values()
        pack, size, asked, _, address, _, names = form
        if len(values) != len(names):
            return False
        # A set first: it takes two thirds of the time of `issuperset`.
        kinds = set(map(type, values))
        if asked is not None:
            values = asked(tuple(values))
            if not kinds <= _NUMBERS and kinds <= _SCALARS:
                kinds = set(map(type, values))
        if not kinds <= _NUMBERS:
            return False
        pack(self._bytes, 0, size, 0, 0, address, *values)
        self.form = form
        return True

    def _pack_numbers(self, event: dict[str, Any], names: str, dimensions: Dimensions) -> bool:
        """Take an event of plain numbers, all of them asked about; whether it is one.

        If it is, this takes two thirds of the time of `plain_values`. If not, it wastes some time. So it is tried if the last
        event was one.
        """
        dimension = number_dimensions(event, dimensions.only_number)
        if dimension is None:
            return False
        self._write(event.values(), dimension, ())
        self.form = None
        _note(dimensions, names, len(event), self._most_forms)
        return True

    def _pack_plain(self, event: dict[str, Any], names: str, dimensions: Dimensions, flattens: bool) -> int | None:
        plain = plain_values(event, dimensions, flattens=flattens)
        if plain is None:
            return None
        # What was flattened is encoded here in any case: if the kernel refused a number, it would be flattened again.
        if (
            plain.lo is not plain.hi
            or len(plain.dimension) > self._most
            or (plain.is_flattened and not plain.is_small())
        ):
            encoded = row_of(plain, dimensions)
            if encoded is None:
                return None
            self.put(encoded.batch)
            return encoded.mismatched
        numbers, dimension, keys, _, mismatched, _ = plain
        self._write(numbers, dimension, keys)
        if not keys:
            _note(dimensions, names, len(event), self._most_forms)
        return mismatched

    def _write(self, numbers: Collection[float], dimension: list[int], keys: Sequence[int]) -> None:
        """Fill the buffer."""
        count, at = len(numbers), self._address + 8 * (HEAD + len(dimension))
        _layout(count, len(keys))(self._bytes, 0, count, len(keys), 0, at, *numbers, *keys, *dimension)

    def put(self, batch: EventBatch) -> None:
        """Take an event in keys, the only one of its batch."""
        count = len(batch.dimension)
        if count > self._most:
            self._reserve(HEAD + 4 * count)
        words, apart = self.words, INTERVALS * int(batch.lo is not batch.hi)
        end = HEAD + count
        words[:HEAD] = 0, count, apart, self._address + 8 * (end + apart * count)
        words[HEAD:end] = batch.lo
        if apart:
            words[end : end + count] = batch.hi
            end += count
        words[end:].view(np.int32)[:count] = batch.dimension


def _note(dimensions: Dimensions, joined: str, size: int, most: int) -> None:
    """Note the joined names of `size` attributes of an event. They have a form from the second time on, if they can have one."""
    forms = dimensions.forms
    if joined not in forms:
        if len(forms) >= most:
            forms.clear()
        forms[joined] = _SEEN_ONCE
        return
    if forms[joined] is not _SEEN_ONCE:  # An event may have a form and other values than the form takes.
        return
    forms[joined] = _HAS_NONE
    names = joined.split(BETWEEN)
    if len(names) != size:
        return
    asked = {place: dimensions.only_number[name] for place, name in enumerate(names) if name in dimensions.only_number}
    if not any(name in dimensions.by_attribute for place, name in enumerate(names) if place not in asked):
        array = np.array(list(asked.values()), np.int32)
        pack = struct.Struct(f"{HEAD}q{len(asked)}d").pack_into
        chosen = None if len(asked) == len(names) else _chooser(list(asked))
        left_out = frozenset(name for place, name in enumerate(names) if place not in asked)
        forms[joined] = Form(pack, len(asked), chosen, array, address_of(array), left_out, tuple(names))


def _chooser(places: list[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function that takes the values in some places."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return operator.itemgetter(slice(places[0], places[0] + 1) if places else slice(0))


@functools.lru_cache(maxsize=1024)
def _layout(numbers: int, keys: int) -> Callable[..., None]:
    return struct.Struct(f"{HEAD}q{numbers}d{keys}q{numbers + keys}i").pack_into


@inlined
def unpack_event(words: I64s, start: I64s, values: Packed) -> bool:
    """Make keys of the numbers, and write to `values`, packed `EventValues`, where dimensions and highest keys lie.

    The address of the lowest keys is there already. Returns False if a number is NaN or one that only labels distinguish from
    others. Unpacking an event once more changes nothing.
    """
    numbers, keys, kind = words[_COUNT_OF_NUMBERS], words[_COUNT_OF_KEYS], words[_KIND]
    dimensions = words[_DIMENSIONS_AT]
    for i in range(HEAD, HEAD + numbers):
        if not is_small(words[i]):
            return False
    for i in range(HEAD, HEAD + numbers):
        words[i] = code_of_bits(words[i])
    count = numbers + keys
    words[_COUNT_OF_NUMBERS], words[_COUNT_OF_KEYS], words[_KIND], words[_DIMENSIONS_AT] = 0, count, kind, dimensions
    start[0], start[1] = 0, count
    values[DIMENSION], values[DIMENSION + 1] = dimensions, count
    values[LO + 1], values[HI + 1] = count, count
    values[HI] = values[LO] + 8 * count * kind
    return True
