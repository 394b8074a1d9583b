"""Products as events, and conditions on their item specifics as subscriptions (OpIndex 7.1 and 7.5, Ebay).

    product 4711          Brand = serd, Colour = tu, Material = reslauz
    subscription          Brand = 'serd' AND Size = 'co'                  equal
    subscription          Brand IN ('serd', 'ble') AND Size IN ('co')     set

A subscription has from 1 to `subscription_size` attributes, all sizes equally likely. Attribute A is drawn with a probability
proportional to log f(A), where f(A) is the number of products that have it. The values are drawn as often as products have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from tamis.errors import FileError, WorkloadError
from tamis.kernels.numbers import F64s, I64s
from tamis.language.operators import Operator
from tamis.workload.arrays import EventArrays, PredicateArrays, offsets
from tamis.workload.domain import TableDomain
from tamis.workload.draw import EVENT_BLOCK, SUBSCRIPTION_BLOCK, Stream
from tamis.workload.implied import CODE, MAX_SET
from tamis.workload.parameters import Config
from tamis.workload.planting import PlantedDraws, first_pairs, padded
from tamis.workload.product_table import made_products, read_products
from tamis.workload.text.lines import first_places

ProductPredicates = Literal["equal", "set"]


@dataclass(frozen=True, kw_only=True)
class ProductsConfig(Config):
    """The parameters of a workload of products. Two equal configs with equal files give the same workload.

    Attributes
    ----------
    style : "products"
    subscriptions : int
        The number of subscriptions. A smaller workload is the beginning of a larger one with equal other parameters.
    conditions : "equal" or "set"
        The operator of all predicates: ``=``, or ``IN`` with 2 to 6 values, fewer if these repeat.
    subscription_size : int
        The largest number of predicates. Sizes are uniform from 1 to this number.
    products_file : path or None
        A CSV file in UTF-8 with the columns product, attribute and value. None: made products.
    products : int
        The number of made products, if there is no file. OpIndex has 296,846.
    planted_share : float
        The share of planted events, which are spread evenly: products with values that satisfy a subscription. The first one
        satisfies subscription 0, the next subscription 1, and so on.
    events, other_events : int
        The numbers of events that `write` writes. Other events are products as they are. None for `events`: 1,000.
    seed : int
        Decides which subscriptions and products are made, or the order of the products of a file.

    Raises
    ------
    WorkloadError
        If a parameter has the wrong type or is outside its range.
    FileError
        By `generate`: if the file cannot be read, or has too few attributes that several products have.
    """

    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"style": ("products",), "conditions": get_args(ProductPredicates)}
    whole: ClassVar[Mapping[str, tuple[int, int]]] = {"subscription_size": (1, 1_000), "products": (100, 1_000_000)}
    real: ClassVar[Mapping[str, tuple[float, float]]] = {"planted_share": (0, 1)}
    files: ClassVar[tuple[str, ...]] = ("products_file",)

    style: Literal["products"] = "products"
    subscriptions: int = 1_000_000
    conditions: ProductPredicates = "equal"
    subscription_size: int = 12
    products_file: str | None = None
    products: int = 50_000
    planted_share: float = 1.0


class ProductDraws(PlantedDraws):
    """Draws the subscriptions and events of a config."""

    def __init__(self, config: ProductsConfig) -> None:
        self._config = config
        if config.products_file is None:
            self._table = made_products(config.products, config.seed)
        else:
            self._table = read_products(config.products_file, "products_file")
        super().__init__(config, max(int(np.diff(self._table.ptr).max()), config.subscription_size))
        frequency = np.bincount(self._table.attribute, minlength=len(self._table.names))
        weights = np.log(np.maximum(frequency, 1))
        self._cumulative = np.cumsum(weights)
        self._check(int(np.count_nonzero(weights)))
        # The values of each attribute, as often as products have them.
        self._first_value = offsets(frequency)
        self._values = self._table.value[np.argsort(self._table.attribute, kind="stable")]
        order = self._rng(Stream.EVENTS, 0).permutation(len(self._table.ptr) - 1)
        self._order = {Stream.EVENTS: order, Stream.OTHER_EVENTS: order[::-1]}

    def domain(self) -> TableDomain:
        """The attributes and values."""
        return TableDomain(self._table.names, self._table.values)

    def _check(self, usable: int) -> None:
        size = self._config.subscription_size
        if usable < size:
            message = (
                f"subscription_size is {size}, but only {usable} attributes belong to more than one product. "
                "Hint: choose a smaller subscription_size, or more products"
            )
            if self._config.products_file is None:
                raise WorkloadError(message)
            raise FileError(message, path=self._config.products_file)

    def _subscription_block(self, rng: np.random.Generator, first: int) -> PredicateArrays:
        largest = self._config.subscription_size
        sizes = rng.integers(1, largest, SUBSCRIPTION_BLOCK, endpoint=True)
        drawn = draw_distinct_by(rng, self._cumulative, SUBSCRIPTION_BLOCK, largest)
        attribute = drawn[np.arange(largest) < sizes[:, None]]
        members = np.ones(len(attribute), np.int64)
        operator = Operator.EQ
        if self._config.conditions == "set":
            operator, members = Operator.IN, rng.integers(2, MAX_SET, len(attribute), endpoint=True)
        owner = np.repeat(np.arange(len(attribute)), members)
        literals = self._value_of(rng, attribute[owner])
        kept = first_places(owner, literals, len(self._table.values))
        return PredicateArrays(
            ptr=offsets(sizes),
            attribute=attribute.astype(np.int32),
            operator=np.full(len(attribute), CODE[operator], np.uint8),
            literal_ptr=offsets(np.bincount(owner[kept], minlength=len(attribute))),
            literals=literals[kept],
            prefix=np.zeros(len(attribute), np.uint8),
        )

    def _value_of(self, rng: np.random.Generator, attribute: I64s) -> I64s:
        """A value for each attribute: that of one of the products that have it."""
        start, stop = self._first_value[attribute], self._first_value[attribute + 1]
        return self._values[start + (rng.random(len(attribute)) * (stop - start)).astype(np.int64)]

    def _drawn_events(self, stream: Stream, block: int) -> EventArrays:
        order = self._order[stream]
        rows = order[(block * EVENT_BLOCK + np.arange(EVENT_BLOCK)) % len(order)]
        return padded(first_pairs(*self._table.specifics(rows), EVENT_BLOCK), self._event_size)


def draw_distinct_by(rng: np.random.Generator, cumulative: F64s, rows: int, size: int) -> I64s:
    """Rows of `size` different numbers, drawn by their cumulative weights. A number that repeats in a row is drawn again."""
    drawn = np.full((rows, size), -1, np.int64)
    again = np.ones(drawn.shape, np.bool_)
    while again.any():
        chances = rng.random(int(np.count_nonzero(again))) * cumulative[-1]
        drawn[again] = np.searchsorted(cumulative, chances, side="right")
        owner = np.nonzero(drawn >= 0)[0]
        places = first_places(owner, drawn.ravel(), len(cumulative))
        again = np.ones(drawn.shape, np.bool_)
        again.ravel()[places] = False
    return drawn
