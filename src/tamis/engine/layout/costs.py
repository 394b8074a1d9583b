"""What the steps of matching cost: the one table that the planner weighs access paths with.

Measured on one core with lists and records of a million conjunctions, in nanoseconds where nothing else is said. Only ratios
matter: a machine that is twice as fast plans the same.
"""

from __future__ import annotations

from typing import NamedTuple

ENTRY = 1.2
"""Reading an entry of a list and testing its filter word."""
SECOND_WORD = 0.8
"""Testing a second filter word."""
RECORD = 10.0
"""Fetching and checking a record."""
COMPARE = 150.0
"""Comparing the keys of a conjunction that spaces and codes do not decide."""
LIST = 25.0
"""Going to the list of a dimension, paid by every event that has the dimension; twice that for a list sorted by bound."""
TRY_PAIR = 8.0
"""Looking up a pair of values; measured with the 435 pairs of 30 values."""
MEET_PAIR = 25.0
"""Going to the entries of a pair that was found. They lie scattered, and so do their records."""
SPACE = 0.005
"""Memory of one more entry, as if it took time."""

GUARD = 0.8
"""Reading the guard of a block, as a number of entries."""
LEAST_SAVED_BY_GUARD = 1.0
"""Entries that a guard must save per block, since padding takes memory and the guard must be read."""


class Costs(NamedTuple):
    """The costs that decide about pairs, second filters, runs and guards. Tests change them, to see all layouts with few rows."""

    caution_with_pairs: float = 2.0
    """Pairs are used if they save this many times their cost. Events that match much pay more than the average."""
    second_space: float = SPACE / 2
    """Memory of one more second filter word, as if it took time."""
    run: float = 60.0
    """Finding a run and its end."""
    most_with_guards: float = 0.75
    """Share of the cost of long lists up to which guards pay. At 0.85, where events have 15 of 20 attributes, events were 10 %
    faster or slower."""


USUAL_COSTS = Costs()
