"""Leases: how long readers may still meet the slots of a part.

    version 7 holds   part A           slot 3 lives in A, then in C, and when D is built it is dead and dropped
                        A.lease --> C.lease --> D.lease

A part holds its lease, and a lease holds the leases of the parts that replaced the part. So the lease of C lives while anybody
holds A. When it ends, nobody can find slot 3 any more.
"""

from __future__ import annotations


class Lease:
    """Lives while its part lives, or a part that its part was made of."""

    __slots__ = ("__weakref__", "after")

    def __init__(self) -> None:
        self.after: tuple[Lease, ...] = ()
