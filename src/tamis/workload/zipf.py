"""Drawing numbers by popularity: uniform or Zipf, with and without replacement."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tamis.kernels.numbers import F64s, I64s

Floats = F64s

_CELLS = 1 << 21
"""The most cells of a table of arrivals at a time. This bounds the memory."""

_REPEATS = 0.5
"""The most occurrences to expect in a row for the tail's most popular number. See `draw_distinct`."""


class Popularity:
    """Draws the numbers 0 to `count` - 1. Number r has the weight ``1 / (r + shift) ** alpha``.

    A larger shift makes the weights of the first few numbers more equal. Zipf's law has a shift of 1, Pareto's any shift
    (Zipf-Mandelbrot).
    """

    def __init__(self, count: int, alpha: float, shift: int = 1) -> None:
        self.count = count
        self.alpha = alpha
        self.shift = shift
        self._tails: dict[int, Floats] = {}

    @cached_property
    def _weights(self) -> Floats:
        # Computed on demand: independent uniform draws do not need weights, and may have millions of numbers.
        return np.arange(self.shift, self.count + self.shift, dtype=np.float64) ** -self.alpha

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> I64s:
        """Numbers drawn independently of each other."""
        return self._draw_tail(rng, shape, 0)

    def draw_distinct(self, rng: np.random.Generator, rows: int, size: int) -> I64s:
        """Rows of `size` distinct numbers, drawn one after the other without replacement, in the order of drawing.

        Each number has a Poisson process with its weight as rate. The numbers in the order of their first arrivals are
        exactly such a draw. The popular numbers (the head) get their first arrivals directly. The tail may have a million
        numbers, so it is one process with its total weight: each arrival picks a number, and repeats are dropped. In each
        row, this process continues until no later arrival can be among the first `size`.
        """
        head = self._head(size)
        drawn = np.empty((rows, size), np.int64)
        step = max(1, _CELLS // (head + 2 * size))
        for start in range(0, rows, step):
            part = drawn[start : start + step]
            part[:] = self._race(rng, len(part), size, head)
        return drawn

    def _race(self, rng: np.random.Generator, rows: int, size: int, head: int) -> I64s:
        """`draw_distinct` for some rows at once. The first `head` numbers are the head."""
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
            # The columns of `times` are the numbers of the head, then the arrivals of the tail.
            tail = np.take_along_axis(numbers, np.maximum(order - head, 0), axis=1)
            done = np.take_along_axis(times, order[:, -1:], axis=1)[:, 0] <= arrivals[:, -1]
            drawn[pending[done]] = np.where(order < head, order, tail)[done]
            pending, first = pending[~done], first[~done]
            arrivals, numbers = arrivals[~done], numbers[~done]
        return drawn

    def _head(self, size: int) -> int:
        """The size of the smallest head after which a row of `size` numbers seldom repeats a number of the tail."""
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
    """The times of first arrivals. Infinity if no number arrived (-1), or the number came earlier in its row."""
    order = np.argsort(numbers, axis=1, kind="stable")
    ordered = np.take_along_axis(numbers, order, axis=1)
    again = np.zeros(numbers.shape, np.bool_)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.where(again | (numbers < 0), np.inf, arrivals)
