"""Checks of arguments of public functions: DataFrames, sessions, lists of columns."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tamis.errors import FrameError, OptionError, shortened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def checked_frame(given: Any, what: str) -> DataFrame:
    """A DataFrame of Spark; `what` names its contents in messages ("events").

    Raises
    ------
    FrameError
        For anything else.
    """
    from pyspark.sql import DataFrame

    if isinstance(given, DataFrame):
        return given
    raise FrameError(f"{what} must be a DataFrame of Spark, not {_described(given)}{_hint(given)}")


def checked_index(given: Any) -> str | os.PathLike[str] | DataFrame:
    """The path of an index, or a DataFrame of subscriptions.

    Raises
    ------
    FrameError
        For anything else.
    """
    from pyspark.sql import DataFrame

    if isinstance(given, DataFrame | str | os.PathLike):
        return given
    raise FrameError(
        f"the index must be a path, or a DataFrame of Spark with subscriptions, not {_described(given)}{_hint(given)}"
    )


def checked_session(given: Any) -> SparkSession:
    """A Spark session, classic or of Spark Connect.

    Raises
    ------
    FrameError
        For anything else.
    """
    # The session of Spark Connect is a different class with the same name.
    if any(cls.__name__ == "SparkSession" and cls.__module__.startswith("pyspark.") for cls in type(given).__mro__):
        session: SparkSession = given
        return session
    raise FrameError(f"a Spark session is needed, not {_described(given)}. Hint: tamis.spark.start_session() gives one")


def listed(names: Iterable[str], what: str) -> tuple[str, ...]:
    """Names of columns, given as the option `what`.

    Raises
    ------
    OptionError
    """
    if isinstance(names, str):
        raise OptionError(f"`{what}` must be a list of columns. Hint: {what}=[{names!r}]")
    try:
        found = tuple(names)
    except TypeError:
        raise OptionError(f"`{what}` must be a list of columns, not {_described(names)}") from None
    for name in found:
        if not isinstance(name, str):
            raise OptionError(f"`{what}` must be a list of names of columns, but {_described(name)} is not a name")
    return found


def checked_count(given: object, what: str, meaning: str) -> int:
    """A number, given as the option `what`.

    Raises
    ------
    OptionError
    """
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise OptionError(f"`{what}` must be {meaning}, a whole number of at least 1, not {shortened(given)}")
    return given


def checked_device(given: object) -> str | None:
    """What matches in tasks: ``"gpu"``, or None for the CPU.

    Raises
    ------
    OptionError
    """
    if given in (None, "cpu"):
        return None
    if given == "gpu":
        return "gpu"
    raise OptionError(f"`device` must be 'cpu' or 'gpu', not {shortened(given)}. Hint: Spark gives each task its card")


def checked_version(given: object) -> int | None:
    """The number of a version of an index; None is the current one.

    Raises
    ------
    OptionError
    """
    return None if given is None else checked_count(given, "version", "the number of a version")


def _described(given: Any) -> str:
    """A description of an object: its class, and the object itself if that is short."""
    if given is None:
        return "None"
    cls = type(given)
    name = (
        cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__.partition('.')[0]} {cls.__qualname__}"
    )
    return f"{shortened(given)} ({name})" if isinstance(given, str | int | float | os.PathLike) else f"a {name}"


def _hint(given: Any) -> str:
    if isinstance(given, str | os.PathLike):
        return ". Hint: spark.read.parquet(...) reads one from files"
    if given is None:
        return ""
    return ". Hint: spark.createDataFrame(...) makes one from a pandas frame, an Arrow table or a list of rows"
