"""Lists of numbers are written alike by Python and by Arrow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tamis.broker.number_lists import numbers_text, read_numbers


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("count", [0, 1, 2, 255, 256, 257, 1000])
def test_an_array_is_written_as_its_numbers(count: int, dtype: npt.DTypeLike) -> None:
    numbers = np.arange(count, dtype=dtype)
    numbers[-1:] = np.iinfo(dtype).max
    assert numbers_text(numbers) == numbers_text(numbers.tolist()) == str(numbers.tolist()).replace(" ", "")
    assert read_numbers(numbers_text(numbers)) == numbers.tolist()


def test_a_part_of_an_array() -> None:
    numbers = np.arange(2000)
    assert read_numbers(numbers_text(numbers[700:1300])) == list(range(700, 1300))
    assert read_numbers(numbers_text(numbers[::3])) == list(range(0, 2000, 3))
