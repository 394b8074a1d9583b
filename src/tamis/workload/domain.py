"""What the numbers of a workload stand for: names of attributes, and values as integers, floats or strings."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.workload.arrays import offsets
from tamis.workload.config import WorkloadConfig
from tamis.workload.zipf import Floats, Integers

_GOLDEN = (5**0.5 - 1) / 2
_V, _ZERO, _PERCENT = b"v0%"


class Domain:
    """The attributes and values of a config.

    Attributes
    ----------
    names : list of str
        The name of each attribute.
    strings : array of bool
        Which attributes carry strings; they are spread evenly over the popular and the rare ones.
    digits : int
        How many digits follow the `v` of every string, enough for strict bounds above the largest value.
    """

    def __init__(self, config: WorkloadConfig) -> None:
        count = round(config.string_share * config.dimensions)
        if config.string_share > 0:
            count = max(1, count)
        shares = np.arange(config.dimensions + 1, dtype=np.int64) * count // config.dimensions
        self.strings: npt.NDArray[np.bool_] = np.diff(shares) > 0
        self.names = [f"{'s' if string else 'a'}{rank}" for rank, string in enumerate(self.strings.tolist())]
        self.digits = len(str(config.cardinality + 1))
        self.floats = config.numbers == "float"
        self.has_strings = count > 0
        self.has_numbers = count < config.dimensions

    def numbers(self, attribute: npt.NDArray[np.int32], values: Integers) -> Integers | Floats:
        """Values as numbers of the kind that the config asks for; on string attributes they stay as they are."""
        if not self.floats:
            return values
        # Strictly ascending, since the added part is below one half, and on no grid.
        fraction = 0.5 * (values * _GOLDEN % 1)
        return values + np.where(self.strings[attribute], 0, fraction)

    def spell(self, values: Integers, prefix: npt.NDArray[np.uint8]) -> tuple[Integers, npt.NDArray[np.uint8]]:
        """The strings of values, as offsets and bytes; where `prefix` is set, a LIKE pattern of so many digits."""
        columns = self.digits + 2  # v, digits, %
        text = np.full((len(values), columns), _PERCENT, np.uint8)
        text[:, 0] = _V
        rest = values
        for column in range(self.digits, 0, -1):
            rest, digit = np.divmod(rest, 10)
            text[:, column] = _ZERO + digit
        patterns = np.flatnonzero(prefix)
        text[patterns, prefix[patterns].astype(np.intp) + 1] = _PERCENT
        lengths = np.where(prefix > 0, prefix + np.uint8(2), self.digits + 1)
        return offsets(lengths), text[np.arange(columns) < lengths[:, None]]
