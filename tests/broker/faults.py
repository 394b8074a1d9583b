"""Faults underneath SQLite: writes that fail, a disk that is full, a sync that fails or takes long.

SQLite asks a table of functions, its VFS, for everything that touches a file. `Faults` registers a copy of the usual VFS in
which xOpen gives each file a copy of its methods, and there xWrite, xSync and xTruncate ask us first:

    sqlite3 module -> SQLite -> [our xWrite, xSync, xTruncate] -> the methods of the usual VFS -> file

A connection that is opened inside of the `with` block has faults; all other connections have none. Shared memory and mapped
pages are left alone.
"""

from __future__ import annotations

import _sqlite3  # noqa: PLC2701 - the library with SQLite in it, which ctypes opens
import ctypes
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any, Literal

Method = Literal["write", "sync", "truncate"]
Hook = Callable[[Method, str], None]
"""Is called with a method and the name of a file."""

OK = 0
FULL = 13
IOERR_WRITE = 10 | 3 << 8
IOERR_FSYNC = 10 | 4 << 8
IOERR_TRUNCATE = 10 | 6 << 8

_XOPEN = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int)
)
_TYPES: dict[Method, Any] = {
    "write": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64),
    "sync": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int),
    "truncate": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64),
}
_FIELDS: dict[Method, str] = {"write": "xWrite", "sync": "xSync", "truncate": "xTruncate"}


class _Vfs(ctypes.Structure):
    """sqlite3_vfs, version 3. What we do not change is a bare pointer."""

    _fields_ = (
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        ("pNext", ctypes.c_void_p),
        ("zName", ctypes.c_char_p),
        ("pAppData", ctypes.c_void_p),
        ("xOpen", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 15),
    )


class _Methods(ctypes.Structure):
    """sqlite3_io_methods, version 3."""

    _fields_ = (
        ("iVersion", ctypes.c_int),
        ("xClose", ctypes.c_void_p),
        ("xRead", ctypes.c_void_p),
        ("xWrite", ctypes.c_void_p),
        ("xTruncate", ctypes.c_void_p),
        ("xSync", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 13),
    )


class _File(ctypes.Structure):
    _fields_ = (("pMethods", ctypes.c_void_p),)


@cache
def _library() -> ctypes.CDLL | None:
    """The SQLite that the module sqlite3 uses; None if its functions cannot be reached."""
    try:
        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        library.sqlite3_sourceid.restype = ctypes.c_char_p
        with _memory() as connection:
            ours = connection.execute("SELECT sqlite_source_id()").fetchone()[0]
        is_same = library.sqlite3_sourceid() == ours.encode()
        is_known = library.sqlite3_vfs_find(None).contents.iVersion >= 3
    except (AttributeError, OSError, ValueError):
        return None
    return library if is_same and is_known else None


@contextmanager
def _memory() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    try:
        yield connection
    finally:
        connection.close()


def available() -> bool:
    """Whether this Python lets us reach its SQLite."""
    return _library() is not None


REASON = "the functions of this Python's SQLite cannot be reached"

_kept: list[object] = []
"""SQLite holds pointers to these as long as a connection lives. They are never freed."""


@dataclass
class _Failure:
    method: Method
    code: int
    at: int
    is_lasting: bool
    suffixes: tuple[str, ...]


class Faults:
    """A context manager. Connections that are opened inside of it have the faults that `fail` and `sync_delay` set.

    Attributes
    ----------
    sync_delay : float
        Seconds that each sync of a file takes longer.
    skips_sync : bool
        Whether a sync does not wait for the disk.
    before, after : callable, optional
        Is called before and after each write, sync and truncate that does not fail.
    called : int
        How often the method of the last `fail` was called since then, for its files.
    happened : int
        How often it has failed.
    """

    def __init__(
        self,
        *,
        sync_delay: float = 0.0,
        skips_sync: bool = False,
        methods: tuple[Method, ...] = ("write", "sync", "truncate"),
    ) -> None:
        self.sync_delay = sync_delay
        self.skips_sync = skips_sync
        self.before: Hook | None = None
        self.after: Hook | None = None
        self.called = 0
        self.happened = 0
        self._failure: _Failure | None = None
        self._error: BaseException | None = None
        self._watched = methods
        self._names: dict[int, str] = {}
        self._methods: dict[int, _Methods] = {}
        self._lock = threading.Lock()

    def fail(
        self, method: Method, code: int, *, at: int, is_lasting: bool = False, suffixes: tuple[str, ...] = ("",)
    ) -> None:
        """Let the `at`-th call of a method from now on fail with a code of SQLite; all later ones, too, if `is_lasting`.

        Only files whose names end with one of the suffixes count.
        """
        self._failure = _Failure(method, code, at, is_lasting, suffixes)
        self.called = self.happened = 0

    def mend(self) -> None:
        """Let nothing fail any more."""
        self._failure = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let nothing fail and call no hook inside of the block."""
        held = self._failure, self.before, self.after
        self._failure = self.before = self.after = None
        try:
            yield
        finally:
            self._failure, self.before, self.after = held

    def __enter__(self) -> Faults:
        library = _library()
        assert library is not None, REASON
        self._usual = library.sqlite3_vfs_find(None)
        vfs = _Vfs()
        ctypes.memmove(ctypes.byref(vfs), self._usual, ctypes.sizeof(_Vfs))
        self._open = _XOPEN(vfs.xOpen)
        opening = _XOPEN(self._opened)
        vfs.xOpen = ctypes.cast(opening, ctypes.c_void_p)
        vfs.zName, vfs.pNext = f"faults-{id(self)}".encode(), None
        self._vfs = vfs
        _kept.extend([self, vfs, opening])
        library.sqlite3_vfs_register(ctypes.byref(vfs), 1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        library = _library()
        assert library is not None
        library.sqlite3_vfs_register(self._usual, 1)
        library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))
        self.mend()
        self.sync_delay, self.before, self.after = 0.0, None, None
        if error is None and self._error is not None:
            raise self._error

    def _opened(self, vfs: int, name: int | None, file: int, flags: int, out: Any) -> int:
        code: int = self._open(vfs, name, file, flags, out)
        opened = _File.from_address(file)
        if opened.pMethods:
            self._names[file] = "" if name is None else ctypes.string_at(name).decode(errors="replace")
            opened.pMethods = ctypes.addressof(self._replaced(opened.pMethods))
        return code

    def _replaced(self, address: int) -> _Methods:
        """A copy of a table of methods, in which the watched ones are ours."""
        with self._lock:
            if address not in self._methods:
                size = _Methods.others.offset + ctypes.sizeof(ctypes.c_void_p) * _others(address)
                methods = _Methods()
                ctypes.memmove(ctypes.byref(methods), address, size)
                for method in self._watched:
                    usual = _TYPES[method](getattr(methods, _FIELDS[method]))
                    ours = _TYPES[method](self._asking(method, usual))
                    setattr(methods, _FIELDS[method], ctypes.cast(ours, ctypes.c_void_p))
                    _kept.append(ours)
                self._methods[address] = methods
            return self._methods[address]

    def _asking(self, method: Method, usual: Callable[..., int]) -> Callable[..., int]:
        def called(file: int, *arguments: Any) -> int:
            name = self._names[file]
            if code := self._code(method, name):
                return code
            self._tell(self.before, method, name)
            if method == "sync" and self.sync_delay:
                time.sleep(self.sync_delay)
            code = OK if method == "sync" and self.skips_sync else usual(file, *arguments)
            if code == OK:
                self._tell(self.after, method, name)
            return code

        return called

    def _tell(self, hook: Hook | None, method: Method, name: str) -> None:
        """Call a hook. Its error cannot pass through SQLite, so it is raised at the end of the `with` block."""
        if hook is not None:
            try:
                hook(method, name)
            except BaseException as error:
                self._error = error

    def _code(self, method: Method, name: str) -> int:
        """The code with which a call fails; 0 if it does not."""
        with self._lock:
            failure = self._failure
            if failure is None or failure.method != method or not name.endswith(failure.suffixes):
                return OK
            self.called += 1
            if self.called < failure.at or (self.called > failure.at and not failure.is_lasting):
                return OK
            self.happened += 1
            return failure.code


def _others(address: int) -> int:
    """How many methods of a table follow xSync: each version of SQLite's interface has added some."""
    version = ctypes.c_int.from_address(address).value
    return {1: 7, 2: 11}.get(version, 13)
