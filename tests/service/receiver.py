"""A receiver of webhooks on 127.0.0.1, whose answers a test chooses."""

from __future__ import annotations

import base64
import hmac
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PATIENCE = 60
"""Seconds after which a test gives up."""


class Delivery(NamedTuple):
    """A message that has come."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def sequences(self) -> list[int]:
        return [note["sequence"] for note in json.loads(self.body)["notifications"]]

    def is_signed(self, secret: str) -> bool:
        """Check the signature, as the page says."""
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        key = base64.b64decode(secret.removeprefix("whsec_"))
        expected = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
        return any(hmac.compare_digest(expected, each) for each in self.headers["webhook-signature"].split())


class Reply(NamedTuple):
    """What a receiver answers."""

    status: int = 204
    headers: dict[str, str] = {}  # noqa: RUF012
    body: bytes = b""


class Receiver:
    """A server. `answer` decides what it answers: it gets the delivery, and how many came before."""

    def __init__(
        self, answer: Callable[[Delivery, int], Reply], certificate: Path | tuple[Path, Path] | None = None
    ) -> None:
        self.answer = answer
        self.deliveries: list[Delivery] = []
        self._came = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = receiver._take(Delivery(self.path, headers, body))
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.status != 204:
                    self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A sender that goes away is no error."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._scheme = "http"
        if certificate is not None:
            security = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            security.load_cert_chain(*(certificate if isinstance(certificate, tuple) else (certificate,)))
            self._server.socket = security.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            self._scheme = "https"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self._scheme}://{host}:{self._server.server_port}{path}"

    def _take(self, delivery: Delivery) -> Reply:
        with self._came:
            place = len(self.deliveries)
            self.deliveries.append(delivery)
            self._came.notify_all()
        return self.answer(delivery, place)

    def wait_for(self, is_enough: Callable[[list[Delivery]], bool]) -> list[Delivery]:
        """The deliveries, as soon as they are enough."""
        with self._came:
            assert self._came.wait_for(lambda: is_enough(self.deliveries), PATIENCE), self.deliveries
            return list(self.deliveries)

    def wait_for_note(self, sequence: int) -> list[Delivery]:
        """The deliveries, as soon as a note has come."""
        return self.wait_for(lambda found: any(sequence in each.sequences for each in found))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def fine(delivery: Delivery, place: int) -> Reply:
    """Take everything."""
    return Reply()


@contextmanager
def receiving(
    answer: Callable[[Delivery, int], Reply] = fine, certificate: Path | tuple[Path, Path] | None = None
) -> Iterator[Receiver]:
    """A receiver. It ends with the block."""
    receiver = Receiver(answer, certificate)
    try:
        yield receiver
    finally:
        receiver.close()


def new_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Files with a certificate for a name that nobody has signed, and its key. Without openssl, the test is skipped."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    words = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName={name}"
    subprocess.run(["openssl", *words.split(" "), "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key
