"""Products and conditions on their specifics: the laws of the paper, planted products, tables of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.errors import FileError
from tamis.workload import OPERATORS, ProductsConfig, WorkloadError, generate
from tamis.workload.products import draw_distinct_by
from tests.workload.satisfaction import event_dicts, matches

CSV = """product,attribute,value
1,Brand,Acme
1,Size,10
2,Brand,Zeta
2,Colour,"red, dark"
3,Brand,Acme
3,Size,12
3,Size,14
4,Colour,blue
"""


def small(**changes: Any) -> ProductsConfig:
    return ProductsConfig(**{"subscriptions": 300, "products": 5_000, **changes})


def test_the_frequencies_of_the_paper() -> None:
    made = generate(ProductsConfig(planted_share=0))
    events = made.event_arrays(10_000)
    shares = np.sort(np.bincount(events.attribute[events.attribute >= 0]))[::-1] / 10_000
    assert shares[:2] == pytest.approx([0.31, 0.17], abs=0.03)
    assert len(made.attribute_names) == 10_204
    assert (events.attribute >= 0).sum(axis=1).mean() == pytest.approx(10, rel=0.02)


def test_attributes_are_drawn_by_the_logarithm_of_their_frequency() -> None:
    config = ProductsConfig(subscriptions=50_000, planted_share=0)
    made = generate(config)
    arrays = made.arrays()
    sizes = np.bincount(np.diff(arrays.ptr), minlength=13)
    assert sizes[0] == 0
    assert sizes[1:].min() / sizes[1:].max() > 0.85
    events = made.event_arrays(50_000)
    frequency = np.bincount(events.attribute[events.attribute >= 0], minlength=10_204)
    weights = np.log(np.maximum(frequency, 1))
    asked = np.bincount(arrays.attribute, minlength=10_204)
    for group in (frequency > 2_000, (frequency > 100) & (frequency < 2_000), (frequency > 1) & (frequency < 20)):
        expected = weights[group].sum() / weights.sum()
        assert asked[group].sum() / asked.sum() == pytest.approx(expected, rel=0.05)
    assert asked[frequency <= 1].sum() == 0


def test_sets_have_up_to_six_values() -> None:
    arrays = generate(small(subscriptions=10_000, conditions="set")).arrays()
    assert (arrays.operator == OPERATORS.index("in")).all()
    sizes = np.bincount(np.diff(arrays.literal_ptr))
    assert (sizes[0], len(sizes)) == (0, 7)
    assert sizes[2:].min() > 0
    for start, stop in zip(arrays.literal_ptr[:500], arrays.literal_ptr[1:501], strict=True):
        assert len(set(arrays.literals[start:stop].tolist())) == stop - start


@pytest.mark.parametrize("conditions", ["equal", "set"])
def test_planted_products_match(conditions: Any) -> None:
    made = generate(small(conditions=conditions))
    matcher = tamis.Matcher()
    matcher.add_table(made.subscriptions())
    found = matcher.match_batch(made.events(310)).to_pylist()
    assert {(row, row % 300) for row in range(310)} <= {(match["event"], match["subscription"]) for match in found}
    rows = made.subscriptions()["predicates"].to_pylist()
    assert all(matches(rows[row], event) for row, event in enumerate(event_dicts(made.events(40))))


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "products.csv").write_text(f"{CSV}\n", encoding="utf-8")
    config = ProductsConfig(
        subscriptions=500, subscription_size=2, planted_share=0, products_file=str(tmp_path / "products.csv")
    )
    made = generate(config)
    assert made.attribute_names == ["Brand", "Size", "Colour"]
    products = sorted(event_dicts(made.events(4)), key=str)
    assert products == [
        {"Brand": "Acme", "Size": "10"},
        {"Brand": "Acme", "Size": "12"},
        {"Brand": "Zeta", "Colour": "red, dark"},
        {"Colour": "blue"},
    ]
    assert event_dicts(made.other_events(4)) == event_dicts(made.events(4))[::-1]
    values = {
        (each["attribute"], each["values"][0]) for row in made.subscriptions()["predicates"].to_pylist() for each in row
    }
    assert values == {(name, value) for product in products for name, value in product.items()}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"cannot read the text \(products_file\): No such file"),
        ("", r"the text \(products_file\) is empty"),
        (
            "product,name\n",
            r":1: the products \(products_file\) lack the column attribute, value. The first line must name",
        ),
        ("product,attribute,value\n", r"table of products \(products_file\) has no rows"),
        ("product,attribute,value\n1,Brand\n", r":2: a row of products .* must have 3 fields, none of"),
        ("product,attribute,value\n1,Brand,x\n2,,x\n", r":3: a row of products .* none of .* empty"),
        (CSV, r"subscription_size is 12, but only 3 attributes belong to more than one product"),
        (CSV.replace("Acme", "\xff"), "must be UTF-8, but byte 32 is not"),
    ],
)
def test_bad_files(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "products.csv"
    if content is not None:
        path.write_text(content, encoding="latin-1")
    with pytest.raises(FileError, match=message):
        generate(ProductsConfig(products_file=str(path)))


def test_rows_of_distinct_numbers_by_weight() -> None:
    weights = np.array([0.0, 4.0, 1.0, 2.0, 1.0])
    drawn = draw_distinct_by(np.random.default_rng(1), np.cumsum(weights), 20_000, 3)
    assert all(len(set(row)) == 3 for row in drawn.tolist())
    first = np.bincount(drawn[:, 0], minlength=5) / 20_000
    assert first == pytest.approx(weights / 8, abs=0.015)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"conditions": "like"}, "conditions must be one of equal, set"),
        ({"subscription_size": 0}, "subscription_size must be from 1"),
        ({"products": 5}, "products must be from 100"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        ProductsConfig(**parameters)


def test_too_few_products_for_the_size() -> None:
    with pytest.raises(WorkloadError, match=r"subscription_size is 900, but only .* belong to more than one product"):
        generate(ProductsConfig(products=100, subscription_size=900))
