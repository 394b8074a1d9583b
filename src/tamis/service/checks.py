"""What `tamis serve --check` looks at besides the settings: whatever would keep the service from starting."""

from __future__ import annotations

import os
from pathlib import Path

from tamis.broker.folder import is_locked
from tamis.errors import FileError
from tamis.service.config import ServiceConfig
from tamis.service.server import listen
from tamis.service.tenant_names import DEFAULT, folder_of
from tamis.service.tokens import TokenFile


def check_folder(folder: Path) -> None:
    """Refuse a folder that is a file, or that nobody can write to or make.

    Raises
    ------
    FileError
    """
    there = next((each for each in (folder, *folder.absolute().parents) if os.path.lexists(each)), folder)
    if not there.is_dir():
        raise FileError("is a file, not a folder. Hint: name the folder of the service", path=str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        raise FileError("cannot be written. Hint: run the service as the owner of the folder", path=str(there))


def check_start(config: ServiceConfig) -> None:
    """Refuse what keeps a service from starting. While a service serves the folder, the port is not tried: it may be its own.

    Raises
    ------
    FileError
        The folder or the tokens cannot be used.
    OptionError
        Nobody can listen on the port.
    """
    check_folder(config.folder)
    TokenFile(config.folder).all()
    if not is_locked(folder_of(config.folder, DEFAULT)):
        listen(config).close()
