"""How the joins of a subscription are decided, and what the pre-filter says of it: the part of a plan that a history adds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tamis.earlier.join_table import JoinTable, Split
from tamis.earlier.phases import CONSTANTS_FIRST, Figures, Phases, attributes_left, estimated
from tamis.earlier.prefilter import State
from tamis.earlier.retained import Retained
from tamis.engine.sample import ReadEntry
from tamis.language.expression import Expression
from tamis.language.joins import Exists, Quantified

LOOKED_AT = 64
"""Events of the sample, and subscriptions, that estimates are made from."""
ALONE = "decided for every event: no constants precede the joins"
_JOINS_FIRST_IS_DEARER = (
    "joins first has the lower estimate, but the engine would search the same lists after all joins were decided"
)


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """How joins are decided."""

    joins: tuple[str, ...]
    """The joins of the subscription."""
    is_alone: bool
    """Whether some are decided for every event, because no constants precede them."""
    needs: tuple[tuple[str, bool | None], ...]
    """What the subscription needs of the retained events, and whether it is there; None if the pre-filter does not follow it."""
    is_skipped: bool
    """Whether the pre-filter skips the subscription now: no event can satisfy it, as the retained events are."""
    order: str
    """The order of phases."""
    comparisons: dict[str, float]
    """Estimated comparisons for an event, over all subscriptions: without an index, joins first, and constants first."""

    def __str__(self) -> str:
        lines = [f"{'for every event' if self.is_alone else 'then'}: {join}" for join in self.joins]
        for said, holds in self.needs:
            lines.append(f"needs: {said} ({_WORDS[holds]})")
        if self.is_skipped:
            lines.append("skipped now: no event can satisfy it, as the retained events are")
        first, second = self.comparisons["constants first"], self.comparisons["joins first"]
        lines.append(
            f"order: {self.order}; estimated comparisons for an event: {first:,.0f}, joins first {second:,.0f}"
        )
        if second < first:
            lines.append(f"       {_JOINS_FIRST_IS_DEARER}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {
            "joins": list(self.joins),
            "is_alone": self.is_alone,
            "needs": [{"need": said, "holds": holds} for said, holds in self.needs],
            "is_skipped": self.is_skipped,
            "order": self.order,
            "comparisons": self.comparisons,
        }


_WORDS = {True: "holds now", False: "does not hold now", None: "not followed"}


def join_plan(parts: Split, states: Iterable[State], phases: Phases) -> JoinPlan:
    """The plan of a subscription with joins: its parts, what the pre-filter says of each, and the estimates."""
    states = list(states)
    expressions = [each for each in (parts.rest, parts.always) if each is not None]
    joins = [str(node) for each in expressions for node in each.walk() if isinstance(node, Quantified | Exists)]
    comparisons = {
        "no index": phases.no_index,
        "joins first": phases.joins_first,
        CONSTANTS_FIRST: phases.constants_first,
    }
    return JoinPlan(
        tuple(dict.fromkeys(joins)),
        parts.always is not None,
        tuple(dict.fromkeys(each for state in states for each in state.constraints)),
        bool(states) and all(state.is_skipped for state in states),
        CONSTANTS_FIRST,
        comparisons,
    )


def phases_of(
    table: JoinTable,
    retained: Retained,
    expressions: Collection[Expression],
    subscriptions: int,
    matched: int,
    asked: Collection[str],
    sample: Sequence[ReadEntry],
) -> Phases:
    """The estimates of a matcher: for some of its expressions, and a sample of its events.

    `asked` are the attributes that constants ask about, `matched` is the number of events that were matched.
    """
    leaves = sum(not node.operands for each in expressions for node in each.walk())
    present = _present(asked, sample)
    decided = max(table.decided, 1)
    return estimated(
        Figures(
            subscriptions,
            len(retained),
            leaves / max(len(expressions), 1),
            table.joins(),
            table.decided / max(matched, 1),
            present,
            attributes_left(present, subscriptions, len(asked), table.held / decided),
        )
    )


def _present(asked: Collection[str], sample: Sequence[ReadEntry]) -> float:
    """How many of some attributes an event has, on average."""
    counts = [sum(_has(entry, name) for name in asked) for entry in sample]
    return sum(counts) / len(counts) if counts else len(asked)


def _has(entry: ReadEntry, name: str) -> bool:
    if isinstance(entry, tuple):
        table, row = entry
        return (
            name in table.column_names and isinstance(table[name][row], pa.Scalar) and bool(table[name][row].is_valid)
        )
    return bool(entry.get(name))
