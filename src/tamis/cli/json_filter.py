"""Lines of JSON that one expression selects, many lines at a time, with kernels.

Loading kernels takes longer than the evaluator needs for a small file. `kernel_choice` decides when it pays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.errors import EventError, WrongEventsError
from tamis.kernels.numbers import Bools
from tamis.matcher.matcher import Matcher

if TYPE_CHECKING:
    from tamis.encoding.events.json_lines import JsonLines
    from tamis.language.expression import Expression


class Decisions(NamedTuple):
    """Which lines match, and the errors of the wrong ones by row. A wrong line does not match."""

    matches: Bools
    problems: Mapping[int, EventError]


class JsonFilter:
    """Decides lines for one expression."""

    def __init__(self, expression: Expression) -> None:
        self._matcher: Matcher[int] = Matcher()
        self._matcher.add(0, expression)

    def decide(self, lines: JsonLines) -> Decisions:
        """Whether each line matches, or is wrong."""
        try:
            return Decisions(self._matcher.exists_batch(lines), {})
        except WrongEventsError as error:
            right = np.ones(len(lines), np.bool_)
            right[list(error.problems)] = False
            matches = np.zeros(len(lines), np.bool_)
            matches[right] = self._matcher.exists_batch(lines.without(list(error.problems)))
            return Decisions(matches, error.problems)


def runs_of(lines: JsonLines, chosen: Bools) -> Iterator[bytes]:
    """The chosen lines as they are, with their ends. Lines that follow each other come together."""
    data, start, end = lines.lines
    starts, ends = start[chosen], end[chosen] + 1
    if not len(starts):
        return
    apart = np.flatnonzero(starts[1:] != ends[:-1])
    firsts, lasts = starts[np.append(0, apart + 1)], ends[np.append(apart, len(ends) - 1)]
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        yield data[first:last].tobytes()
