"""The papers' tables of workloads as data: BE-Tree's table 3, PS-Tree's table 1, OpIndex's table 3.

A column varies one parameter, or two together, and leaves the others at their defaults. PS-Tree and OpIndex print the values in
rows; a row is a column here. BE-Tree prints only the first and the last value; the values between them are ours. The defaults
that the papers do not print are those of the presets.

Attributes are drawn uniformly. For figures with Zipf's law change `alpha` in `Column.config`, for sparse workloads of PS-Tree
`dimensions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from tamis.errors import WorkloadError, did_you_mean
from tamis.workload.config import WorkloadConfig
from tamis.workload.presets import preset
from tamis.workload.styles import AnyConfig

Value: TypeAlias = float | str | tuple[float | str, ...]
"""A value on the x-axis of a figure. If several parameters vary together, a tuple with a value for each of them."""


@dataclass(frozen=True)
class Column:
    """A column of a paper's table of workloads.

    Attributes
    ----------
    paper, name : str
        The names that `column` takes.
    parameters : tuple of str
        The parameters that vary: usually one.
    values : tuple
        The values of the paper in ascending order: numbers, or tuples of them if several parameters vary.
    default : config
        The config with the defaults of the column.
    """

    paper: str
    name: str
    parameters: tuple[str, ...]
    values: tuple[Value, ...]
    default: AnyConfig

    def config(self, value: Value, **changes: Any) -> AnyConfig:
        """The config of one value, with some other parameters changed.

        >>> column("be-tree", "sizes").config((14, 26), subscriptions=1_000).event_size
        26
        """
        values = value if isinstance(value, tuple) else (value,)
        if len(values) != len(self.parameters):
            names = ", ".join(self.parameters)
            raise WorkloadError(f"column {self.name} of {self.paper} varies {names}; one value for each, not {value!r}")
        varied = dict(zip(self.parameters, values, strict=True))
        return replace(self.default, **self.default.known({**varied, **changes}))

    @property
    def default_value(self) -> Value:
        """The value of the default config. It need not be one of `values`."""
        values = tuple(getattr(self.default, name) for name in self.parameters)
        return values if len(values) > 1 else values[0]


def column(paper: str, name: str) -> Column:
    """A column of a paper's table.

    >>> column("be-tree", "dimensions").values
    (50, 100, 200, 400, 800, 1400)
    """
    if paper not in TABLES:
        raise WorkloadError(f"no table of {paper!r}{did_you_mean(paper, list(TABLES))}; there are: {', '.join(TABLES)}")
    columns = TABLES[paper]
    if name not in columns:
        known = list(columns)
        raise WorkloadError(
            f"the table of {paper} has no column {name!r}{did_you_mean(name, known)}; the columns are: {', '.join(known)}"
        )
    return columns[name]


_HUNDRED_THOUSAND = 100_000
_MILLION = 1_000_000


def _be_tree() -> list[Column]:
    default = preset("be-tree")
    smaller = replace(default, subscriptions=_HUNDRED_THOUSAND)
    # The paper gives no match probability for this column. Ours is the default.
    equalities = replace(smaller, equality_ratio=1.0, operator_class="min", cardinality=2)
    probabilities = (0.0001, 0.001, 0.01, 0.03, 0.05, 0.09)
    return [
        _column("be-tree", "subscriptions", tuple(range(100_000, 1_000_001, 100_000)), default),
        _column("be-tree", "dimensions", (50, 100, 200, 400, 800, 1400), default),
        _column("be-tree", "cardinality", (48, 150, 600, 6_000, 24_000, 150_000), smaller),
        _column("be-tree", "range_share", (0.06, 0.12, 0.25, 0.37, 0.5), smaller),
        Column("be-tree", "dimension-selectivity", ("cardinality",), (2, 3, 4, 5, 6, 8, 10), equalities),
        Column(
            "be-tree",
            "sizes",
            ("subscription_size", "event_size"),
            ((5, 13), (7, 15), (14, 26), (25, 38), (40, 54), (66, 81)),
            smaller,
        ),
        _column("be-tree", "equality_ratio", (0.2, 0.4, 0.6, 0.8, 1.0), default),
        _column("be-tree", "match_probability", probabilities, default),
        Column(
            "be-tree", "authors", ("subscriptions",), (100_000, 200_000, 400_000, 760_000), preset("be-tree-authors")
        ),
        Column("be-tree", "titles", ("subscriptions",), (50_000, 100_000, 150_000, 250_000), preset("be-tree-titles")),
        Column("be-tree", "match-authors", ("match_probability",), probabilities, preset("be-tree-match-authors")),
        Column("be-tree", "match-titles", ("match_probability",), probabilities, preset("be-tree-match-titles")),
    ]


def _ps_tree() -> list[Column]:
    default = preset("ps-tree-dense")
    return [
        _column(
            "ps-tree", "subscriptions", (300_000, _MILLION, 3_000_000, 10_000_000, 30_000_000, 100_000_000), default
        ),
        _column("ps-tree", "alpha", (0, 1, 2, 3, 4, 5), default),
        _column("ps-tree", "dimensions", (100, 300, 1_000, 3_000, 10_000, 30_000), default),
        # Figure 8b keeps the number of subscriptions per dimension. The paper does not give it. With ours, 30,000 dimensions
        # have the default number of subscriptions.
        Column(
            "ps-tree",
            "dimensions-and-subscriptions",
            ("dimensions", "subscriptions"),
            tuple((count, round(count * _MILLION / 30_000)) for count in (100, 300, 1_000, 3_000, 10_000, 30_000)),
            default,
        ),
        _column("ps-tree", "cardinality", (3, 10, 30, 100, 300, 1_000), default),
        _column("ps-tree", "subscription_size", (5, 10, 15, 20, 25, 30), default),
        _column("ps-tree", "event_size", (30, 42, 54, 66, 78, 90), default),
        _column("ps-tree", "match_probability", (0.001, 0.005, 0.01, 0.05, 0.1, 0.5), default),
        _column("ps-tree", "equality_ratio", (0, 0.2, 0.4, 0.6, 0.8, 1.0), default),
    ]


def _op_index() -> list[Column]:
    default = preset("op-index")
    return [
        _column("op-index", "subscriptions", (_MILLION, 10_000_000, 20_000_000, 30_000_000, 40_000_000), default),
        _column("op-index", "dimensions", (20_000, 30_000, 40_000, 50_000, 60_000), default),
        _column("op-index", "subscription_size", (4, 8, 12, 16, 20), default),
        _column("op-index", "event_size", (20, 40, 60, 80, 100, 120), default),
        _column("op-index", "equality_ratio", (0.2, 0.4, 0.6, 0.8, 1.0), default),
        _column("op-index", "cardinality", (50, 200, 800, 3_200, 12_800), default),
        _column("op-index", "alpha", (0, 0.2, 0.4, 0.6, 0.8, 1.0), default),
    ]


def _column(paper: str, parameter: str, values: tuple[float, ...], default: WorkloadConfig) -> Column:
    """A column that is named after the only parameter that varies."""
    return Column(paper, parameter.replace("_", "-"), (parameter,), values, default)


TABLES: Mapping[str, Mapping[str, Column]] = MappingProxyType(
    {
        columns[0].paper: MappingProxyType({each.name: each for each in columns})
        for columns in (_be_tree(), _ps_tree(), _op_index())
    }
)
"""Paper -> name of a column -> the column."""
