"""What all tests share: how much is tried, where kernels are cached, one Spark session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# One folder for all processes and runs, so that each kernel is compiled once. Set before a kernel is imported.
CACHE = Path(__file__).parent.parent / ".cache"
os.environ["NUMBA_CACHE_DIR"] = str(CACHE / "numba")

SOAK_FACTOR = 20
"""How many times more cases a soak run tries."""

SEEDS = 3
"""How many values of a parameter `seed` are tried; a soak run tries all of them."""

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT") == "1"
UNCOMPILED_PART = 8
"""How many times fewer cases uncompiled kernels run."""

# The same examples on every run and machine: a failure is always one of the change at hand. No deadline and no
# complaint about slow examples: the first one may have to compile a kernel.
settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
# New examples on every run, to find what the fixed ones miss.
settings.register_profile(
    "soak",
    parent=settings.get_profile("default"),
    derandomize=False,
    max_examples=2000,
    print_blob=True,
)
settings.register_profile("uncompiled", parent=settings.get_profile("default"), max_examples=12)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="try many more cases, and new ones on every run")
    parser.addoption("--long", action="store_true", help="run tests that take minutes, too")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("soak" if config.getoption("--soak") else "uncompiled" if UNCOMPILED else "default")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test of kernels when these run uncompiled: importing all files takes longer than many tests."""
    if not UNCOMPILED or config.getoption("markexpr") != "kernels" or collection_path.suffix != ".py":
        return None
    return True if "mark.kernels" not in collection_path.read_text(encoding="utf-8") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Say which tests go to one xdist worker, and in which order tests are given out.

    Tests of the shared session go to one worker, so that one JVM serves them. Tests of one index go to one worker, too: two
    would wait for each other while one of them compiles its kernels. What takes longest comes first: tests that start
    a Spark of their own, the shared session, everything else.
    """
    left_out = [item for item in items if _left_out(config, item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("spark") and not item.get_closest_marker("own_spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif family := _family(item):
            item.add_marker(pytest.mark.xdist_group(family))
    items.sort(key=_turn)


def _left_out(config: pytest.Config, item: pytest.Item) -> bool:
    """Long tests, unless they are asked for, and seeds after the first few, unless this is a soak run.

    Uncompiled kernels run with the first seed only: they are a hundred times slower.
    """
    if item.get_closest_marker("long") and not config.getoption("--long"):
        return True
    if item.get_closest_marker("compiled") and UNCOMPILED:
        return True
    seed = _parameters(item).get("seed")
    most = 1 if UNCOMPILED else None if config.getoption("--soak") else SEEDS
    return most is not None and isinstance(seed, int) and seed >= most


def _parameters(item: pytest.Item) -> dict[str, object]:
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker("own_spark"):
        return 0
    return 1 if item.get_closest_marker("spark") else 2


_FAMILIES = {
    **dict.fromkeys(["propagation", "static_clustering", "dynamic_clustering"], "fabret"),
    **dict.fromkeys(["ps_tree_alone", "pst_bloom", "pst_hash"], "ps_tree"),
    **dict.fromkeys(["cluster_index", "interval_index", "hybrid_index", "segment_tree", "interval_tree"], "tatbul"),
    **dict.fromkeys(["op_index,_cnf", "op_index_cnf", "operator_lists"], "op_index"),
}
"""Indexes and files of tests -> whose kernels they share."""


def _family(item: pytest.Item) -> str | None:
    """Whose kernels a test of an index needs, or of the page about one; None for other tests."""
    parameters = _parameters(item)
    page = getattr(parameters.get("page"), "path", None)
    if page is not None and page.parent.name == "indexes":
        index = page.stem
    elif item.path.parent.name == "papers":
        index = parameters.get("name", item.path.stem.removeprefix("test_"))
    else:
        return None
    plain = str(index).replace("-", "_").replace(" ", "_")
    return _FAMILIES.get(plain, plain)


@pytest.fixture(scope="session")
def soak(pytestconfig: pytest.Config) -> bool:
    """Whether this is a long run (``pytest --soak``)."""
    return bool(pytestconfig.getoption("--soak"))


@pytest.fixture(scope="session")
def cases(soak: bool) -> Callable[[int], int]:
    """``cases(n)`` is how many cases a differential test tries: n, many more in a soak run, a few with uncompiled kernels."""
    factor = SOAK_FACTOR if soak else 1
    return lambda count: max(count * factor // (UNCOMPILED_PART if UNCOMPILED else 1), 1)


@pytest.fixture(scope="session")
def java_archive(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.java_options import use_archive

    use_archive(CACHE / "java", tmp_path_factory.mktemp("java"))


@pytest.fixture(autouse=True)
def _quick_java(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("java_archive")


@pytest.fixture(scope="session")
def spark(java_archive: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session, started by the first test that asks for it."""
    # Imported here: without Spark tests, none of pyspark is loaded.
    from tests.spark_session import start_spark

    session = start_spark(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
