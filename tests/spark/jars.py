"""Jars from Maven, by Spark's package resolution. Only tests that may download ask for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyspark

from tests.markdown import ROOT

SUBMIT = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")


def run(program: list[str], given: str = "") -> str:
    """The output of a program. All processes that it has started are ended."""
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        program, cwd=ROOT, env=environment, text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            printed, said = process.communicate(given, timeout=600)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, said[-6000:]
    return printed


def fetched(packages: str, folder: Path, nothing: Path) -> list[Path]:
    """The jars of packages, with all that they need. Missing jars are fetched from Maven. `nothing` is a file to make."""
    stamp = folder / packages.replace(":", "-").replace(",", "+")
    if not stamp.exists():
        nothing.touch()
        run([SUBMIT, "--conf", f"spark.jars.ivy={folder}", "--packages", packages, str(nothing)])
        stamp.touch()
    return sorted((folder / "jars").glob("*.jar"))
