"""The kernels that decide joins, compiled and as plain Python: the rows of a batch, and one event, as the evaluator does."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.earlier.chunks import ListedEvents
from tamis.earlier.join_table import EventJoins
from tamis.earlier.retained import Retained
from tamis.earlier.row_decisions import RowDecisions
from tamis.earlier.row_programs import FALSE, OPEN, TRUE, UNKNOWN
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import flatten
from tamis.language.expression import Predicate, TruthTest
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import COMPARISONS, Quantifier

VALUES: list[Any] = [0, 1, 2, 2, 3, 0.5, 2**60, "a", "b", True, None]
ODD: list[Any] = [[0, 3], tamis.Interval(1, 2)]
CONDITIONS = [
    Predicate("b", ">", [1]),
    Predicate("b", "IS NULL", []),
    Predicate("a", "<>", ["a"]),
    Predicate("b", "IN", [1, 2, 3]),
]
NUMBER_OF = {FALSE: False, UNKNOWN: None, TRUE: True}


@pytest.mark.kernels
def test_a_batch_is_decided_as_the_evaluator_does() -> None:
    decided: Counter[bool | None] = Counter()
    for seed in range(12):
        draw = random.Random(seed)
        values = VALUES + ODD * (seed % 3 == 0)

        def events(count: int, draw: random.Random = draw, values: list[Any] = values) -> list[Any]:
            return [flatten({name: draw.choice(values) for name in "ab"}) for _ in range(count)]

        def join(draw: random.Random = draw) -> Quantified | Exists:
            compare = sorted(COMPARISONS)
            if draw.random() < 0.5:
                return Quantified("a", draw.choice(compare), draw.choice(list(Quantifier)), draw.choice("aab"))
            joins = [Join("a", "=", "a"), Join("b", draw.choice(compare), draw.choice("bba"))][: draw.randrange(1, 3)]
            return Exists(joins, [draw.choice(CONDITIONS)] if draw.random() < 0.3 else [])

        def rest(draw: random.Random = draw) -> tamis.Expression:
            one, other = join(), join()
            return draw.choice([one, one, one & other, one | ~other, ~(one & other), TruthTest(one, None) | other])

        retained = Retained(tamis.History(rows=12), block=draw.choice([1, 2, 9]))
        earlier, batch = events(20), events(12)
        with retained.taking(ListedEvents(earlier)) as intake:
            intake.retain_all()
        with retained.taking(ListedEvents(batch)) as intake:
            firsts, rows = intake.firsts(), np.arange(len(batch))
            assert firsts is not None
            decisions = RowDecisions(retained.window, ListedEvents(batch), firsts, rows, intake.base)
            asked = [rest() for _ in range(12)]
            pairs = np.repeat(rows, len(asked)), np.tile(np.arange(len(asked)), len(rows))
            truths = decisions.truths(asked, pairs[1], pairs[0]).reshape(len(rows), -1).T.tolist()
            for row, event in enumerate(batch):
                before, joins = [*earlier, *batch[:row]][-12:], EventJoins(event, intake.history(row))
                for each, found in zip(asked, truths, strict=True):
                    expected = evaluate_flat(each, event, before)
                    assert joins.truth(each) is expected, (seed, str(each), event, before)
                    if found[row] != OPEN:
                        assert NUMBER_OF[found[row]] is expected, (seed, str(each), event, before)
                        decided[expected] += 1
            intake.retain_all()
    assert min(decided.values()) > 100
