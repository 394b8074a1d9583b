"""A service as a process of its own, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import httpx2

from tamis.service.tokens import ROLES, Role, TokenFile
from tests.cli.running import run
from tests.service.forking import Fork, can_fork

PATIENCE = 120
"""Seconds after which a test gives up."""
NDJSON = {"Content-Type": "application/x-ndjson"}


class Server:
    """A running service: its process, its address, and a client for it.

    Unless `forks` is false, its process is a fork. `module` is what it runs.
    """

    def __init__(
        self,
        folder: Path,
        *words: object,
        environment: Mapping[str, str] | None = None,
        module: str = "tamis",
        forks: bool = True,
    ) -> None:
        self.folder = folder
        command = ["serve", str(folder), "--port", "0", *map(str, words)]
        # A pipe that nobody reads would fill up, hence a file.
        self._log = folder.with_name(folder.name + ".log")
        every = {**os.environ, **(environment or {})}
        self.process: Fork | subprocess.Popen[str]
        if forks and can_fork():
            self.process = Fork(module, command, folder.with_name(folder.name + ".fifo"), self._log, every)
        else:
            with open(self._log, "ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", module, *command], stdout=subprocess.PIPE, stderr=log, text=True, env=every
                )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(PATIENCE)
            raise AssertionError(self.log())
        self.url = line.split()[-1]
        self.client = httpx2.Client(base_url=self.url, timeout=PATIENCE, trust_env=False)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def log(self) -> str:
        """What the service has logged so far."""
        return self._log.read_text(encoding="utf-8")

    def subscribe(self, subscriber: str, name: str, expression: str, **words: Any) -> Any:
        answer = self.client.put(
            f"/v1/subscribers/{subscriber}/subscriptions/{name}", json={"expression": expression, **words}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def publish(self, event: Any, **parameters: Any) -> Any:
        answer = self.client.post("/v1/events", json=event, params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def notes(self, subscriber: str, **parameters: Any) -> list[Any]:
        answer = self.client.get(f"/v1/subscribers/{subscriber}/notifications", params=parameters)
        assert answer.status_code == 200, answer.text
        found: list[Any] = answer.json()["notifications"]
        return found

    def stop(self) -> str:
        """End the process as systemd does. Returns what it has logged."""
        self.client.close()
        self.process.terminate()
        self.process.wait(PATIENCE)
        return self.log()

    def kill(self) -> None:
        """End the process at once."""
        self.client.close()
        self.process.kill()
        self.process.wait(PATIENCE)


def add_indexed_tenant(server: Server, name: str = "indexed") -> dict[str, str]:
    """A tenant whose subscriptions fill a segment of the index, and whose events look as the planner expects.

    Returns
    -------
    dict
        Headers of its requests.
    """
    headers = {**NDJSON, "Tamis-Tenant": name}
    (server.folder / "tenants" / name).mkdir(parents=True)
    # So many in one block that they do not go into a delta.
    lines = "\n".join(f'{{"subscriber":"s","name":"{n}","expression":"i={n % 2000}"}}' for n in range(4700))
    assert server.client.post("/v1/subscriptions", content=lines, headers=headers).json() == {"subscribed": 4700}
    events = "\n".join(f'{{"i":{n}}}' for n in [*range(2000), *[7] * 50])
    assert server.client.post("/v1/events", content=events, headers=headers).json()["events"] == 2050
    return headers


def in_tenant(server: Server, name: str) -> Server:
    """The same service, whose client asks for a tenant of its own. So tests share a process."""
    (server.folder / "tenants" / name).mkdir(parents=True, exist_ok=True)
    found = copy(server)
    headers = {"Tamis-Tenant": name}
    found.client = httpx2.Client(base_url=server.url, timeout=PATIENCE, trust_env=False, headers=headers)
    return found


class TokenServer:
    """A service that wants tokens, and clients with tokens of each role for two tenants."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.tokens = TokenFile(server.folder)
        self.clients: dict[tuple[str, Role], httpx2.Client] = {}
        for tenant in ("shop", "bank"):
            (server.folder / "tenants" / tenant).mkdir(parents=True)
            for role in ROLES:
                self.clients[tenant, role] = self.client(self.tokens.create(tenant, (role,))[1])

    def client(self, token: str | None, **headers: str) -> httpx2.Client:
        """A client with a token."""
        own = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=self.server.url, timeout=PATIENCE, headers={**own, **headers}, trust_env=False)


@contextmanager
def serving(folder: Path, *words: object, environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """A service for a folder. It ends with the block."""
    server = Server(folder, *words, environment=environment)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def refusal(folder: Path, *words: object) -> str:
    """What the service says that does not start: one line, and the status 1."""
    result = run("serve", folder, "--port", "0", *words)
    assert (result.exit_code, result.stdout) == (1, "")
    return result.stderr.splitlines()[-1]


def kind(answer: httpx2.Response) -> str:
    """The kind of the problem of an answer."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    document = answer.json()
    assert document["status"] == answer.status_code
    assert document["request_id"] == answer.headers["x-request-id"]
    assert document["title"]
    assert document["detail"]
    return str(document["type"]).removeprefix("urn:tamis:problem:")
