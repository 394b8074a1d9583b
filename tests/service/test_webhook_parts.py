"""Parts of webhooks: which addresses may be reached, signatures, waiting."""

from __future__ import annotations

import asyncio
import base64
import hmac
import ipaddress
import socket
import sqlite3
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.errors import BrokerError, FileError, OptionError
from tamis.service.settings import read_settings
from tamis.service.tenant_files import SCHEMA, WEBHOOKS
from tamis.service.webhooks.addresses import Address, ForbiddenError, Networks, read_url
from tamis.service.webhooks.courier import wait_after
from tamis.service.webhooks.delivery import Outcome, Sender
from tamis.service.webhooks.names import LOOKUPS, Names
from tamis.service.webhooks.record import DeadLetter, Webhook
from tamis.service.webhooks.settings import WebhookSettings
from tamis.service.webhooks.signing import checked_secret, new_secret, signature_headers
from tamis.service.webhooks.store import Store
from tests.cli.running import run
from tests.service.receiver import Reply, receiving
from tests.service.serving import Server

PRIVATE = [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.9.9.9", "169.254.169.254", "172.16.0.1", "192.168.1.1",
    "198.18.0.1", "203.0.113.7", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001:db8::1", "fc00::1", "fe80::1",
    "fec0::1", "ff02::1", "2001:0:4136:e378:8000:63bf:f5ff:fffe",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
TARGET = read_url("https://receiver.example/x")


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_forbidden(address: str) -> None:
    with pytest.raises(ForbiddenError, match="private address"):
        Networks().check(TARGET, ipaddress.ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_may_be_reached_by_https(address: str) -> None:
    Networks().check(TARGET, ipaddress.ip_address(address))
    with pytest.raises(ForbiddenError, match="must begin with https://"):
        Networks().check(read_url("http://receiver.example/"), ipaddress.ip_address(address))


def test_an_allowed_network_may_be_reached() -> None:
    networks = Networks(["10.1.0.0/16", "fc00::/7"])
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fc00::7"):
        networks.check(read_url("http://receiver.example/"), ipaddress.ip_address(address))
    with pytest.raises(ForbiddenError):
        networks.check(TARGET, ipaddress.ip_address("10.2.0.1"))


def answers(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name have these addresses."""

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


async def look_up() -> list[Address]:
    return await Names(Networks()).look_up(TARGET)


def test_names_that_hang_delay_only_their_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, hangs = threading.Event(), threading.Semaphore(0)
    by_system = socket.getaddrinfo

    def hanging(host: str, port: int, **words: Any) -> list[Any]:
        if words["flags"] == socket.AI_NUMERICHOST:
            return list(by_system(host, port, **words))
        if host.startswith("hangs"):
            hangs.release()
            assert answer.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", port))]

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    found = [ipaddress.ip_address("8.8.8.8")]

    async def steps() -> None:
        busy, other = Names(Networks()), Names(Networks())
        tasks = [asyncio.create_task(busy.look_up(read_url(f"https://hangs{n}.example/"))) for n in range(LOOKUPS)]
        for _ in range(LOOKUPS):
            await asyncio.to_thread(hangs.acquire)
        assert await other.look_up(TARGET) == found
        assert await busy.look_up(read_url("https://8.8.8.8/")) == found

        limit: asyncio.Timeout | None = None

        async def patient() -> list[Address]:
            nonlocal limit
            async with asyncio.timeout(60) as limit:
                return await busy.look_up(TARGET, limit)

        waiting = asyncio.create_task(patient())
        for _ in range(5):
            await asyncio.sleep(0)
        assert limit is not None
        assert limit.when() is None  # Its time does not run while others are looked up.
        tasks[0].cancel()  # Its thread hangs on, so its place is not free.
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        answer.set()
        assert await waiting == found
        assert await asyncio.gather(*tasks[1:]) == [found] * (LOOKUPS - 1)

    asyncio.run(steps())


def test_a_name_that_leads_inside_is_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, "127.0.0.1", "10.0.0.1")
    with pytest.raises(ForbiddenError):
        asyncio.run(look_up())


def test_of_the_addresses_of_a_name_only_the_public_ones_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, "127.0.0.1", "8.8.8.8", "::1", "fe80::1%eth0")
    assert asyncio.run(look_up()) == [ipaddress.ip_address("8.8.8.8")]


def test_by_default_a_service_refuses_private_addresses(server: Server) -> None:
    server.subscribe("inside", "x", "inside = 1")
    for host in ("127.0.0.1:80", "localhost", "[::1]", "2130706433", "0x7f.1", "0.0.0.0"):
        answer = server.client.put("/v1/subscribers/inside/webhook", json={"url": f"https://{host}/"})
        assert answer.status_code == 422, host
        assert "private address" in answer.json()["detail"]


def test_a_signature_depends_on_all_that_it_signs() -> None:
    secret = new_secret()
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.digest(key, b"m1.7.body", "sha256")).decode()
    found = dict(signature_headers((secret,), "m1", 7, b"body"))
    assert found == {"webhook-id": "m1", "webhook-timestamp": "7", "webhook-signature": f"v1,{expected}"}
    others = [
        (new_secret(), "m1", 7, b"body"),
        (secret, "m2", 7, b"body"),
        (secret, "m1", 8, b"body"),
        (secret, "m1", 7, b"b"),
    ]
    for other, message, seconds, body in others:
        changed = dict(signature_headers((other,), message, seconds, body))
        assert changed["webhook-signature"] != found["webhook-signature"]


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_AAAA", "whsec_!!!!", "A" * 40, 7, "whsec_" + "A" * 400])
def test_a_weak_secret_is_refused_and_not_repeated(secret: object) -> None:
    with pytest.raises(OptionError) as caught:
        checked_secret(secret)
    assert not isinstance(secret, str) or len(secret) < 10 or secret not in str(caught.value)


def test_waits_double_up_to_the_longest_one_and_vary() -> None:
    settings = WebhookSettings(first_wait=1.0, longest_wait=60.0)
    for tries in range(1, 80):
        longest = min(60.0, 2.0 ** (tries - 1))
        waits = {wait_after(tries, settings) for _ in range(20)}
        assert all(longest / 2 <= wait <= longest for wait in waits)
        assert len(waits) > 1
    assert wait_after(1, settings, 30.0) == 30.0
    assert wait_after(1, settings, 999_999.0) == 60.0


@pytest.mark.parametrize(("asked", "seconds"), [("\u00b2", None), ("9" * 2000, None), ("-1", None), ("7", 7.0)])
def test_a_receiver_cannot_switch_off_the_tries(asked: str, seconds: float | None) -> None:
    async def sent(url: str) -> Outcome:
        sender = Sender(WebhookSettings(allowed_networks=("127.0.0.0/8",)))
        return await sender.send(sender.channel(Names(sender.networks)), url, (new_secret(),), "m1", b"{}")

    with receiving(lambda *_: Reply(503, {"Retry-After": asked})) as receiver:
        assert asyncio.run(sent(receiver.url())) == Outcome(False, "status 503", 503, seconds)


def test_settings_come_from_the_file_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text("[webhooks]\ntimeout = 5\ntries = 3\nallowed_networks = ['10.0.0.0/8']\n")
    found = read_settings(tmp_path, None, {"TAMIS_WEBHOOKS_TIMEOUT": "2.5"}, {}).webhooks
    assert (found.timeout, found.tries, found.allowed_networks) == (2.5, 3, ("10.0.0.0/8",))


@pytest.mark.parametrize(
    "text",
    [
        "timeout = 'x'",
        "tries = 0",
        "tries = 2.5",
        "allowed_networks = ['10.0.0.1/8']",
        "ca_file = '/no'",
        "retries = 1",
    ],
)
def test_wrong_settings_are_errors(tmp_path: Path, text: str) -> None:
    (tmp_path / "service.toml").write_text(f"[webhooks]\n{text}\n")
    with pytest.raises((FileError, OptionError)):
        read_settings(tmp_path, None, {}, {})


def test_the_store_keeps_everything(tmp_path: Path) -> None:
    store = Store(tmp_path)
    webhook = Webhook("ann", "wh_1", "https://x.example/", new_secret(), batch=7)
    store.put(webhook)
    webhook.tries, webhook.retrying, webhook.batch_last, webhook.next_try = 2, "notes", 9, 123.5
    letters = [DeadLetter(n, f'{{"sequence":{n}}}', 3, "why", 1.5, False) for n in (4, 5, 6)]
    assert store.bury(webhook, letters) == 3
    assert store.replay("ann", [5, 99]) == 1
    store.close()
    store = Store(tmp_path)
    assert store.all() == [webhook]
    assert store.dead_letters("ann", 4, 10) == [letters[1]._replace(replaying=True), letters[2]]
    assert [each.sequence for each in store.replays("ann", 0, 10)] == [5]
    store.settle(webhook, [5])
    assert store.forget("ann", None) == 2
    store.remove("ann")
    store.update(webhook)  # It comes too late, and brings nothing back.
    assert store.all() == []
    store.close()


def test_a_webhook_has_two_secrets_for_a_time() -> None:
    webhook = Webhook("ann", "wh_1", "https://x.example/", "first")
    assert webhook.secrets(100.0) == ("first",)
    webhook.rotate("second", 100.0, 10.0)
    assert webhook.secrets(109.0) == ("second", "first")
    assert webhook.secrets(110.0) == ("second",)
    webhook.rotate("third", 105.0, 10.0)
    assert webhook.secrets(106.0) == ("third", "second")
    assert "second" not in repr(webhook)


FIRST_TABLES = """
CREATE TABLE webhooks (
    subscriber TEXT PRIMARY KEY, id TEXT NOT NULL, url TEXT NOT NULL, secret TEXT NOT NULL, batch INTEGER NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL, tries INTEGER NOT NULL, next_try REAL NOT NULL, retrying TEXT,
    batch_last INTEGER NOT NULL, failures INTEGER NOT NULL, missed INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE dead_letters (
    subscriber TEXT NOT NULL REFERENCES webhooks ON DELETE CASCADE, sequence INTEGER NOT NULL, note TEXT NOT NULL,
    tries INTEGER NOT NULL, reason TEXT NOT NULL, moment REAL NOT NULL, replaying INTEGER NOT NULL,
    PRIMARY KEY (subscriber, sequence)
) WITHOUT ROWID;
INSERT INTO webhooks VALUES ('ann', 'wh_1', 'https://x.example/', 'whsec_A', 7, 'paused', '', 0, 0, NULL, 0, 1, 2);
PRAGMA user_version = 1;
"""


def test_the_first_tables_are_brought_up_to_date(tmp_path: Path) -> None:
    tables = sqlite3.connect(tmp_path / WEBHOOKS)
    tables.executescript(FIRST_TABLES)
    tables.close()
    expected = Webhook("ann", "wh_1", "https://x.example/", "whsec_A", 7, "paused", failures=1, missed=2)
    for _ in range(2):
        store = Store(tmp_path)
        assert store.all() == [expected]
        store.close()


def test_a_backup_has_webhooks_and_the_schema(tmp_path: Path) -> None:
    folder, copy = tmp_path / "tenant", tmp_path / "copy"
    tamis.open(folder).close()
    (folder / SCHEMA).write_text('{"price": "number"}')
    store = Store(folder)
    webhook = Webhook("ann", "wh_1", "https://x.example/", new_secret())
    store.put(webhook)
    assert run("backup", folder, copy).exit_code == 0
    store.close()
    assert (copy / SCHEMA).read_text() == '{"price": "number"}'
    assert stat.S_IMODE((copy / WEBHOOKS).stat().st_mode) == 0o600
    store = Store(copy)
    assert store.all() == [webhook]
    store.close()
    (folder / WEBHOOKS).write_bytes(b"not a database" * 100)
    failed = run("backup", folder, tmp_path / "other")
    assert failed.exit_code == 1
    assert "cannot be copied" in failed.output


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / WEBHOOKS).write_bytes(b"not a database" * 100)
    with pytest.raises(BrokerError, match=WEBHOOKS):
        Store(tmp_path)
