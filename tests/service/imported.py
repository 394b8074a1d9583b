"""What services need, imported and used once, so that their compiled code is loaded, too. `forking` begins from here."""

from tamis.cli import main
from tamis.service import first_use, server, settings

__all__ = ["main", "server", "settings"]

first_use.use()
