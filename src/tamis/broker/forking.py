"""Forked processes: a child has copies of the brokers that its parent has open, and must not use them."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Parting(Protocol):
    """What a child must not share with its parent."""

    def part(self) -> None:
        """Is called in the child."""


_open: WeakSet[Parting] = WeakSet()


def part_in_children(shared: Parting) -> None:
    """Part `shared` in every process that is forked from now on."""
    _open.add(shared)


def _part() -> None:
    for shared in list(_open):
        shared.part()
    _open.clear()


if hasattr(os, "register_at_fork"):  # Windows has no fork.
    os.register_at_fork(after_in_child=_part)
