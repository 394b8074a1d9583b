"""Products with item specifics: a table of product, attribute and value, from a CSV file or made.

ptr         0        2              5         product i has the specifics ptr[i] to ptr[i + 1]
attribute   4   0    4   9   2                specific j is about names[attribute[j]] ...
value       17  3    21  5   40               ... and has the value values[value[j]]
"""

from __future__ import annotations

import csv
import io
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tamis.errors import FileError
from tamis.kernels.numbers import I64s
from tamis.workload.arrays import offsets, runs
from tamis.workload.text.files import read_text
from tamis.workload.text.vocabulary import made_words
from tamis.workload.zipf import Popularity

COLUMNS = ("product", "attribute", "value")
"""The columns that a file must have."""

_ATTRIBUTES = 10_204
"""Attributes of made products, as many as OpIndex found on Ebay."""

_ALPHA, _MEAN_SPECIFICS, _MOST_SPECIFICS = 0.8, 10, 25
"""With these, 29 % of made products have the most popular attribute and 18 % the second. OpIndex: 31 % and 17 %."""

_LAW_SEED = 3
"""The numbers of values do not depend on the config: attributes stay the same from seed to seed."""

_WORDS = 50_000
_MOST_VALUES = 5_000


class ProductTable(NamedTuple):
    """Products, as drawn at the top of this module. A product has each attribute at most once."""

    names: list[str]
    values: list[str]
    ptr: I64s
    attribute: I64s
    value: I64s

    def specifics(self, rows: I64s) -> tuple[I64s, I64s, I64s]:
        """The specifics of the products with these places: the place in `rows`, the attribute and the value of each."""
        sizes = np.diff(self.ptr)[rows]
        places = runs(self.ptr[:-1][rows], sizes)
        return np.repeat(np.arange(len(rows)), sizes), self.attribute[places], self.value[places]


@lru_cache(2)
def made_products(count: int, seed: int) -> ProductTable:
    """Made products. Attributes are drawn by Zipf's law, and the values of each attribute too."""
    words = made_words(_WORDS, _LAW_SEED)
    law = np.random.default_rng(np.random.SeedSequence(_LAW_SEED))
    counts = np.clip(law.lognormal(3, 1.2, _ATTRIBUTES), 2, _MOST_VALUES).astype(np.int64)
    starts = offsets(counts)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, 0, 0, 0)))
    sizes = np.clip(1 + rng.poisson(_MEAN_SPECIFICS - 1, count), 1, _MOST_SPECIFICS)
    drawn = Popularity(_ATTRIBUTES, _ALPHA).draw_distinct(rng, count, _MOST_SPECIFICS)
    attribute = drawn[np.arange(_MOST_SPECIFICS) < sizes[:, None]]
    # The logarithm of a rank is uniform: Zipf's law, for any number of values.
    rank = np.floor((counts[attribute] + 1.0) ** rng.random(len(attribute))).astype(np.int64) - 1
    value = starts[attribute] + np.minimum(rank, counts[attribute] - 1)
    used, value = np.unique(value, return_inverse=True)
    # The values of one attribute are neighbours in the vocabulary, so they are different.
    values = [words[place] for place in (used % _WORDS).tolist()]
    return ProductTable(list(words[:_ATTRIBUTES]), values, offsets(sizes), attribute, value.reshape(attribute.shape))


@lru_cache(2)
def read_products(path: str, what: str) -> ProductTable:
    """The products of a CSV file. `what` names the parameter that has its path."""
    reader = csv.reader(io.StringIO(read_text(path, what)))
    names: dict[str, int] = {}
    values: dict[str, int] = {}
    products: dict[str, dict[int, int]] = {}
    try:
        header = [name.strip().lower() for name in next(reader)]
        if missing := [name for name in COLUMNS if name not in header]:
            raise FileError(
                f"the products ({what}) lack the column {', '.join(missing)}. The first line must name the columns "
                f"{', '.join(COLUMNS)}",
                path=path,
                line=1,
            )
        product, attribute, value = (header.index(name) for name in COLUMNS)
        for row in reader:
            if not row:
                continue
            if len(row) != len(header) or not all(row[column].strip() for column in (product, attribute, value)):
                raise FileError(
                    f"a row of products ({what}) must have {len(header)} fields, none of {', '.join(COLUMNS)} empty",
                    path=path,
                    line=reader.line_num,
                )
            number = names.setdefault(row[attribute].strip(), len(names))
            text = values.setdefault(row[value].strip(), len(values))
            products.setdefault(row[product], {}).setdefault(number, text)  # the first value counts
    except csv.Error as error:
        raise FileError(f"the products ({what}) are not CSV: {error}", path=path, line=reader.line_num) from None
    if not products:
        raise FileError(f"the table of products ({what}) has no rows", path=path)
    return ProductTable(
        list(names),
        list(values),
        offsets(np.array([len(specifics) for specifics in products.values()])),
        np.array([number for specifics in products.values() for number in specifics], np.int64),
        np.array([text for specifics in products.values() for text in specifics.values()], np.int64),
    )
