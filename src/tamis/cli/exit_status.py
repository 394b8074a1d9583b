"""Exit statuses. 2 is click's own: the command line is wrong."""

from __future__ import annotations

FAILED = 1
"""Nothing was done, or the work stopped at an error."""

SKIPPED = 3
"""The work was done, but bad lines were skipped."""

NOT_MATCHED = 4
"""``explain --exit-code``: the event does not match. ``filter --exit-code``: no event was printed or counted."""

INTERRUPTED = 130
"""Ctrl-C, as shells count it: 128 and the number of the signal."""

NO_READER = 141
"""The reader of the output has ended (``| head``), counted the same way."""
