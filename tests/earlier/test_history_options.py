from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import tamis


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({}, "needs a limit"),
        ({"order": "t", "key": "k"}, "needs a limit"),
        ({"rows": 0}, "at least 1"),
        ({"rows": -3}, "at least 1"),
        ({"rows": 2.5}, "whole number"),
        ({"rows": True}, "whole number"),
        ({"rows": "10"}, "whole number"),
        ({"age": 5}, "order='time'"),
        ({"age": 0, "order": "t"}, "above 0"),
        ({"age": float("nan"), "order": "t"}, "above 0"),
        ({"age": float("inf"), "order": "t"}, "above 0"),
        ({"age": 10**400, "order": "t"}, "above 0"),
        ({"age": True, "order": "t"}, "above 0"),
        ({"age": "1h", "order": "t"}, "a timedelta if"),
        ({"age": timedelta(0), "order": "t"}, "above 0"),
        ({"rows": 1, "order": 5}, "order must be the name of an attribute"),
        ({"rows": 1, "key": ""}, "key must be the name of an attribute"),
    ],
)
def test_wrong_options_say_what_would_be_right(options: dict[str, Any], hint: str) -> None:
    with pytest.raises(tamis.OptionError, match=hint):
        tamis.History(**options)


def test_right_options() -> None:
    rows: Any = np.int64(3)
    assert tamis.History(rows=rows).rows == 3
    assert tamis.History(age=timedelta(hours=1), order="t").age == timedelta(hours=1)
    assert tamis.History(rows=1) == tamis.History(rows=1)


def test_a_matcher_says_what_it_takes() -> None:
    with pytest.raises(tamis.OptionError, match=r"tamis\.History"):
        tamis.Matcher(history=5)  # type: ignore[arg-type]
    with pytest.raises(tamis.OptionError, match="without index"):
        tamis.Matcher("scan", history=tamis.History(rows=1))
