"""How events find a subscription: access paths in words."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.intervals import EVERYTHING
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.phrases import phrase
from tamis.engine.layout.access_path import Access
from tamis.engine.layout.plan import ALWAYS, CELLS, LOWER, PAIRS, POINTS, PRESENCE, UPPER
from tamis.matcher.history_plan import JoinPlan
from tamis.matcher.ids import Id

_WAYS = {
    CELLS: "value",
    POINTS: "value",
    UPPER: "bound",
    LOWER: "bound",
    PRESENCE: "presence",
    ALWAYS: "always",
    PAIRS: "pair",
}


@dataclass(frozen=True, slots=True)
class ClausePlan:
    """How events find one clause of a subscription. Probabilities are estimates from when it was planned."""

    way: str
    """``value``: by the event's value; ``pair``: by two values at once; ``bound``: in a list sorted by bounds; ``presence``: by
    having the attribute at all; ``always``: every event looks at the clause."""
    access: str | None
    lists: int
    entries: int
    """Number of entries in these lists, including the entries of other subscriptions."""
    probability: float
    """Probability that an event looks at the clause."""
    filter: str | None
    filter_probability: float
    second_filter: str | None
    """A second filter, used where many entries pass the first."""
    rest: tuple[str, ...]
    """The predicates that are checked last."""
    is_necessary: bool
    """The clause is necessary but not sufficient: events that satisfy it need the whole expression evaluated."""
    cost: float
    """Expected nanoseconds per event."""
    reason: str | None = None
    """Why every event looks at the clause."""

    def __str__(self) -> str:
        parts = [self._found()]
        if self.filter is not None:
            second = "" if self.second_filter is None else f" and by {self.second_filter}"
            parts.append(f"filtered by {self.filter} ({_percent(self.filter_probability)}){second}")
        if self.rest:
            parts.append(f"then {_counted(len(self.rest), 'more predicate')}")
        if self.is_necessary:
            parts.append("then the whole expression, of which this is a necessary condition")
        return f"{', '.join(parts)}; expected cost {_number(self.cost)} ns per event"

    def _found(self) -> str:
        if self.way == "always":
            size = _counted(self.entries, "entry", "entries")
            return f"in the list that every event goes through ({size}), since {self.reason}"
        met = f"met by {_percent(self.probability)} of events"
        size = _counted(self.entries, "entry", "entries")
        if self.way == "bound":
            return f"found by {self.access} (in a list of {size} sorted by bound, {met})"
        if self.way == "presence":
            return f"found by {self.access} (a list of {size}, {met})"
        lists = "a list" if self.lists == 1 else f"{self.lists:,} lists"
        return f"found by {self.access} ({lists} of {size}, {met})"


@dataclass(frozen=True, slots=True)
class Plan:
    """How events find a subscription. `str` describes it in words, `to_dict` returns it for JSON."""

    subscription: Id
    clauses: tuple[ClausePlan, ...]
    note: str | None = None
    """Why there are no clauses, if there are none."""
    history: JoinPlan | None = None
    """How joins with earlier events are decided, if there are some."""

    @property
    def cost(self) -> float | None:
        """Expected nanoseconds per event; None if the cost is not known."""
        return sum(clause.cost for clause in self.clauses) if self.note is None else None

    def to_dict(self) -> dict[str, Any]:
        plan = asdict(self) | {"cost": self.cost}
        del plan["history"]
        return plan if self.history is None else {**plan, "history": self.history.to_dict()}

    def __str__(self) -> str:
        parts = [self.note] if self.note is not None else list(map(str, self.clauses))
        return "\n".join(parts if self.history is None else [*parts, str(self.history)])


WAITS = "not indexed yet: events find the latest subscriptions by a value, or look at them one by one"
NEVER = "not indexed: no event can satisfy it"


def plan_of(
    identifier: Id, found: Sequence[tuple[Access, bool]], waits: bool, dimensions: Dimensions, scalars: Container[str]
) -> Plan:
    """The access paths of a subscription in words. `waits`: some of its rows are in a delta."""

    def said(leaf: Leaf) -> str:
        dimension = dimensions[leaf.dimension]
        return phrase(dimension, leaf.mode, leaf.intervals, scalar=dimension.attribute in scalars)

    if waits or not found:
        return Plan(identifier, (), WAITS if waits else NEVER)
    return Plan(identifier, tuple(_clause(access, judged, said) for access, judged in found))


def _clause(path: Access, judged: bool, said: Callable[[Leaf], str]) -> ClausePlan:
    access, rest = path.access, path.rest
    if access is not None and path.way == PRESENCE and access.intervals != EVERYTHING:
        # The list says only that there is a value.
        rest = (access, *rest) if access != path.filter else rest
        access = Leaf(access.dimension, Mode.SOME, EVERYTHING)
    return ClausePlan(
        _WAYS[path.way],
        None if access is None else said(access) if path.other is None else f"{said(access)} and {said(path.other)}",
        path.lists,
        path.entries,
        path.reach,
        None if path.filter is None else said(path.filter),
        path.passing,
        None if path.second is None else said(path.second),
        tuple(said(leaf) for leaf in rest),
        judged,
        path.cost,
        _reason(path) if path.way == ALWAYS else None,
    )


def _reason(path: Access) -> str:
    """Why every event looks at a clause."""
    leaves = [leaf for leaf in (*path.rest, path.filter, path.second) if leaf is not None]
    if not leaves:
        return "it asks for nothing"
    if all(leaf.mode is Mode.ABSENT for leaf in leaves):
        return "it asks only for attributes to be missing"
    return "none of its predicates is rare enough to be worth a list"


def _percent(share: float) -> str:
    percent = 100 * share
    if percent < 0.0001:
        return "less than 0.0001 %"
    return f"{percent:.0f} %" if percent >= 9.95 else f"{_number(percent)} %"


def _number(number: float) -> str:
    """A positive number with two significant digits, without an exponent."""
    if number >= 99.5:
        return f"{number:,.0f}"
    text = f"{number:.2g}"
    return f"{number:.7f}".rstrip("0").rstrip(".") if "e" in text else text


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
