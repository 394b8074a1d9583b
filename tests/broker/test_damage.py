"""Damage of any file, from sectors to single bits: the right answers, or an error that says what to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import tamis
from tamis.broker import checking
from tamis.broker.folder import Folder
from tamis.errors import BrokerError
from tests.broker import faults as fault
from tests.broker.model import Model
from tests.broker.script import JOINED, PROBES, QUIET, SCRIPT, Opening, Step, at_time, expected, shown

TABLES = "broker.sqlite"
SECTOR = 512
"""Bytes that a disk writes together."""

Damage = Callable[[bytearray, int, Random], None]
"""Damages the bytes of a file at a place."""


def zeros(content: bytearray, place: int, random: Random) -> None:
    content[place : place + SECTOR] = bytes(len(content[place : place + SECTOR]))


def noise(content: bytearray, place: int, random: Random) -> None:
    content[place : place + SECTOR] = random.randbytes(len(content[place : place + SECTOR]))


def flip(content: bytearray, place: int, random: Random) -> None:
    """Change one bit of the sector."""
    at = random.randrange(place, min(place + SECTOR, len(content)))
    content[at] ^= 1 << random.randrange(8)


def end(content: bytearray, place: int, random: Random) -> None:
    del content[place:]


DAMAGES: list[Damage] = [zeros, noise, flip, end]


class Ground(NamedTuple):
    """A closed folder in which a script has run, and the answers of its broker."""

    opening: Opening
    answers: Any

    def copied(self, path: Path) -> Opening:
        shutil.copytree(self.opening.path, path)
        other = Opening(path)
        other.now = self.opening.now
        return other


def ground(path: Path, steps: list[Step], history: tamis.History | None) -> Ground:
    opening = Opening(path)
    opening.history = history
    with opening.broker() as broker:
        for step in steps:
            opening.now = step.at
            step.broker(broker)
        broker.publish({"price": 4}, key="last")
        broker.deliver([({"price": 3}, [2])], source="a job", batch=7)
    found = Ground(opening, None)
    return found._replace(answers=answers(found.copied(path.with_name("answers"))))


@pytest.fixture(scope="module", params=["plain", "joins"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    path = tmp_path_factory.mktemp("whole") / "broker"
    if request.param == "plain":
        return ground(path, SCRIPT, None)
    return ground(path, JOINED, tamis.History(rows=3, order="price"))


def answers(opening: Opening) -> Any:
    """What a broker says to all kinds of calls."""
    with opening.broker() as broker:
        events = list(broker.replay("TRUE"))
        found: list[Any] = [shown(broker), list(broker.changes()), events]
        found += [broker.event(number) for number, _ in events]
        found += [broker.last_batch("a job"), broker.publish({"price": 4}, key="last").sequence]
        found += [sorted(broker.publish(event).matches) for event in PROBES]
        for subscriber in ("ann", "bob", "eve"):
            broker.subscribe(subscriber, "new", "price > 0")
        broker.acknowledge("bob", 1)
        return [*found, shown(broker)]


def places(size: int, most: int, random: Random) -> Iterator[int]:
    """Sectors of a file, at most some."""
    sectors = range(0, size, SECTOR)
    yield from sectors if len(sectors) <= most else sorted(random.sample(sectors, most))


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_tables(whole: Ground, tmp_path: Path, soak: bool, damage: Damage) -> None:
    random = Random(1)
    content = (whole.opening.path / TABLES).read_bytes()
    errors = 0
    for place in places(len(content), 10**9 if soak else 8, random):
        opening = whole.copied(tmp_path / str(place))
        damaged = bytearray(content)
        damage(damaged, place, random)
        (opening.path / TABLES).write_bytes(damaged)
        errors += is_error(opening, whole, place)
        shutil.rmtree(opening.path)
    assert errors or damage is flip  # Many bytes are not in use.


def is_error(opening: Opening, whole: Ground, place: object) -> bool:
    """Whether opening or using a broker is an error. If not, the answers must be right."""
    found = answers_or_error(opening)
    if isinstance(found, BrokerError):
        assert "Hint:" in str(found), place
        return True
    assert found == whole.answers, place
    return False


def answers_or_error(opening: Opening) -> Any:
    try:
        return answers(opening)
    except BrokerError as error:
        return error


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_caches_are_made_again(whole: Ground, tmp_path: Path, soak: bool, damage: Damage) -> None:
    random = Random(2)
    for file in sorted(whole.opening.path.glob("*.tamis")):
        content = file.read_bytes()
        for place in places(len(content), 10**9 if soak else 1, random):
            opening = whole.copied(tmp_path / f"{file.name}-{place}")
            damaged = bytearray(content)
            damage(damaged, place, random)
            (opening.path / file.name).write_bytes(damaged)
            assert answers(opening) == whole.answers, (file.name, place)
            shutil.rmtree(opening.path)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Opening:
    """The folder of a process that was killed. The log has all calls."""
    opening = Opening(tmp_path_factory.mktemp("killed") / "broker")
    opening.log_pages, opening.limits = 100_000, QUIET
    with opening.broker() as broker:
        for step in SCRIPT:
            opening.now = step.at
            step.broker(broker)
        return opening.copied()


@pytest.mark.parametrize("damage", DAMAGES[:-1])
def test_a_damaged_log(killed: Opening, tmp_path: Path, soak: bool, damage: Damage) -> None:
    """If the last commit is damaged, that looks like a crash. Damage before it is an error."""
    random, models = Random(3), [Model()]
    for step in SCRIPT:
        models.append(step.applied(models[-1]))
    states = [expected(at_time(model, killed.now)) for model in models[-2:]]
    content = (killed.path / f"{TABLES}-wal").read_bytes()
    errors = 0
    for place in places(len(content), 10**9 if soak else 15, random):
        opening = Opening(Path(shutil.copytree(killed.path, tmp_path / str(place))))
        opening.now = killed.now
        damaged = bytearray(content)
        damage(damaged, place, random)
        (opening.path / f"{TABLES}-wal").write_bytes(damaged)
        found = shown_or_error(opening)
        if isinstance(found, BrokerError):
            assert "is damaged in the middle. Hint:" in str(found), place
            # Nobody has changed the log: the next process finds the same.
            assert isinstance(shown_or_error(opening), BrokerError)
            errors += 1
        else:
            assert found in states, place
        shutil.rmtree(opening.path)
    assert errors


def shown_or_error(opening: Opening) -> Any:
    try:
        with opening.broker() as broker:
            return shown(broker)
    except BrokerError as error:
        return error


def test_what_was_left_alone_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking reads all tables. A folder is opened quickly after it was closed, and after its process was killed."""
    checks: list[object] = []
    monkeypatch.setattr(checking, "check", checks.append)
    path = tmp_path / "broker"
    for _ in range(3):
        with tamis.open(path) as broker:
            broker.subscribe("ann", "low", "price < 10")
            broker.publish({"price": 1})
            with tamis.open(path, read_only=True):
                pass
    checks.clear()
    tamis.open(path).close()
    tamis.open(path, read_only=True).close()
    assert not checks
    (path / TABLES).touch()
    tamis.open(path, read_only=True).close()
    assert len(checks) == 1
    tamis.open(path).close()
    assert len(checks) == 2
    tamis.open(path).close()
    assert len(checks) == 2
    tamis.open(shutil.copytree(path, tmp_path / "copy")).close()
    with tamis.open(path) as broker:
        broker.backup(tmp_path / "backup")
    tamis.open(tmp_path / "backup").close()
    assert len(checks) == 3


def test_what_readers_acknowledge_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that acknowledges leaves the tables as the last writer left them, also if it closes them last."""
    checks: list[object] = []
    path = tmp_path / "broker"
    with tamis.open(path) as broker:
        broker.subscribe("ann", "low", "price < 10")
        broker.publish_many([{"price": 1}] * 4)
    monkeypatch.setattr(checking, "check", checks.append)
    for number in (1, 2):
        with tamis.open(path, read_only=True) as reader:
            reader.acknowledge("ann", number)
    with tamis.open(path) as broker, tamis.open(path, read_only=True) as reader:
        broker.close()
        reader.acknowledge("ann", 3)
    with tamis.open(path) as broker:
        assert [note.sequence for note in broker.notifications("ann")] == [4]
    assert not checks


@pytest.mark.parametrize("size", [400, 6000], ids=["many small events", "few large events"])
@pytest.mark.skipif(not fault.available(), reason=fault.REASON)
def test_commits_that_failed_are_no_damage(tmp_path: Path, size: int) -> None:
    """What they wrote stays in the log, behind shorter commits. Few events are written by one statement without BEGIN."""
    with fault.Faults(skips_sync=True) as faults:
        broker = tamis.open(tmp_path / "broker")
        broker.publish({"price": 1})
        faults.fail("sync", fault.IOERR_FSYNC, at=1, is_lasting=True, suffixes=("-wal",))
        for count in (360_000 // size, 240_000 // size, 120_000 // size):
            with pytest.raises(BrokerError):
                broker.publish_many([{"text": "x" * size}] * count)
        faults.mend()
        broker.publish({"price": 2})
        shutil.copytree(tmp_path / "broker", tmp_path / "killed")
        broker.close()
    assert "failed" in (tmp_path / "killed" / "lock").read_text()
    again = tamis.open(tmp_path / "killed")
    again.publish({"price": 3})
    shutil.copytree(tmp_path / "killed", tmp_path / "killed again")
    again.close()
    with tamis.open(tmp_path / "killed again") as last:
        assert [event for _, event in last.replay("TRUE")] == [{"price": 1}, {"price": 2}, {"price": 3}]


def test_a_folder_keeps_its_mark_until_the_tables_are_open(tmp_path: Path) -> None:
    """A process that is killed while it opens a folder has changed nothing."""
    tamis.open(tmp_path / "broker").close()
    folder = Folder(tmp_path / "broker", read_only=False)
    mark = folder.mark
    folder.close()
    folder = Folder(tmp_path / "broker", read_only=False)
    assert mark.startswith("closed")
    assert folder.mark == mark
    folder.close()
