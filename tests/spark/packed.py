"""A packed environment with Tamis, as users send it to executors: a real one, but small.

Tamis itself is in the archive. Its dependencies would be 500 MB, so the environment takes them from that of the tests.
"""

from __future__ import annotations

import shutil
import sysconfig
import venv
from pathlib import Path

import venv_pack

import tamis

# The environment's own packages come first, also before the PYTHONPATH of the tests.
_LINK = "import sys; sys.path.insert(0, {own!r} % sys.prefix); sys.path.append({others!r})\n"


def packed_environment(folder: Path) -> Path:
    """Pack an environment; returns the archive."""
    home, archive = folder / "environment", folder / "environment.tar.gz"
    venv.create(home, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(home), "platbase": str(home)}))
    shutil.copytree(
        Path(tamis.__file__).parent, packages / "tamis", ignore=shutil.ignore_patterns("__pycache__", "*.part")
    )
    own = f"%s/{packages.relative_to(home)}"
    (packages / "dependencies.pth").write_text(_LINK.format(own=own, others=sysconfig.get_path("purelib")))
    venv_pack.pack(str(home), output=str(archive), compress_level=1)
    shutil.rmtree(home)
    return archive
