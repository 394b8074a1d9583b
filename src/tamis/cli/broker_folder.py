"""The folder of a broker, opened for a command. Messages name options of the command, not of Python."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tamis.errors import BrokerError, LockedError, OptionError

if TYPE_CHECKING:
    from tamis.broker.broker import Broker
    from tamis.earlier.history import History

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_PAUSE = 0.02
"""Seconds between two looks at the lock."""


def wait_option(command: F) -> F:
    """``--wait``, the patience of a command that writes."""
    return click.option(
        "--wait",
        type=click.FloatRange(0),
        metavar="SECONDS",
        default=5,
        show_default=True,
        help="How long to wait while another process writes to FOLDER.",
    )(command)


@contextmanager
def reading(folder: str) -> Iterator[Broker]:
    """A broker that reads only. Another process may write meanwhile.

    Raises
    ------
    BrokerError
    """
    from tamis.broker import open as open_broker

    _check(folder)
    with open_broker(folder, read_only=True) as broker:
        yield broker


@contextmanager
def writing(folder: str, wait: float, *, make: bool = False, history: History | None = None) -> Iterator[Broker]:
    """A broker that writes. With `make`, the folder is made if it is not there. `history` as for `tamis.open`.

    Raises
    ------
    LockedError
        Another process has written all the time.
    BrokerError
    """
    from tamis.broker import open as open_broker

    if not make:
        _check(folder)
    elif folder in (":memory:", ""):
        raise BrokerError("a broker of the command line needs a folder. Hint: name one, such as `alerts`")
    try:
        opened = _patient(lambda: open_broker(folder, history=history), wait)
    except OptionError as error:
        there = str(error).partition(". Hint: ")[0]  # The hint is for Python.
        raise OptionError(f"{there}. Hint: leave out the options of the history: the folder remembers it") from None
    with opened as broker:
        yield broker


def _patient(opened: Callable[[], T], wait: float) -> T:
    """The result of a call that needs the lock. It is tried for some seconds.

    Raises
    ------
    LockedError
    """
    until = time.monotonic() + wait
    while True:
        try:
            return opened()
        except LockedError as error:
            if time.monotonic() >= until:
                hint = "Hint: try again when that process has ended, or give --wait more seconds"
                holder = str(error).partition(". Hint: ")[0]  # The hint is for Python.
                raise LockedError(f"{holder}. {hint}") from None
        time.sleep(_PAUSE)


def size_of(folder: str) -> str:
    """The size of all files of a folder."""
    total = 0
    for entry in os.scandir(folder) if os.path.isdir(folder) else ():
        with suppress(FileNotFoundError):  # Another process may remove files.
            total += entry.stat().st_size
    return f"{total / 1e6:,.1f} MB"


def _check(folder: str) -> None:
    from tamis.broker.folder import TABLES

    if not os.path.exists(os.path.join(folder, TABLES)):
        raise BrokerError(f"{folder} has no broker. Hint: check the name; `tamis subscribe` makes a broker")
