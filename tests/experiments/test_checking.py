"""What experiments accept as right answers."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tamis
from tamis.errors import ExperimentError
from tamis.experiments.checking import check_matcher


def test_answers_are_compared_pair_by_pair() -> None:
    """Here each event has one match, and each subscription too, in both answers."""
    events = pa.table({"a": [1, 2]})
    matcher: tamis.Matcher[int] = tamis.Matcher()
    matcher.add_many([1, 2], ["a = 1", "a = 2"])
    check_matcher(matcher, pa.table({"id": [1, 2], "expression": ["a = 1", "a = 2"]}), events)
    with pytest.raises(ExperimentError, match="2 matches, but a scan finds 2: the answers are not equal"):
        check_matcher(matcher, pa.table({"id": [1, 2], "expression": ["a = 2", "a = 1"]}), events)
