"""The speed of the machine's memory: random reads of words by one thread, and by two threads at once.

Matching many subscriptions mostly waits for memory, and cores that share it wait for each other. If two threads that only read
are less than twice as fast as one, two threads that match cannot be twice as fast either.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tamis.kernels.kernel import kernel
from tamis.kernels.numbers import I64s

_WORDS = 1 << 24
_READS = 1 << 20


class Reads:
    """A large array, and random places in it to read."""

    def __init__(self, seed: int = 0) -> None:
        self._words = np.zeros(_WORDS, np.int64)
        self._places = np.random.default_rng(seed).integers(0, _WORDS, _READS)
        self._pool = ThreadPoolExecutor(2)

    def by_one_thread(self) -> int:
        return _read(self._words, self._places)

    def by_two_threads(self) -> int:
        return sum(self._pool.map(_read, [self._words] * 2, np.array_split(self._places, 2)))


@kernel
def _read(words: I64s, places: I64s) -> int:
    total = 0
    for place in places:
        total += words[place]
    return total
