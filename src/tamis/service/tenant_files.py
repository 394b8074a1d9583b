"""The files of a tenant beside those of its broker, and how they are copied. This module needs no extra."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tamis.errors import BrokerError

SCHEMA = "schema.json"
WEBHOOKS = "webhooks.sqlite"


def copy_files(folder: Path, target: Path) -> None:
    """Copy the schema and the webhooks of a tenant, if there are any, while a service uses them.

    Raises
    ------
    BrokerError
    """
    try:
        if (folder / SCHEMA).is_file():
            shutil.copy(folder / SCHEMA, target / SCHEMA)
        if (folder / WEBHOOKS).is_file():
            # The file has secrets: only its owner may read it, from the first moment on.
            os.close(os.open(target / WEBHOOKS, os.O_CREAT | os.O_RDWR, 0o600))
            place = f"{(folder / WEBHOOKS).resolve().as_uri()}?mode=ro"
            with (
                closing(sqlite3.connect(place, uri=True)) as tables,
                closing(sqlite3.connect(target / WEBHOOKS)) as copy,
            ):
                tables.backup(copy)
    except (OSError, sqlite3.Error) as error:
        raise BrokerError(f"{SCHEMA} or {WEBHOOKS} in {folder} cannot be copied: {error}") from None
