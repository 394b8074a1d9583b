"""Names of tenants, and their folders. This module needs no extra, and loads nothing that takes long."""

from __future__ import annotations

import re
from pathlib import Path

from tamis.errors import OptionError, shortened

DEFAULT = "default"
FOLDER = "tenants"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def checked_tenant(name: str) -> str:
    """A name of a tenant, which is also the name of its folder.

    Raises
    ------
    OptionError
    """
    if not _NAME.fullmatch(name):
        raise OptionError(
            f"{shortened(name)} is not a name of a tenant. Hint: small letters, digits, - and _, at most 63 of them"
        )
    return name


def tenants_of(folder: Path) -> list[str]:
    """The tenants that have a folder."""
    home = folder / FOLDER
    return [path.name for path in sorted(home.iterdir()) if is_tenant(folder, path.name)] if home.is_dir() else []


def is_tenant(folder: Path, name: str) -> bool:
    """Whether there is a tenant of this name."""
    return _NAME.fullmatch(name) is not None and (folder / FOLDER / name).is_dir()


def folder_of(folder: Path, tenant: str) -> Path:
    """The folder of a tenant's broker."""
    return folder / FOLDER / checked_tenant(tenant)
