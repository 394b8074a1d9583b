"""Leases: how long the slots of a part may still be met by a reader.

    version 7 holds   part A           slot 3 lives in A, then in C, and when D is built it is dead and dropped
                        A.lease --> C.lease --> D.lease

A part owns its lease, and a lease keeps those of the parts that took the part's place. So the lease of C outlives C for as
long as anybody holds A: only when it goes, nobody can find slot 3 any more.
"""

from __future__ import annotations


class Lease:
    """Lives as long as its part, and as the parts from which that was made."""

    __slots__ = ("__weakref__", "after")

    def __init__(self) -> None:
        self.after: tuple[Lease, ...] = ()
