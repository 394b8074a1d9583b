"""Tests of cards run in the simulator of numba-cuda, thread by thread, unless TAMIS_GPU=1 says that there is a card.

The simulator must be chosen before numba-cuda is imported. Only `tamis.gpu` imports it, and no other tests do that.
"""

from __future__ import annotations

import os

import pytest

ON_CARD = os.environ.get("TAMIS_GPU") == "1"
if not ON_CARD:
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"


@pytest.fixture(scope="session")
def on_card() -> bool:
    """Whether there is a card, so that tests can have much data."""
    return ON_CARD


@pytest.fixture(autouse=True, scope="session")
def _has_numba_cuda() -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda has no packages for this system")
