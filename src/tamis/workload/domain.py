"""The meaning of a workload's numbers: names of attributes, and values as integers, floats or strings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.kernels.numbers import Bools, I32s, I64s, U8s
from tamis.workload.arrays import offsets, runs
from tamis.workload.config import WorkloadConfig
from tamis.workload.zipf import Floats

_GOLDEN = (5**0.5 - 1) / 2
_ZERO, _PERCENT = b"0%"


class Domain:
    """The attributes of a workload and their values.

    Attributes
    ----------
    names : list of str
        The name of each attribute.
    strings : array of bool
        Whether each attribute has strings.
    floats : bool
        Whether the numbers of the other attributes are floats.
    digits : int
        The number of digits in a string. Every string is the same word, followed by the value's number.
    """

    def __init__(self, names: list[str], strings: Sequence[bool], *, floats: bool, word: bytes, digits: int) -> None:
        self.names = names
        self.strings: Bools = np.array(strings, np.bool_)
        self.floats = floats
        self.digits = digits
        self.has_strings = bool(self.strings.any())
        self.has_numbers = not self.strings.all()
        self._word = np.frombuffer(word, np.uint8)

    def numbers(self, attribute: I32s, values: I64s | Floats) -> I64s | Floats:
        """Values as integers or floats, as the config says. Values of string attributes stay as they are."""
        return values

    def spell(self, values: I64s | Floats, prefix: U8s) -> tuple[I64s, U8s]:
        """The strings of values, as offsets and bytes. If `prefix` is above 0, a LIKE pattern with this number of digits."""
        first = len(self._word)
        columns = first + self.digits + 1  # word, digits, %
        text = np.full((len(values), columns), _PERCENT, np.uint8)
        text[:, :first] = self._word
        rest = values.astype(np.int64, copy=False)
        for column in range(first + self.digits - 1, first - 1, -1):
            rest, digit = np.divmod(rest, 10)
            text[:, column] = _ZERO + digit
        patterns = np.flatnonzero(prefix)
        text[patterns, prefix[patterns].astype(np.intp) + first] = _PERCENT
        lengths = np.where(prefix > 0, prefix + np.uint8(first + 1), first + self.digits)
        return offsets(lengths), text[np.arange(columns) < lengths[:, None]]


class IntegerDomain(Domain):
    """Attributes with integers: `a0`, `a1`, ..., if they have no other names."""

    def __init__(self, count: int, names: list[str] | None = None) -> None:
        names = names or [f"a{number}" for number in range(count)]
        super().__init__(names, [False] * count, floats=False, word=b"", digits=1)


class TableDomain(Domain):
    """Attributes with strings of a table: value 7 is the string at place 7. In LIKE patterns, digits are characters.

    `strings` tells which attributes have them; the others have integers. None: all have strings.
    """

    def __init__(self, names: list[str], table: Sequence[str], strings: Sequence[bool] | None = None) -> None:
        super().__init__(names, strings or [True] * len(names), floats=False, word=b"", digits=1)
        encoded = [text.encode() for text in table]
        self._text = np.frombuffer(b"".join(encoded), np.uint8)
        self._ends = offsets(np.array([len(text) for text in encoded], np.int64))
        # Where the characters of all strings begin: a character may take several bytes.
        self._characters = np.append(np.flatnonzero(self._text & 0xC0 != 0x80), len(self._text))
        self._first_character = np.searchsorted(self._characters, self._ends)

    def spell(self, values: I64s | Floats, prefix: U8s) -> tuple[I64s, U8s]:
        numbers = values.astype(np.int64, copy=False)
        starts = self._ends[numbers]
        kept = np.minimum(self._first_character[numbers] + prefix, self._first_character[numbers + 1])
        stops = np.where(prefix > 0, self._characters[kept], self._ends[numbers + 1])
        sizes = stops - starts + (prefix > 0)
        ends = offsets(sizes)
        text = np.full(int(ends[-1]), _PERCENT, np.uint8)
        letters = stops - starts
        text[runs(ends[:-1], letters)] = self._text[runs(starts, letters)]
        return ends, text


class PaperDomain(Domain):
    """The domain of the papers' workloads: `a0`, `a1`, ... with numbers, `s2`, ... with strings like `v00042`.

    Attributes with strings are spread evenly over popular and rare attributes. Strings have enough digits for strict bounds,
    which may be above the largest value.
    """

    def __init__(self, config: WorkloadConfig) -> None:
        count = round(config.string_share * config.dimensions)
        if config.string_share > 0:
            count = max(1, count)
        shares = np.arange(config.dimensions + 1, dtype=np.int64) * count // config.dimensions
        strings = (np.diff(shares) > 0).tolist()
        names = [f"{'s' if string else 'a'}{rank}" for rank, string in enumerate(strings)]
        floats = config.numbers == "float"
        super().__init__(names, strings, floats=floats, word=b"v", digits=len(str(config.cardinality + 1)))

    def numbers(self, attribute: I32s, values: I64s | Floats) -> I64s | Floats:
        if not self.floats:
            return values
        # The added part is below one half, so values stay strictly ascending. They are not evenly spaced.
        fraction = 0.5 * (values * _GOLDEN % 1)
        return values + np.where(self.strings[attribute], 0, fraction)
