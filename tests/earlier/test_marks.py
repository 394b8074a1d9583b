"""Slots with a mark, found among many."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.earlier.marks import marked_places, without_places


@pytest.mark.kernels
@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
def test_slots_with_a_mark_are_found_and_left_out(share: float) -> None:
    draw = np.random.default_rng(1)
    is_marked = draw.random(800) < share
    marks = np.packbits(is_marked, bitorder="little")
    slots = draw.integers(0, 900, 3_000).astype(np.int32)  # Slots from 800 on lie behind the last mark.
    places = marked_places(slots, marks)
    assert places.tolist() == [at for at, slot in enumerate(slots.tolist()) if slot < 800 and is_marked[slot]]
    assert without_places(slots, places).tolist() == np.delete(slots, places).tolist()
    assert without_places(slots[:3], np.array([0, 2])).tolist() == [slots[1]]
    assert marked_places(slots[:0], marks).tolist() == []
