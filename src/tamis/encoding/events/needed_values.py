"""The values that events need, column by column, if attributes have premises. See `encoding.dimensions.premises`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import Column, Rows
from tamis.encoding.dimensions.premises import Premise, Premises
from tamis.kernels.numbers import Bools
from tamis.language.values import Kind


class Needed:
    """Which events need an attribute."""

    def __init__(self, columns: Sequence[Column], premises: Premises, count: int) -> None:
        self._premises = premises
        self._count = count
        self._rows: dict[Premise, list[Rows]] = {}
        """The events that have the string of each premise."""
        self._masks: dict[frozenset[Premise], Bools] = {}
        for column in columns:
            if column.kind is Kind.STRING and column.attribute in premises.texts:
                self._note(column)

    def _note(self, column: Column) -> None:
        encoded = pc.dictionary_encode(column.values)
        codes = encoded.indices.to_numpy()
        wanted = pa.array(sorted(self._premises.texts[column.attribute]), encoded.dictionary.type)
        for place, code in enumerate(pc.index_in(wanted, encoded.dictionary).to_pylist()):
            if code is not None:
                premise = column.attribute, wanted[place].as_py()
                self._rows.setdefault(premise, []).append(column.rows[codes == code])

    def part(self, column: Column) -> Column:
        """The values of a column that events need; the column itself if that is all of them."""
        premises = self._premises.of.get(column.attribute)
        if premises is None:
            return column
        if premises not in self._masks:
            mask = self._masks[premises] = np.zeros(self._count, np.bool_)
            for premise in premises:
                for rows in self._rows.get(premise, ()):
                    mask[rows] = True
        kept = self._masks[premises][column.rows]
        if kept.all():
            return column
        values = column.values[kept] if isinstance(column.values, np.ndarray) else column.values.filter(pa.array(kept))
        return column._replace(rows=column.rows[kept], values=values)
