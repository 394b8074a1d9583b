"""What the steps of matching cost: the one table that the planner weighs access paths with.

Measured on one core with lists and records of a million conjunctions, in nanoseconds where nothing else is said. Only ratios
matter: a machine that is twice as fast plans the same.
"""

from __future__ import annotations

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
RUN = 60.0
"""Finding a run and its end."""
TRY_PAIR = 8.0
"""Trying a pair of values, measured with 435 of them."""
MEET_PAIR = 25.0
"""A pair that is there, without its entries: they and their records lie scattered."""
SPACE = 0.005
"""Memory of an additional entry, weighed in the same unit."""

GUARD = 0.8
"""Looking at the guard of a block, in entries."""
LEAST_SAVED_BY_GUARD = 1.0
"""Entries of its block that a guard must save: a block that is not full takes memory, and its guard is looked at."""
MOST_WITH_GUARDS = 0.75
"""Share of the cost of long lists up to which guards pay. At 0.85, where events have 15 of 20 attributes, events were 10 % faster
or slower."""
CAUTION_WITH_PAIRS = 2.0
"""Factor by which pairs must save more than they cost: events that match more than others pay more."""
