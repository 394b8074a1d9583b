"""A store in a folder of this machine that Tamis takes for S3: it has names and bytes, but no paths that tasks could map."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

FOLDER = "TAMIS_SHELF"
"""The variable with the folder. Processes that Spark starts have it too."""


class Shelf(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """The part of s3fs that Tamis calls. `ignores_conditions` makes it one of the stores that replace whatever they are asked."""

    protocol = ("s3", "s3a")
    ignores_conditions = False
    fetched: list[str] = []  # noqa: RUF012 - all instances count together

    def __init__(self, **options: Any) -> None:
        super().__init__(auto_mkdir=True, **options)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        plain = str(path)
        for protocol in cls.protocol:
            if plain.startswith(f"{protocol}://"):
                plain = f"{os.environ[FOLDER]}/{plain.removeprefix(f'{protocol}://')}"
        return plain.rstrip("/")

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        target = Path(self._strip_protocol(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb" if mode == "create" and not self.ignores_conditions else "wb") as stream:
            stream.write(value)

    def get_file(self, rpath: str, lpath: str, **options: Any) -> None:
        self.fetched.append(rpath)
        super().get_file(rpath, lpath, **options)


def use_shelf() -> None:
    """Take all addresses of S3 to the shelf, in this process and its forks."""
    fsspec.register_implementation("s3", Shelf, clobber=True)
    fsspec.register_implementation("s3a", Shelf, clobber=True)
