"""Compiled kernels are cached, but never stale, and a damaged cache is compiled anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tamis.encoding import kernel

# Whether the first call found the kernel in the cache.
PROGRAM = """
import sys
from tamis.encoding import kernel as owner
owner._source_stamp = lambda file: (("a.py", int(sys.argv[1]), 1),)
import numpy as np
from tamis.encoding.texts import _locate, locate
import pyarrow as pa
keys = locate(pa.array(["b", "z"], pa.large_string()), pa.array(["a", "b"], pa.large_string()), np.array([2, 4]), 0)
assert keys.tolist() == [4, 5]
print("cached" if sum(_locate.stats.cache_hits.values()) else "compiled")
"""


def run(folder: Path, stamp: int) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", PROGRAM, str(stamp)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_a_kernel_is_compiled_anew_when_any_source_has_changed(tmp_path: Path) -> None:
    assert run(tmp_path, 1) == "compiled"
    assert run(tmp_path, 1) == "cached"
    assert run(tmp_path, 2) == "compiled"


def test_sources_are_the_file_and_what_it_imports(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("from tamis.encoding import keys, texts\nfrom tamis.encoding.runs import (\n    run_indices,\n)\n")
    names = [Path(name).name for name, _, _ in kernel._source_stamp(str(file))]
    assert {"kernels.py", "keys.py", "texts.py", "runs.py", "kernel.py"} == set(names)


def test_a_damaged_cache_is_replaced(tmp_path: Path) -> None:
    assert run(tmp_path, 1) == "compiled"
    for pattern in ("*.nbi", "*.nbc"):
        for file in tmp_path.rglob(pattern):
            file.write_bytes(file.read_bytes()[:40])
        assert run(tmp_path, 1) == "compiled"
        assert run(tmp_path, 1) == "cached"
