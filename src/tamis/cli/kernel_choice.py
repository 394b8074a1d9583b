"""When `tamis filter` should load kernels: they decide lines faster than the evaluator, but take time before the first line.

Measured, processor time: loading kernels and what they need takes 0.8 s. A third of that is pandas, which pyarrow imports if it
is there. Then the evaluator takes 7 us more than kernels for a line, and 2.2 ns more for each of its bytes. So kernels pay from
60,000 lines of 2.7 kB on, or from 110,000 lines of 100 bytes.
"""

from __future__ import annotations

_LOADING = 0.8
"""Seconds that loading kernels takes."""
_MORE_PER_LINE, _MORE_PER_BYTE = 7e-6, 2.2e-9
"""Seconds that the evaluator takes more than kernels."""
_NOTED = 1_000
"""The first lines, from which hints come if no line matches: the evaluator notes what they have."""


class KernelChoice:
    """Counts the lines that the evaluator has decided.

    If the rest of a file is known to be long, kernels are loaded for it. If the length of the rest is unknown, they are loaded
    when they would have paid for the lines so far. So at most twice the time is lost that the better choice would have taken.

    Parameters
    ----------
    first : int
        Lines that the evaluator decides in any case.
    loading : float
        Seconds that loading kernels takes.
    """

    def __init__(self, first: int = _NOTED, loading: float = _LOADING) -> None:
        self._first = first
        self._loading = loading
        self._lost = 0.0
        """Seconds that kernels would have saved so far."""
        self.is_made = False

    def alone(self, data: bytes, left: int | None) -> int:
        """How many of the next lines the evaluator should decide, with `left` bytes of the file behind them."""
        if self.is_made:
            return 0
        lines = data.count(b"\n") + 1
        if self._first >= lines:
            self._first -= lines
            self._lost += _saved(lines, len(data))
            return lines
        more = _saved(lines, len(data))
        rest = more if left is None else more * (1 + left / len(data))
        if max(rest, self._lost) < self._loading:
            first = lines
        else:
            first, self.is_made = self._first, True
        self._first = 0
        self._lost += more
        return first


def _saved(lines: int, size: int) -> float:
    return lines * _MORE_PER_LINE + size * _MORE_PER_BYTE
