"""Forked processes: a child has copies of the brokers that its parent has open, and must not use them."""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import WeakMethod

_parting: list[WeakMethod[Callable[[], None]]] = []


def part_in_children(part: Callable[[], None]) -> None:
    """Call a method of an object in every process that is forked from now on, as long as the object is there."""
    _parting.append(WeakMethod(part, _parting.remove))


def _part() -> None:
    methods = [method() for method in _parting]
    _parting.clear()
    for method in methods:
        if method is not None:
            method()


if hasattr(os, "register_at_fork"):  # Windows has no fork.
    os.register_at_fork(after_in_child=_part)
