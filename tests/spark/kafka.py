"""A real Kafka of one node, in KRaft mode, from jars that Spark's package resolution fetches from Maven."""

from __future__ import annotations

import os
import secrets
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.spark.servers import free_port, listens, wait_for

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
BROKER = "org.apache.kafka:kafka_2.13:3.9.2,org.slf4j:slf4j-simple:1.7.36"


@contextmanager
def kafka(jars: list[Path], folder: Path) -> Iterator[str]:
    """Start a broker and yield its address. The broker is killed at the end."""
    folder.mkdir(parents=True)
    broker, controller = free_port(), free_port()
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(folder / "logs"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "auto.create.topics.enable": "true",
        "num.partitions": "2",
    }
    config = folder / "server.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    java = [str(Path(os.environ["JAVA_HOME"], "bin", "java")), "-Xmx512m", "-cp", os.pathsep.join(map(str, jars))]
    cluster = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=").replace("-", "a")
    formatted = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)]
    done = subprocess.run(formatted, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with open(folder / "broker.log", "w+") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(config)], stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_for(lambda: listens(broker), process, folder / "broker.log")  # once it has found its controller
            yield f"127.0.0.1:{broker}"
        finally:
            process.kill()
            process.wait()
