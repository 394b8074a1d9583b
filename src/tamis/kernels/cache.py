"""Compiled kernels on disk, one file each, for any number of processes.

    <folder>/delta.scan_delta-5f0c2a91d3e4b6a7.kernel        a checksum, then what Numba needs to load it
    <folder>/delta.scan_delta-5f0c2a91d3e4b6a7.lock          while a process compiles it; other processes wait and load it

The name has a digest of everything that the machine code depends on. This is the source of the kernel and of what it uses
(`source`), the types of its arguments, the processor, Python, Numba and its settings. So no file is ever stale, and checkouts and
environments may share a folder. A file appears whole or not at all. Files of older sources are removed when nobody has used them
for a month.

The folder is `NUMBA_CACHE_DIR`, else `__pycache__` in the package, else the user's cache folder: the first that is writable. If
kernels cannot be kept, every process compiles them; a warning says so once.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import pickle
import platform
import secrets
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import llvmlite
import numba
from numba.core import compiler, config, serialize

from tamis.kernels.notice import notice
from tamis.kernels.source import digest_of

if sys.platform != "win32":
    import fcntl

_dumps: Any = serialize.dumps
_rebuild: Any = compiler.CompileResult._rebuild

_log = logging.getLogger("tamis")

_PATIENCE = 600.0
"""Seconds to wait for another process that compiles the same kernel: far longer than any kernel takes."""
_POLL = 0.02
"""Seconds between two checks whether the other process is done."""
_MONTH = 30 * 24 * 3600
_CHECKSUM_BYTES = 32


@functools.cache
def cache_folder() -> Path | None:
    """The folder of compiled kernels; None if no folder is writable."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    package = Path(__file__).resolve().parent.parent
    folders = [Path(named) / "tamis"] if named else [package / "__pycache__" / "kernels", _user_folder()]
    for folder in folders:
        if folder is not None and _is_writable(folder):
            return folder
    tried = " or ".join(str(folder) for folder in folders if folder is not None)
    _log.warning(
        "compiled kernels cannot be kept: %s is not writable. Every process will compile them again, which takes about "
        "half a minute. Set NUMBA_CACHE_DIR to a writable folder",
        tried,
    )
    return None


def _user_folder() -> Path | None:
    with suppress(RuntimeError):  # a user without a home
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "tamis"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tamis"
    return None


def _is_writable(folder: Path) -> bool:
    probe = folder / f".{secrets.token_hex(8)}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError:
        return False
    return True


class KernelCache:
    """The compiled forms of one kernel. This replaces Numba's own cache."""

    def __init__(self, function: Any, options: str) -> None:
        self._function = function
        self._options = options
        self._locks: dict[str, IO[bytes]] = {}

    @property
    def cache_path(self) -> str:
        return str(cache_folder() or "")

    def enable(self) -> None:
        """Numba calls this. The cache is always on."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The kernel compiled for a signature; None if the caller must compile it. Call `release` afterwards."""
        context.refresh()
        folder = cache_folder()
        if folder is None:
            notice.begin()
            return None
        path = folder / f"{self._name(signature, context.codegen())}.kernel"
        found = self._loaded(path, context)
        if found is None and self._lock(path, signature):
            found = self._loaded(path, context)  # Another process may have compiled it meanwhile.
        if found is None:
            notice.begin()
        return found

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled kernel. If it cannot be written, the next process compiles it again."""
        folder = cache_folder()
        payload = None if folder is None else self.packed(result)
        if folder is None or payload is None:
            return
        path = folder / f"{self._name(signature, result.codegen)}.kernel"
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            part.write_bytes(hashlib.sha256(payload).digest() + payload)
            part.replace(path)
            remove_unused(path)
        except OSError as error:
            _log.warning("a compiled kernel cannot be kept: %s", error)
            with suppress(OSError):
                part.unlink()

    def packed(self, result: Any) -> bytes | None:
        """What is kept of a compiled kernel; None if it cannot be kept."""
        return None if result.library.has_dynamic_globals else bytes(_dumps(result._reduce()))

    def unpacked(self, payload: bytes, context: Any) -> Any:
        """The compiled kernel again. Any error means that this process must compile it."""
        return _rebuild(context, *pickle.loads(payload))

    def told(self) -> list[str]:
        """What the machine code depends on, as text, besides the signature and the machine."""
        return [digest_of(self._function), self._options, _environment()]

    def release(self, signature: Any) -> None:
        """End what `load_overload` began: other processes may now load or compile the kernel."""
        notice.end()
        lock = self._locks.pop(str(signature), None)
        if lock is not None:
            with suppress(OSError):
                os.unlink(lock.name)
            lock.close()

    def _name(self, signature: Any, codegen: Any) -> str:
        function = self._function
        told = [*self.told(), str(signature), repr(codegen.magic_tuple())]
        digest = hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
        return f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}-{digest}"

    def _loaded(self, path: Path, context: Any) -> Any:
        try:
            content = path.read_bytes()
        except OSError:
            return None
        payload = content[_CHECKSUM_BYTES:]
        if hashlib.sha256(payload).digest() != content[:_CHECKSUM_BYTES]:
            return None  # Damaged: it is compiled and written again.
        with suppress(OSError):
            os.utime(path)
        try:
            return self.unpacked(payload, context)
        except Exception:
            # What this process cannot load, it can compile.
            _log.debug("cannot load the kernel %s", path, exc_info=True)
            return None

    def _lock(self, path: Path, signature: Any) -> bool:
        """Wait until no other process compiles the kernel, and lock it; returns whether it may be on disk now."""
        if sys.platform == "win32":
            return False
        try:
            lock = open(path.with_suffix(".lock"), "wb")  # noqa: SIM115 - held until the kernel is saved
        except OSError:
            return False
        waited_until = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if path.exists() or time.monotonic() > waited_until:
                    lock.close()
                    return True
                notice.begin()
                time.sleep(_POLL)
                continue
            self._locks[str(signature)] = lock
            return True


@functools.cache
def _environment() -> str:
    """What machine code depends on besides the kernel and the processor."""
    versions = (platform.python_implementation(), sys.version_info[:2], numba.__version__, llvmlite.__version__)
    settings = [getattr(config, name, None) for name in ("BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE")]
    return repr((versions, [str(each) for each in settings]))


def remove_unused(kept: Path) -> None:
    """Remove other files of the same kernel that nobody has loaded for a month."""
    oldest = time.time() - _MONTH
    for other in kept.parent.glob(f"{kept.name.rpartition('-')[0]}-*"):
        if other != kept and other.stat().st_mtime < oldest:
            other.unlink()
