"""Names of cache files. Each has a random end, and the tables list the names of theirs.

    queue-0-0-40-2-5f0c2a91.tamis      what is in it, then the random end

If somebody puts other tables into a folder, such as an older backup, they do not list the files that they find there.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

_ENDING = re.compile(r"([a-z]+)((?:--?\d+)*)-[0-9a-f]{8}\.tamis")


def new_name(kind: str, numbers: Collection[int]) -> str:
    """A name that no other file has."""
    return f"{'-'.join([kind, *map(str, numbers)])}-{secrets.token_hex(4)}.tamis"


def numbers_of(name: str, kind: str) -> tuple[int, ...] | None:
    """The numbers in a name; None if it is not the name of such a file."""
    found = _ENDING.fullmatch(name)
    if found is None or found[1] != kind:
        return None
    return tuple(map(int, re.findall(r"(?<=-)-?\d+", found[2])))


def numbered(names: Collection[str], kind: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """The numbers in the names of a kind, with the names. The newest file comes first."""
    found = ((numbers_of(name, kind), name) for name in names)
    yield from sorted(((numbers, name) for numbers, name in found if numbers is not None), reverse=True)


def found_in(folder: Path, kind: str) -> list[str]:
    """The names of all files of a kind."""
    names = (path.name for path in folder.glob(f"{kind}-*.tamis"))
    return [name for name in names if numbers_of(name, kind) is not None]


def remove(folder: Path, kind: str, kept: Collection[str]) -> None:
    """Delete all files of a kind but some, and the unfinished files of a killed process. Nobody writes one at the moment."""
    gone = [folder / name for name in found_in(folder, kind) if name not in kept]
    for path in (*gone, *folder.glob(f".{kind}-*.part")):
        with suppress(OSError):
            path.unlink()
