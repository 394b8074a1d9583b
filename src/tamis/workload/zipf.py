"""Drawing numbers by popularity: uniform or Zipf, with and without replacement."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tamis.kernels.numbers import F64s, I64s

Floats = F64s

_CELLS = 1 << 21
"""Most cells of a table of arrivals in work at a time. This bounds the memory."""

_REPEATS = 0.5
"""Most expected occurrences of the tail's most popular number in a row, see `draw_distinct`."""


class Popularity:
    """The numbers 0 to `count` - 1, number r with a weight of ``1 / (r + shift) ** alpha``.

    The larger the shift, the less the first few numbers stand out: Zipf's law has 1, Pareto's any (Zipf-Mandelbrot).
    """

    def __init__(self, count: int, alpha: float, shift: int = 1) -> None:
        self.count = count
        self.alpha = alpha
        self.shift = shift
        self._tails: dict[int, Floats] = {}

    @cached_property
    def _weights(self) -> Floats:
        # Not needed for independent uniform draws, for which there may be millions of numbers.
        return np.arange(self.shift, self.count + self.shift, dtype=np.float64) ** -self.alpha

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> I64s:
        """Numbers drawn independently of each other."""
        return self._draw_tail(rng, shape, 0)

    def draw_distinct(self, rng: np.random.Generator, rows: int, size: int) -> I64s:
        """Rows of `size` distinct numbers, drawn one after the other without replacement, in the order of drawing.

        Each number is given a Poisson process with its weight as rate; the numbers in the order of their first
        arrivals are such a draw, exactly. The popular numbers (the head) get their first arrivals directly. The tail, which
        may have a million numbers, is one process with its total weight: each arrival picks a number, and repeats are
        dropped. It runs on, row by row, until no later arrival can be among the first `size`.
        """
        head = self._head(size)
        drawn = np.empty((rows, size), np.int64)
        step = max(1, _CELLS // (head + 2 * size))
        for start in range(0, rows, step):
            part = drawn[start : start + step]
            part[:] = self._race(rng, len(part), size, head)
        return drawn

    def _race(self, rng: np.random.Generator, rows: int, size: int, head: int) -> I64s:
        """`draw_distinct` for some rows at once, the first `head` numbers being the head."""
        first: Floats = rng.standard_exponential((rows, head)) / self._weights[:head]
        if head == self.count:
            return np.argsort(first, axis=1)[:, :size]
        drawn = np.empty((rows, size), np.int64)
        pending: I64s = np.arange(rows)
        arrivals: Floats = np.zeros((rows, 1))  # time 0, at which no number arrives
        numbers: I64s = np.full((rows, 1), -1, np.int64)
        rate = self._tail(head)[-1]
        while len(pending):
            step = (len(pending), size + size // 2 + 4)
            later = arrivals[:, -1:] + np.cumsum(rng.standard_exponential(step) / rate, axis=1)
            arrivals = np.hstack([arrivals, later])
            numbers = np.hstack([numbers, self._draw_tail(rng, step, head)])
            times = np.hstack([first, _first_arrivals(arrivals, numbers)])
            order = np.argsort(times, axis=1)[:, :size]
            # The columns of `times` are the head's numbers, then those of the tail's arrivals.
            tail = np.take_along_axis(numbers, np.maximum(order - head, 0), axis=1)
            done = np.take_along_axis(times, order[:, -1:], axis=1)[:, 0] <= arrivals[:, -1]
            drawn[pending[done]] = np.where(order < head, order, tail)[done]
            pending, first = pending[~done], first[~done]
            arrivals, numbers = arrivals[~done], numbers[~done]
        return drawn

    def _head(self, size: int) -> int:
        """The smallest head whose tail has no number so popular that a row of `size` would often repeat it."""
        tail_weight = np.cumsum(self._weights[::-1])[::-1]
        rare = self._weights * size <= _REPEATS * tail_weight
        return int(np.argmax(rare)) if rare.any() else self.count

    def _tail(self, head: int) -> Floats:
        """The cumulative weights of the numbers from `head` on."""
        if head not in self._tails:
            self._tails[head] = np.cumsum(self._weights[head:])
        return self._tails[head]

    def _draw_tail(self, rng: np.random.Generator, shape: tuple[int, ...], head: int) -> I64s:
        """Independent draws among the numbers from `head` on."""
        if self.alpha == 0:
            return rng.integers(head, self.count, shape)
        cumulative = self._tail(head)
        found = np.searchsorted(cumulative, rng.random(shape) * cumulative[-1], side="right")
        drawn: I64s = head + np.minimum(found, self.count - head - 1)
        return drawn


def _first_arrivals(arrivals: Floats, numbers: I64s) -> Floats:
    """The times, with infinity for the arrival of no number (-1) and of one that came earlier in its row."""
    order = np.argsort(numbers, axis=1, kind="stable")
    ordered = np.take_along_axis(numbers, order, axis=1)
    again = np.zeros(numbers.shape, np.bool_)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.where(again | (numbers < 0), np.inf, arrivals)
