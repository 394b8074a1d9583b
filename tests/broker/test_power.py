"""The process dies, or the power goes, before any write or sync. What was acknowledged is there after it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from tamis.broker.tables import Synchronous
from tests.broker import faults as fault
from tests.broker.faults import Faults, Method
from tests.broker.model import Model
from tests.broker.sampling import spread
from tests.broker.script import SCRIPT, Opening, at_time, expected, shown, stored_events

pytestmark = pytest.mark.skipif(not fault.available(), reason=fault.REASON)


@pytest.fixture
def faults() -> Iterator[Faults]:
    # The disk need not be waited for: `Disk` knows what would be on it.
    with Faults(skips_sync=True) as installed:
        yield installed


Files = dict[str, bytes]
"""The content of the files of a folder, by name."""


def files_of(folder: Path) -> Files:
    """What a process that is killed now leaves. The background thread may rename or delete a cache meanwhile."""
    files = {}
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            files[path.name] = path.read_bytes()
    return files


class Disk:
    """What is on the disk: of each file, its content at the last sync. Files are there as soon as they are made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._synced: dict[str, bytes] = {}

    def sync(self, method: Method, name: str) -> None:
        if method == "sync":
            self._synced[name] = Path(name).read_bytes()

    def files(self) -> Files:
        """What a power cut leaves. Shared memory is gone."""
        synced = dict(self._synced)  # All files of one moment: a thread in the background writes, too.
        paths = [path for path in self._folder.iterdir() if not path.name.endswith("-shm")]
        return {path.name: synced.get(str(path), b"") for path in paths}


def write_files(folder: Path, files: Files) -> None:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def states_left(
    opening: Opening, faults: Faults, *, is_power: bool, soak: bool
) -> Iterator[tuple[str, Opening, tuple[Model, Model]]]:
    """The script with a crash before each write, sync and truncate, and after each call. A short run tries some of them.

    Yields the name of the call, the folder that the crash leaves, and the models before and after the call.
    """
    disk, random = Disk(opening.path), Random(27)
    crashes: list[Files] = []

    def crash(method: Method, name: str) -> None:
        crashes.append(disk.files() if is_power else files_of(opening.path))

    model = Model()
    faults.after = disk.sync
    broker = opening.broker()
    for step in SCRIPT:
        opening.now = step.at
        before = at_time(model, step.at)
        faults.before = crash
        step.broker(broker)
        crash("write", "")  # After the call.
        faults.before = None
        model = step.applied(before)
        for files in crashes if soak else [*spread(crashes[:-1], 3, random), crashes[-1]]:
            left = opening.elsewhere()
            write_files(left.path, files)
            yield step.name, left, (model if files is crashes[-1] else before, model)
            shutil.rmtree(left.path)
        crashes.clear()
    broker.close()


def is_one_of(left: Opening, models: tuple[Model, ...]) -> bool:
    # Faults are not paused: `Disk` must see what the first broker writes in the background meanwhile.
    with left.broker() as broker:
        seen = shown(broker)
        events = stored_events(left.path)
    assert events == list(range(1, len(events) + 1))
    return seen in [expected(model) for model in models if len(model.events) == len(events)]


def test_a_process_that_dies_leaves_the_state_before_or_after_the_call(
    tmp_path: Path, faults: Faults, soak: bool
) -> None:
    for name, left, models in states_left(Opening(tmp_path / "broker"), faults, is_power=False, soak=soak):
        assert is_one_of(left, models), name


def test_a_power_cut_leaves_the_state_before_or_after_the_call(tmp_path: Path, faults: Faults, soak: bool) -> None:
    for name, left, models in states_left(Opening(tmp_path / "broker"), faults, is_power=True, soak=soak):
        assert is_one_of(left, models), name


@pytest.mark.parametrize("synchronous", ["normal", "off"])
def test_the_weaker_settings_lose_calls_at_a_power_cut(
    tmp_path: Path, faults: Faults, synchronous: Synchronous
) -> None:
    """The page promises no more, and this shows that the test above can fail."""
    left = Opening(tmp_path / "left")
    opening, disk = Opening(tmp_path / "broker", synchronous), Disk(tmp_path / "broker")
    opening.log_pages = 1000
    faults.after = disk.sync
    with opening.broker() as broker:
        broker.publish({"price": 1})
        write_files(left.path, disk.files())
    with faults.paused(), left.broker():
        assert stored_events(left.path) == []
