"""Stores for tests: a shelf on this machine's disk, or, where downloads are allowed, real servers of S3 and HDFS from Maven.

S3Proxy was chosen for S3: Maven has it, Java runs it, and it holds files on disk and refuses the second of two concurrent
conditional puts. Servers for tests that check and then write without a lock, such as moto, would let both pass now and then.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fsspec
import pytest

from tamis.spark.java import ensure_java
from tests.spark.jars import fetched
from tests.spark.servers import free_port, listens, wait_for
from tests.spark.shelf import FOLDER, use_shelf

JARS = os.environ.get("TAMIS_STORES")
"""The folder of jars for the servers. Without it, tests use the shelf."""
STORES = ["shelf"] if JARS is None else ["s3", "hdfs"]

_S3 = "org.gaul:s3proxy:4.1.0"
_HDFS = "org.apache.hadoop:hadoop-client-minicluster:3.5.0,org.junit.jupiter:junit-jupiter-api:5.11.4"
_KEY, _SECRET = "tamis", "secret-of-tamis"
_QUIET = '<configuration><root level="WARN"/></configuration>'


@contextmanager
def running_store(name: str, folders: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a store in which everything may be written."""
    if name == "shelf":
        os.environ.setdefault(FOLDER, str(folders.mktemp("shelf")))  # Starting Spark sets it, too.
        use_shelf()
        yield "s3://bucket"
        return
    ensure_java()
    folder = folders.mktemp(name)
    with _s3(folder) if name == "s3" else _hdfs(folder) as address:
        yield address


@contextmanager
def _s3(folder: Path) -> Iterator[str]:
    port, data, settings = free_port(), folder / "data", folder / "s3proxy.conf"
    data.mkdir()
    options = {
        "s3proxy.endpoint": f"http://127.0.0.1:{port}",
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": _KEY,
        "s3proxy.credential": _SECRET,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": data,
    }
    settings.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
    (folder / "logback.xml").write_text(_QUIET)
    # As users set them: the driver reads these itself, in all processes that are started from now on.
    os.environ.update(
        AWS_ACCESS_KEY_ID=_KEY,
        AWS_SECRET_ACCESS_KEY=_SECRET,
        AWS_DEFAULT_REGION="us-east-1",
        AWS_ENDPOINT_URL_S3=f"http://127.0.0.1:{port}",
    )
    main = ["org.gaul.s3proxy.Main", "--properties", str(settings)]
    with _server(_S3, folder, [f"-Dlogback.configurationFile={folder / 'logback.xml'}"], main) as process:
        wait_for(lambda: listens(port), process, folder / "log")
        fsspec.filesystem("s3").call_s3("create_bucket", Bucket="bucket")
        yield "s3://bucket"


@contextmanager
def _hdfs(folder: Path) -> Iterator[str]:
    port, ready = free_port(), folder / "ready.json"
    arguments = ["-datanodes", "1", "-nnport", str(port), "-httpport", "0", "-format", "-writeDetails", str(ready)]
    with _server(_HDFS, folder, [], ["org.apache.hadoop.test.MiniDFSClusterManager", *arguments]) as process:
        wait_for(ready.exists, process, folder / "log")
        yield f"hdfs://127.0.0.1:{port}"


@contextmanager
def _server(packages: str, folder: Path, options: list[str], main: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server in Java. It writes below a folder, and is killed at the end."""
    assert JARS is not None
    jars = fetched(packages, Path(JARS, packages.split(":")[1]), folder / "nothing.py")
    java = [str(Path(os.environ["JAVA_HOME"], "bin", "java")), "-Xmx512m", "-cp", os.pathsep.join(map(str, jars))]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([*java, *options, *main], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
