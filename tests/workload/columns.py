"""The subscriptions of a workload, evaluated by NumPy: all of them for one event, in a millisecond or so."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.workload import OPERATORS, PredicateArrays

_COMPARISONS = {"=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater}
_COMPARISONS[">="] = np.greater_equal


class WorkloadColumns:
    """Predicates on numbers, grouped by operator."""

    def __init__(self, arrays: PredicateArrays, attributes: int) -> None:
        self._arrays = arrays
        self._attributes = attributes
        self._first = arrays.literals[arrays.literal_ptr[:-1]]
        self._last = arrays.literals[arrays.literal_ptr[1:] - 1]
        self._rows = {str(operator): np.flatnonzero(arrays.operator == code) for code, operator in enumerate(OPERATORS)}
        assert len(self._rows["like"]) == 0, "patterns are not for NumPy"
        self._owner = np.repeat(np.arange(len(arrays.attribute)), np.diff(arrays.literal_ptr))

    def __len__(self) -> int:
        return len(self._arrays.ptr) - 1

    def true_of(self, attribute: npt.NDArray[np.int32], value: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Which subscriptions an event satisfies; NaN would be no value, and there is none."""
        values = np.full(self._attributes, np.nan)
        values[attribute] = value
        own = values[self._arrays.attribute]
        holds = np.zeros(len(own), np.bool_)
        for operator, compare in _COMPARISONS.items():
            rows = self._rows[operator]
            holds[rows] = compare(own[rows], self._first[rows])
        rows = self._rows["between"]
        holds[rows] = (self._first[rows] <= own[rows]) & (own[rows] <= self._last[rows])
        met = np.zeros(len(own), np.bool_)
        met[self._owner[self._arrays.literals == own[self._owner]]] = True
        holds[self._rows["in"]] = met[self._rows["in"]]
        holds[self._rows["not in"]] = ~met[self._rows["not in"]]
        wrong = np.append(0, np.cumsum(~(holds & ~np.isnan(own))))
        all_hold: npt.NDArray[np.bool_] = wrong[self._arrays.ptr[1:]] == wrong[self._arrays.ptr[:-1]]
        return all_hold
