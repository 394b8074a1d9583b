"""The papers' tables as data: every value is a config that can be generated, and wrong names say what there is."""

from __future__ import annotations

import pytest

from tamis.workload import TABLES, Column, WorkloadConfig, WorkloadError, column, preset
from tests.markdown import pages

COLUMNS = [each for columns in TABLES.values() for each in columns.values()]


def test_the_tables_of_three_papers() -> None:
    assert {paper: list(columns) for paper, columns in TABLES.items()} == {
        "be-tree": [
            "subscriptions", "dimensions", "cardinality", "range-share", "dimension-selectivity", "sizes",
            "equality-ratio", "match-probability", "authors", "titles", "match-authors", "match-titles",
        ],
        "ps-tree": [
            "subscriptions", "alpha", "dimensions", "dimensions-and-subscriptions", "cardinality", "subscription-size",
            "event-size", "match-probability", "equality-ratio",
        ],
        "op-index": [
            "subscriptions", "dimensions", "subscription-size", "event-size", "equality-ratio", "cardinality", "alpha",
        ],
    }  # fmt: skip


@pytest.mark.parametrize("each", COLUMNS, ids=lambda each: f"{each.paper}-{each.name}")
def test_every_value_is_a_config(each: Column) -> None:
    assert column(each.paper, each.name) is each
    assert list(each.values) == sorted(each.values)
    assert len(set(each.values)) == len(each.values) > 3
    for value in each.values:
        config = each.config(value)
        varied = tuple(getattr(config, name) for name in each.parameters)
        assert varied == (value if isinstance(value, tuple) else (value,))
        assert each.default.to_json() == each.config(each.default_value).to_json()


def test_the_page_lists_all_columns() -> None:
    (page,) = [page for page in pages() if page.name == "docs/cli.md"]
    listed = {row["paper"]: row["columns"] for row in page.rows("paper", "columns")}
    assert listed == {paper: ", ".join(f"`{name}`" for name in columns) for paper, columns in TABLES.items()}


def test_the_columns_of_be_tree() -> None:
    sizes = {
        name: each.default.subscriptions for name, each in TABLES["be-tree"].items() if each.default.style == "be-gen"
    }
    assert sizes == {
        "subscriptions": 1_000_000,
        "dimensions": 1_000_000,
        "cardinality": 100_000,
        "range-share": 100_000,
        "dimension-selectivity": 100_000,
        "sizes": 100_000,
        "equality-ratio": 1_000_000,
        "match-probability": 1_000_000,
    }
    assert column("be-tree", "dimensions").default == preset("be-tree")
    assert column("be-tree", "sizes").values[-1] == (66, 81)
    selectivity = column("be-tree", "dimension-selectivity").config(10)
    assert isinstance(selectivity, WorkloadConfig)
    assert (selectivity.cardinality, selectivity.operator_class, selectivity.equality_ratio) == (10, "min", 1)


def test_the_dense_and_the_sparse_column_of_ps_tree() -> None:
    cardinality = column("ps-tree", "cardinality")
    assert cardinality.config(100) == preset("ps-tree-dense")
    assert cardinality.config(3, dimensions=30_000) == preset("ps-tree-sparse", cardinality=3)
    configs = [
        column("ps-tree", "dimensions-and-subscriptions").config(value) for value in ((100, 3_333), (300, 10_000))
    ]
    assert [config.subscriptions for config in configs] == [3_333, 10_000]


def test_wrong_names() -> None:
    with pytest.raises(
        WorkloadError, match=r"no table of 'betree'; did you mean 'be-tree'.*; there are: be-tree, ps-tree"
    ):
        column("betree", "alpha")
    with pytest.raises(
        WorkloadError, match=r"of ps-tree has no column 'alfa'; did you mean 'alpha'.*the columns are: subs"
    ):
        column("ps-tree", "alfa")


def test_wrong_values() -> None:
    with pytest.raises(WorkloadError, match="varies subscription_size, event_size; one value for each, not 5"):
        column("be-tree", "sizes").config(5)
    with pytest.raises(WorkloadError, match="no parameter 'dimension'; did you mean 'dimensions'"):
        column("ps-tree", "alpha").config(1, dimension=3)
    with pytest.raises(WorkloadError, match="alpha must be from 0"):
        column("ps-tree", "alpha").config(-1)
