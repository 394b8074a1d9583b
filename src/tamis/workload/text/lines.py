"""Lines of text as numbers.

ptr      0        2              5        line i has the words ptr[i] to ptr[i + 1]
word     7   12   3   7   40              ... by their numbers in `words` of the source
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.kernels.numbers import I64s
from tamis.workload.arrays import offsets, runs


class Lines(NamedTuple):
    """Some lines, as drawn at the top of this module."""

    ptr: I64s
    word: I64s

    def take(self, rows: I64s) -> Lines:
        """The lines with these places."""
        sizes = np.diff(self.ptr)[rows]
        return Lines(offsets(sizes), self.word[runs(self.ptr[:-1][rows], sizes)])

    @property
    def owner(self) -> I64s:
        """The line of each word."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))

    def kept(self, places: I64s) -> Lines:
        """The lines with only the words at these places, which ascend."""
        sizes = np.bincount(self.owner[places], minlength=len(self.ptr) - 1)
        return Lines(offsets(sizes), self.word[places])


class LineSource(ABC):
    """Lines by their number. The same number always gives the same line."""

    words: Sequence[str]
    """The words by their number. All are lower case."""

    longest: int
    """The most words of a line."""

    @abstractmethod
    def take(self, rows: I64s) -> Lines:
        """The lines with these numbers."""


def first_places(group: I64s, number: I64s, count: int) -> I64s:
    """The places, in ascending order, at which a number occurs for the first time in its group. Numbers are below `count`."""
    _, places = np.unique(group * count + number, return_index=True)
    return np.sort(places)
