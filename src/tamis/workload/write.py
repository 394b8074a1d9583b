"""Writing a workload to a folder of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tamis.errors import FileError, WorkloadError
from tamis.storage.replacing import replacing_target
from tamis.workload.generate import generate
from tamis.workload.styles import AnyConfig, config_from_json
from tamis.workload.workload import Workload

if TYPE_CHECKING:
    import pyarrow as pa

SUBSCRIPTIONS = "subscriptions.parquet"
EVENTS = "events.parquet"
OTHER_EVENTS = "other_events.parquet"
CONFIG = "config.json"

_FILES = (SUBSCRIPTIONS, EVENTS, OTHER_EVENTS, CONFIG)

_GROUP_BLOCKS = 10
"""The number of blocks in a row group of a file: 100,000 subscriptions, or 10,000 events."""


def write(config: AnyConfig, folder: str | os.PathLike[str], *, wide: bool = False) -> tuple[Path, ...]:
    """Write a workload to a folder. The folder is created if it does not exist.

    Parameters
    ----------
    config : WorkloadConfig, AlertsConfig, ...
        The parameters of the workload. ``preset(name, ...)`` gives those of a named workload.
    folder : path
        Gets `subscriptions.parquet`, `events.parquet`, `other_events.parquet` and `config.json`. These files are written
        under temporary names and renamed when all are complete. A workload in the folder is replaced.
    wide : bool
        Whether events have a column per attribute instead of a list of pairs. For few dimensions.

    Returns
    -------
    tuple of Path
        The files, in the order above.

    Raises
    ------
    FileError
        If the folder cannot be written, or has files of these names that do not belong to a workload.
    WorkloadError
        If `wide` is True and there are too many dimensions.
    """
    workload = generate(config)
    workload.event_schema(wide=wide)
    target = _prepare(folder)
    try:
        with ExitStack() as stack:
            # The config is opened first, so it is renamed last.
            files = [(name, replacing_target(target / name, durable=False)) for name in reversed(_FILES)]
            _write_files(workload, {name: stack.enter_context(file) for name, file in files}, wide)
    except OSError as error:
        raise FileError(f"cannot write the workload: {error.strerror or error}", path=str(target)) from None
    return tuple(target / name for name in _FILES)


def read_config(folder: str | os.PathLike[str]) -> AnyConfig:
    """The config of the workload in a folder."""
    path = Path(folder) / CONFIG
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"cannot read the workload's config: {error.strerror or error}", path=str(path)) from None
    except ValueError:  # the file is not UTF-8, or the path is not possible
        raise FileError("this is not a workload's config", path=str(path)) from None
    return config_from_json(text)


def _prepare(folder: str | os.PathLike[str]) -> Path:
    """Create the folder. Refuse a folder with files of these names that belong to something else: the names are common."""
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        taken = [name for name in _FILES if (target / name).exists()]
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileError(f"cannot write a workload here: {reason}", path=repr(str(target))) from None
    if taken:
        try:
            read_config(target)
        except (FileError, WorkloadError):
            raise FileError(
                f"the folder has files that do not belong to a workload: {', '.join(taken)}. "
                "Hint: choose another folder, or remove these files",
                path=str(target),
            ) from None
    return target


def _write_files(workload: Workload, files: Mapping[str, BinaryIO], wide: bool) -> None:
    events = workload.event_schema(wide=wide)
    _write_batches(files[SUBSCRIPTIONS], workload.subscription_schema, workload.subscription_blocks())
    _write_batches(files[EVENTS], events, workload.event_blocks(wide=wide))
    _write_batches(files[OTHER_EVENTS], events, workload.other_event_blocks(wide=wide))
    files[CONFIG].write(f"{workload.config.to_json()}\n".encode())


def _write_batches(file: BinaryIO, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Write a row group for every few batches. Only these batches are in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(islice(batches, _GROUP_BLOCKS)):
            writer.write_table(pa.Table.from_batches(group, schema))
