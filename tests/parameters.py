"""Parameters of tests that are tried by default, and those that are left to the long form."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def few_of(values: Iterable[Any], few: Collection[Any]) -> list[ParameterSet]:
    """All values, of which only `few` run by default."""
    return [pytest.param(value, marks=[] if value in few else [pytest.mark.long]) for value in values]
