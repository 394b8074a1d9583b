"""The common part of all configs: the parameters that every workload has, checks of all parameters, and JSON."""

from __future__ import annotations

import json
import math
import operator
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

from tamis.errors import WorkloadError, did_you_mean

_COMMON: dict[str, tuple[int, int]] = {
    "subscriptions": (1, 10**12),
    "events": (0, 10**9),
    "other_events": (0, 10**9),
    "seed": (0, 2**64 - 1),
}


@dataclass(frozen=True, kw_only=True)
class Config:
    """The parameters that all workloads share. The class of a style adds its own parameters and their allowed values.

    `words` are parameters with a list of allowed words. `whole` and `real` are whole and real numbers with their ranges.
    `optional` are numbers that may be None. `files` are paths of text files, or None.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    whole: ClassVar[Mapping[str, tuple[int, int]]] = {}
    real: ClassVar[Mapping[str, tuple[float, float]]] = {}
    optional: ClassVar[tuple[str, ...]] = ("events",)
    files: ClassVar[tuple[str, ...]] = ()

    style: str
    subscriptions: int
    events: int | None = None
    other_events: int = 1_000
    seed: int = 1

    def __post_init__(self) -> None:
        for name, words in self.words.items():
            _check_word(name, getattr(self, name), words)
        for name, (low, high) in {**_COMMON, **self.whole}.items():
            self._store(name, _whole, low, high)
        for name, (least, most) in self.real.items():
            self._store(name, _real, least, most)
        for name in self.files:
            object.__setattr__(self, name, _path(name, getattr(self, name)))

    def _store(self, name: str, check: Callable[[str, Any, Any, Any], float], low: float, high: float) -> None:
        value = getattr(self, name)
        if value is not None or name not in self.optional:
            # Store plain numbers: NumPy's scalars would print in another way.
            object.__setattr__(self, name, check(name, value, low, high))

    @property
    def event_count(self) -> int:
        """The number of events that the workload offers by default."""
        return 1_000 if self.events is None else self.events

    def to_json(self) -> str:
        """All parameters as a JSON object."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the output of `to_json`. Missing parameters get their defaults."""
        return cls(**cls.known(read_parameters(text)))

    @classmethod
    def known(cls, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same parameters, after a check that this class has each of them."""
        names = [field.name for field in fields(cls)]
        for name in parameters:
            if name not in names:
                raise WorkloadError(f"{cls.__name__} has no parameter {name!r}{did_you_mean(name, names)}")
        return parameters


def read_parameters(text: str) -> dict[str, Any]:
    """The parameters in a JSON object."""
    try:
        parameters = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkloadError(f"a workload's config is not JSON: {error}") from None
    if not isinstance(parameters, dict):
        raise WorkloadError("a workload's config must be a JSON object of parameters")
    return parameters


def check_limit(name: str, value: float, limit_name: str, limit: float) -> None:
    """Refuse a parameter that is above another one."""
    if value > limit:
        raise WorkloadError(f"{name} must not be above {limit_name}: {value:,} is above {limit:,}")


def _check_word(name: str, value: object, words: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in words:
        right = words[0] if len(words) == 1 else f"one of {', '.join(words)}"
        raise WorkloadError(f"{name} must be {right}, not {value!r}")


def _path(name: str, value: Any) -> str | None:
    if value is None:
        return None
    try:
        path = os.fspath(value)
    except TypeError:
        path = None
    if not isinstance(path, str) or not path:
        raise WorkloadError(f"{name} must be the path of a file, not {value!r}")
    return path


def _whole(name: str, value: Any, low: int, high: int) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise WorkloadError(f"{name} must be a whole number, not {value!r}") from None
    if not low <= number <= high:
        raise WorkloadError(f"{name} must be from {low:,} to {high:,}, not {number}")
    return number


def _real(name: str, value: Any, low: float, high: float) -> float:
    try:
        if isinstance(value, bool | str | bytes):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise WorkloadError(f"{name} must be a number, not {value!r}") from None
    if not (math.isfinite(number) and low <= number <= high):
        raise WorkloadError(f"{name} must be from {low:g} to {high:g}, not {number}")
    return number
