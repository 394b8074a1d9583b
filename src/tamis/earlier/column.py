"""The values of one attribute for all events of the log, in keys.

    position     0        1        2         3        4
    event        30.5     'a'      missing   [1, 2]   'b'
    domains      NUMBER   TEXT     MISSING   ODD      TEXT
    keys         code     0        NONE      NONE     1

Strings get codes in the order in which they come, which is enough for `=`. When a join first asks for the order of strings, they
get labels in their own order instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.earlier.key_ranges import (
    BOOLEAN,
    DOMAINS,
    DOMAINS_OF,
    LARGE,
    MISSING,
    NUMBER,
    ODD,
    TEXT,
    TIME,
    KeyRange,
    Range,
    RangesByKind,
    integer_range,
    number_key,
    number_ranges,
)
from tamis.encoding.columns import Column as ArrowColumn
from tamis.encoding.columns import plain_texts
from tamis.encoding.dimensions.keys import (
    INT_BEYOND,
    INT_EXACT,
    KEY_MAX,
    KEY_MIN,
    code_of_bits,
    double_code,
    is_nan,
    is_small,
)
from tamis.encoding.dimensions.labels import Labels
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import brief_kernel
from tamis.kernels.numbers import Bools, I8s, I64s
from tamis.kernels.packed import address_of
from tamis.language.event import Value
from tamis.language.operators import Operator
from tamis.language.values import (
    INT64_MAX,
    INT64_MIN,
    Interval,
    Kind,
    from_microseconds,
    is_well_formed,
    to_microseconds,
)

NONE = KEY_MAX
"""The key of an event without one."""
_LAST_LABEL = 2**62
_NUMBERS = frozenset({float, int, type(None)})
_TEXTS = frozenset({str})
_FLAT = frozenset({tuple, float})
"""Types of the values of flat events, of which NaN stands for none."""

Given: TypeAlias = Any
"""The values of an attribute in an event of the log: a tuple, or the value of a raw event, which may be outside the language.
None or NaN if there are none."""


@brief_kernel
def number_keys(bits: I64s, domains: I8s, keys: I64s, seen: Bools) -> bool:
    """Write the domains and keys of doubles, of which NaN is missing; whether all others are below 2**53 in magnitude.

    Also notes which domains were `seen`.
    """
    for i in range(len(bits)):
        if is_small(bits[i]):
            domains[i], keys[i] = NUMBER, code_of_bits(bits[i])
        elif is_nan(bits[i]):
            domains[i], keys[i] = MISSING, NONE
        else:
            return False
        seen[domains[i]] = True
    return True


@brief_kernel
def double_keys(bits: I64s, keys: I64s) -> bool:
    """Write the keys of doubles; whether all are below 2**53 in magnitude."""
    small = True
    for i in range(len(bits)):
        small &= is_small(bits[i])
        keys[i] = code_of_bits(bits[i])
    return small


class _Texts:
    """The keys of strings."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._next = 0
        self._labels: Labels | None = None
        self._known: tuple[pa.Array, I64s] | None = None
        """Some strings in a form for Arrow, and their codes."""
        self.pinned: set[str] = set()
        """Strings that keep their keys although no event has them."""

    def keys(self, texts: Sequence[str]) -> tuple[list[int], tuple[I64s, I64s] | None]:
        """The key of each string. If the keys of strings moved: the keys before, ascending, and after."""
        if self._labels is not None:
            missing = self._labels.missing(texts)
            moved = self._labels.add(missing) if missing else None
            if moved is not None:
                moved.carry_out()
            return [self._labels.label(text) for text in texts], None if moved is None else (moved.old, moved.new)
        codes = self._codes
        found: list[Any] = list(map(codes.get, texts))
        if None in found:
            for place, code in enumerate(found):
                if code is None:
                    found[place] = codes.setdefault(texts[place], self._next)
                    self._next += found[place] == self._next
        return found, None

    def known_keys(self, texts: pa.Array) -> I64s | None:
        """The keys of strings, if Arrow finds them all among some known ones. A dictionary took half as much time again."""
        known = self._known
        if self._labels is not None or not len(self._codes) or len(self._codes) > 4 * len(texts):
            return None  # Arrow makes a hash table of all of them for each call.
        if known is None or len(known[0]) < len(self._codes) // 2:
            codes = np.array(list(self._codes.values()), np.int64)
            known = self._known = pa.array(list(self._codes), pa.large_string()), codes
        places = pc.index_in(texts.cast(pa.large_string()), value_set=known[0])
        if places.null_count:
            # Look here again only when there are more strings.
            if len(known[0]) < len(self._codes):
                self._known = None
            return None
        found: I64s = known[1][places.to_numpy()]
        return found

    def order(self) -> tuple[I64s, I64s] | None:
        """Give labels in the order of strings, unless they have them. Returns the keys before, ascending, and after."""
        if self._labels is not None:
            return None
        self._known, self._labels = None, Labels(0, _LAST_LABEL)
        self._labels.add(sorted(self._codes))
        after = [self._labels.label(text) for text in self._codes]
        before, self._codes = np.array(list(self._codes.values()), np.int64), {}
        return before, np.array(after, np.int64)

    def range(self, wanted: Range) -> KeyRange:
        """The keys of the strings in a range. The order must be known, unless the range is a point."""
        if self._labels is None:
            code = self._codes.get(str(wanted.lo))
            return (1, 0) if code is None else (code, code)
        locate = self._labels.locate
        lo = 0 if wanted.lo is None else locate(wanted.lo) + wanted.lo_open
        hi = _LAST_LABEL if wanted.hi is None else locate(wanted.hi) - wanted.hi_open
        return lo, hi

    @property
    def is_ordered(self) -> bool:
        return self._labels is not None

    def keep(self, keys: I64s) -> None:
        """Forget most strings of all other keys."""
        pinned = np.array(self.keys(list(self.pinned))[0], np.int64)
        if self._labels is not None:
            self._labels.keeping(np.unique(np.concatenate([keys, pinned])))()
            return
        used = np.zeros(self._next, np.bool_)
        used[keys] = used[pinned] = True
        if 2 * np.count_nonzero(used) < len(self._codes):
            self._codes = {text: code for text, code in self._codes.items() if used[code]}
            self._known = None


class Column:
    """The values of one attribute."""

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute
        self.count = 0
        """The number of events."""
        self._domains, self._keys = GrowingArray(np.int8), GrowingArray(np.int64)
        self._placed: tuple[Any, Any] = None, None
        self._place: list[int] = []
        self._texts = _Texts()
        self.odd: dict[int, tuple[Value, ...]] = {}
        """The values of odd events, by number."""
        self.seen = np.zeros(DOMAINS, np.bool_)
        """The domains that some event may have."""
        self.changes = 0
        """How often keys of earlier events changed. Then what was made from them is worthless."""
        self.text_moves = 0
        """How often keys of strings changed."""

    @property
    def domains(self) -> I8s:
        return self._domains.view()

    @property
    def keys(self) -> I64s:
        return self._keys.view()

    @property
    def place(self) -> list[int]:
        """The addresses and lengths of domains and keys, for kernels. They hold until events come or leave."""
        domains, keys = self._domains.data, self._keys.data
        if domains is not self._placed[0] or keys is not self._placed[1]:
            self._placed = domains, keys
            self._place = [address_of(domains), len(domains), address_of(keys), len(keys)]
        return self._place

    @property
    def nbytes(self) -> int:
        return self._domains.nbytes + self._keys.nbytes

    def append(self, values: Sequence[Given], numbers: Sequence[int] | I64s) -> None:
        """Take in the values of events with these numbers."""
        count = len(values)
        if count == 1 and self._put_number(values[0]):
            return
        domains, keys = self._domains.grow(count), self._keys.grow(count)
        self.count += count
        kinds = set(map(type, values))
        if tuple in kinds and kinds <= _FLAT and all(type(each) is float or len(each) == 1 for each in values):
            values = [each if type(each) is float else each[0] for each in values]
            kinds = set(map(type, values))
        if kinds <= _NUMBERS and _put_numbers(values, domains, keys, self.seen):
            return
        if kinds == _TEXTS and ("".join(values).isascii() or all(map(is_well_formed, values))):
            domains[:] = TEXT
            keys[:] = self._text_keys(values)
            self.seen[TEXT] = True
            return
        self._put_mixed(values, numbers, domains, keys)
        self.seen[domains] = True

    def _put_number(self, given: Given) -> bool:
        """Take in one event, if it has a small number. Takes half of the time of the general way."""
        value = given[0] if type(given) is tuple and len(given) == 1 else given
        if (type(value) is not int and type(value) is not float) or not -INT_EXACT < value < INT_EXACT:
            return False
        self._domains.append(NUMBER)
        self._keys.append(double_code(float(value)))
        self.count += 1
        self.seen[NUMBER] = True
        return True

    def _put_mixed(self, values: Sequence[Given], numbers: Sequence[int] | I64s, domains: I8s, keys: I64s) -> None:
        domains[:], keys[:] = MISSING, NONE
        texts, places = [], []
        for place, given in enumerate(values):
            value = given
            if type(given) is tuple:
                if len(given) > 1:
                    value = _SEVERAL
                elif given:
                    value = given[0]
            cls = type(value)
            if cls is str:
                if is_well_formed(value):
                    texts.append(value)
                    places.append(place)
            elif cls is bool:
                domains[place], keys[place] = BOOLEAN, value
            elif cls is int or cls is float:
                if _is_number(value):
                    domains[place], keys[place] = number_key(value)
            elif value is _SEVERAL or cls is Interval:
                domains[place] = ODD
                self.odd[int(numbers[place])] = given if type(given) is tuple else (given,)
            elif isinstance(value, tuple) or value is None:
                continue  # missing, or refused
            else:
                domains[place], keys[place] = TIME, to_microseconds(value)
        if texts:
            domains[places] = TEXT
            keys[places] = self._text_keys(texts)

    def append_by(self, count: int, write: Callable[[I8s, I64s], bool]) -> bool:
        """Take in events of which `write` writes the domains NUMBER and MISSING and the keys, unless it returns False."""
        domains, keys = self._domains.grow(count), self._keys.grow(count, fill=NONE)
        if not write(domains, keys):
            self._domains.shrink(count)
            self._keys.shrink(count)
            return False
        self.count += count
        self.seen[NUMBER] |= domains.any()
        self.seen[MISSING] |= not domains.all()
        return True

    def append_arrow(self, columns: Iterable[ArrowColumn], numbers: I64s) -> None:
        """Take in the columns that an attribute of a table has, one for each kind. The rows have these numbers."""
        count = len(numbers)
        domains, keys = self._domains.grow(count, fill=MISSING), self._keys.grow(count, fill=NONE)
        self.count += count
        columns = list(columns)
        for column in columns:
            of_domain, of_key = self._put_column(column)
            # A slice is filled in a fifth of the time of an array of rows.
            rows = slice(None) if len(columns) == 1 and _is_whole(column.rows, count) else column.rows
            domains[rows], keys[rows] = of_domain, of_key
        if len(columns) > 1 or any((column.rows[1:] == column.rows[:-1]).any() for column in columns):
            self._put_several(columns, numbers, domains, keys)
        self.seen[domains] = True

    def _put_several(self, columns: Sequence[ArrowColumn], numbers: I64s, domains: I8s, keys: I64s) -> None:
        """Note the rows with several values."""
        times = np.bincount(np.concatenate([column.rows for column in columns]), minlength=len(numbers))
        several: dict[int, tuple[Value, ...]] = dict.fromkeys(np.flatnonzero(times > 1).tolist(), ())
        for column in columns:
            among = np.isin(column.rows, list(several))
            for row, value in zip(column.rows[among].tolist(), _scalars(column, among), strict=True):
                several[row] += (value,)
        domains[list(several)], keys[list(several)] = ODD, NONE
        self.odd.update((int(numbers[row]), values) for row, values in several.items())

    def _put_column(self, column: ArrowColumn) -> tuple[Any, Any]:
        values = column.values
        if column.kind is Kind.STRING:
            known = self._texts.known_keys(plain_texts(values))
            if known is not None:
                return TEXT, known
            encoded = plain_texts(values).dictionary_encode()
            distinct = encoded.dictionary.to_pylist()
            keys = np.array(self._text_keys(distinct), np.int64)
            return TEXT, keys[encoded.indices.to_numpy()]
        if column.kind is Kind.TIMESTAMP:
            return TIME, values
        if column.kind is Kind.BOOLEAN:
            return BOOLEAN, values
        keys = np.empty(len(values), np.int64)
        doubles = values.astype(np.float64, copy=False)
        # The least integer has no magnitude in 64 bits. It is a double.
        if double_keys(np.ascontiguousarray(doubles).view(np.int64), keys):
            return NUMBER, keys
        large = (np.abs(doubles) >= INT_EXACT) & (np.abs(doubles) < INT_BEYOND)
        if values.dtype != np.float64:
            large |= (values > INT_EXACT) & (doubles == INT_BEYOND)
        domains = np.where(large, LARGE, NUMBER).astype(np.int8)
        keys[large] = values[large].astype(np.int64)
        return domains, keys

    def _text_keys(self, texts: Sequence[str]) -> list[int]:
        keys, moved = self._texts.keys(texts)
        if moved is not None:
            self._move(*moved)
        return keys

    def _move(self, before: I64s, after: I64s) -> None:
        """Replace the keys of strings."""
        of_texts = self.domains == TEXT
        keys = self.keys
        known = keys[of_texts]
        at = np.minimum(np.searchsorted(before, known), len(before) - 1)
        # New events have no keys yet.
        keys[of_texts] = np.where(before[at] == known, after[at], known)
        self.changes += 1
        self.text_moves += 1

    def order_texts(self) -> None:
        """Give strings keys in their own order, unless they have them. Then the keys of earlier events change."""
        moved = self._texts.order()
        if moved is not None and len(moved[0]):
            self._move(*moved)

    def pin(self, texts: set[str], *, ordered: bool) -> None:
        """Give keys to strings that they keep, even if no event has them; in the order of strings if this is asked for."""
        if ordered:
            self.order_texts()
        self._texts.pinned = texts
        self._text_keys(list(texts))

    def has_order_for(self, wanted: RangesByKind | None) -> bool:
        """Whether `ranges` changes no keys."""
        return wanted is None or Kind.STRING not in wanted or self._texts.is_ordered

    def ranges(self, wanted: RangesByKind) -> dict[int, list[KeyRange]]:
        """The keys in ranges of values, by domain. A domain that is not there cannot be compared."""
        found: dict[int, list[KeyRange]] = {}
        for kind, ranges in wanted.items():
            if kind is Kind.NUMBER:
                pairs = [number_ranges(each) for each in ranges]
                found[NUMBER], found[LARGE] = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
            elif kind is Kind.STRING:
                if not self._texts.is_ordered and any(each.lo is None or each.lo != each.hi for each in ranges):
                    self.order_texts()
                found[TEXT] = [self._texts.range(each) for each in ranges]
            else:
                [domain] = DOMAINS_OF[kind]
                found[domain] = [integer_range(each) for each in ranges]
        return found

    def range_of_one(self, value: Value, operator: Operator) -> tuple[int, KeyRange] | None:
        """The keys y for which `value OPERATOR y` holds, with their domain, if they are in one range that is found at once.

        Takes a tenth of the time of `ranges`. The operator is positive.
        """
        cls = type(value)
        if cls is str and operator is Operator.EQ:
            return TEXT, self._texts.range(Range(value, value))
        if (cls is not float and cls is not int) or not -INT_EXACT < value < INT_EXACT or self.seen[LARGE]:  # type: ignore[operator]
            return None
        code = double_code(float(value))  # type: ignore[arg-type]
        match operator:
            case Operator.EQ:
                found = code, code
            case Operator.LT:
                found = code + 1, KEY_MAX
            case Operator.LE:
                found = code, KEY_MAX
            case Operator.GT:
                found = KEY_MIN, code - 1
            case _:
                found = KEY_MIN, code
        return NUMBER, found

    def cut(self, position: int, number: int) -> None:
        """Forget the events from a position on, whose numbers count from `number` on."""
        self._domains = GrowingArray.of(self.domains[:position].copy())
        self._keys = GrowingArray.of(self.keys[:position].copy())
        self.count = position
        self.odd = {each: values for each, values in self.odd.items() if each < number}
        self.changes += 1

    def drop(self, count: int, number: int) -> None:
        """Forget the events of the first positions; `number` is that of the first event that stays. Keys stay as they are."""
        self._domains.drop(count)
        self._keys.drop(count)
        self.count -= count
        self.odd = {each: values for each, values in self.odd.items() if each >= number}
        self._forget_unused()

    def keep(self, positions: Bools, gone: I64s) -> None:
        """Keep only some positions; `gone` are the numbers of the others."""
        domains, keys = self.domains[positions], self.keys[positions]
        self._domains, self._keys = GrowingArray.of(domains), GrowingArray.of(keys)
        self.count = len(keys)
        if self.odd:
            for number in gone.tolist():
                self.odd.pop(number, None)
        self._forget_unused()
        self.changes += 1

    def _forget_unused(self) -> None:
        """Forget what no event has."""
        domains = self.domains
        if self.seen[TEXT]:
            self._texts.keep(self.keys[domains == TEXT])
        self.seen[:] = False
        self.seen[domains] = True


_SEVERAL = object()


def _put_numbers(values: Sequence[float | None], domains: I8s, keys: I64s, seen: Bools) -> bool:
    """Take in numbers, of which None is missing; whether all were small enough. If not, some were not taken in."""
    try:
        doubles = np.array(values, np.float64)  # None becomes NaN.
    except OverflowError:
        return False
    return number_keys(doubles.view(np.int64), domains, keys, seen)


def _is_number(value: float) -> bool:
    """Whether a number is a value of the language."""
    return value == value if type(value) is float else INT64_MIN <= value <= INT64_MAX


def _is_whole(rows: I64s, count: int) -> bool:
    """Whether rows that ascend are all rows."""
    return len(rows) == count and bool((rows[1:] > rows[:-1]).all())


def _scalars(column: ArrowColumn, among: Bools) -> list[Any]:
    if isinstance(column.values, pa.Array):
        values: list[Any] = plain_texts(column.values).filter(pa.array(among)).to_pylist()
        return values
    plain: list[Any] = column.values[among].tolist()
    return list(map(from_microseconds, plain)) if column.kind is Kind.TIMESTAMP else plain


assert (MISSING, NUMBER) == (0, 1), "`write_plain_keys` writes these"
