"""Settings from a file, the environment and flags; tokens from the command line."""

from __future__ import annotations

import json
import re
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis import History
from tamis.errors import FileError, OptionError
from tamis.service.config import ServiceConfig
from tamis.service.settings import read_settings
from tamis.service.tokens import TokenFile
from tests.cli.running import run
from tests.service.serving import refusal


def settings(folder: Path, text: str = "", environment: dict[str, str] | None = None, **flags: object) -> ServiceConfig:
    folder.mkdir(exist_ok=True)
    (folder / "service.toml").write_text(text, encoding="utf-8")
    return read_settings(folder, None, environment or {}, flags)


def test_nothing_needs_to_be_set(folder: Path) -> None:
    assert read_settings(folder, None, {}, {}) == ServiceConfig(folder)


def test_flags_win_over_the_environment_and_both_over_the_file(folder: Path) -> None:
    text = "port = 1\nheader_seconds = 7\nlog = 'warning'\n[limits]\nstreams = 5\ndepth = 9\n"
    text += "[tenants.shop.limits]\ndepth = 3\nstreams = 4\n"
    environment = {
        "TAMIS_PORT": "2",
        "TAMIS_LOG": "error",
        "TAMIS_LIMITS_STREAMS": "6",
        "TAMIS_HOSTS": "a.example, b.example",
    }
    found = settings(folder, text, environment, port=3)
    assert (found.port, found.log, found.header_seconds) == (3, "error", 7)
    assert found.hosts == ("a.example", "b.example")
    assert (found.limits.streams, found.limits.depth) == (6, 9)
    assert (found.tenant("shop").limits.streams, found.tenant("shop").limits.depth) == (6, 3)
    assert found.tenant("other").limits == found.limits


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", "there is no setting 'prot'; did you mean 'port'"),
        ("port = 'x'", "`port` must be a number"),
        ("tokens = 'never'", "`tokens` must be 'auto' or 'always'"),
        ("[limits]\nbody = 1", "there is no limit 'body'"),
        ("[limits]\nstreams = -1", "`streams` must be a number from 0 on"),
        ("[tenants.Shop]", "is not a name of a tenant"),
        ("[tenants.shop]\nlimit = 3", "[tenants.shop] has no 'limit'"),
        ("[tenants.shop.schema]\nprice = 'nonsense'", "price"),
        ("[broker]\nfast = true", "[broker] has no 'fast'"),
        ("[broker]\nsynchronous = 'often'", "`synchronous` must be 'full', 'normal' or 'off'"),
        ("[broker]\nhistory = 3", "`history` must be a table"),
        ("[broker.history]\nlines = 3", "[broker.history] has no 'lines'; there are: rows, age, order, key"),
        ("[broker.history]\nkey = 'a'", "a history needs a limit"),
        ("[broker.history]\nage = 'soon'\norder = 'at'", "is not an age such as 90s"),
        ("tenants = 3", "`tenants` must be a table"),
        ("port = ", "not TOML"),
    ],
)
def test_a_wrong_file(folder: Path, text: str, message: str) -> None:
    with pytest.raises(FileError) as refusal:
        settings(folder, text)
    assert message in str(refusal.value)
    assert str(refusal.value).startswith(str(folder / "service.toml"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"host": "0.0.0.0"}, "other machines can reach 0.0.0.0, so it needs TLS"),
        ({"tls_key": "key.pem"}, "`tls_certificate` and `tls_key` go together"),
        ({"tls_key": "none.pem", "tls_certificate": "none.pem"}, "there is no file none.pem"),
        ({"origins": ("shop.example.com",)}, "`origins` must be like https://shop.example.com"),
        ({"origins": ("https://shop.example.com/",)}, "`origins` must be like"),
        ({"origins": ("*",)}, "name each origin"),
        ({"hosts": ("https://a.example",)}, "`hosts` must be names without a port"),
        ({"hosts": ("a.example:8750",)}, "`hosts` must be names without a port"),
        ({"hosts": ("",)}, "`hosts` must be names without a port"),
        ({"proxy": ("nginx",)}, "`proxy` must have addresses or networks, not 'nginx'"),
        ({"port": 65536}, "`port` must be a number from 0 to 65535, not 65536"),
        ({"connections": 0}, "`connections` must be a number from 1 on, not 0"),
    ],
)
def test_settings_that_do_not_go_together(folder: Path, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        settings(folder, **flags)


def test_limits_that_would_allow_nothing(folder: Path) -> None:
    with pytest.raises(OptionError, match="the limit `depth` must be a number from 1 on"):
        settings(folder, "[tenants.shop.limits]\ndepth = 0")


def test_when_tokens_are_needed(folder: Path) -> None:
    assert not settings(folder).needs_tokens
    assert not settings(folder, host="::1").needs_tokens
    assert settings(folder, tokens="always").needs_tokens
    assert settings(folder, proxy=("10.0.0.1",)).needs_tokens
    assert settings(folder, host="0.0.0.0", proxy=("10.0.0.1",)).needs_tokens


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (
            "TAMIS_LIMIT_DEPTH",
            "the environment has TAMIS_LIMIT_DEPTH, which is no setting; did you mean 'TAMIS_LIMITS_DEPTH'",
        ),
        ("TAMIS_LIMITS_DEPHT", "there is no limit 'depht'; did you mean 'depth'"),
        ("TAMIS_WEBHOOK_TRIES", "did you mean 'TAMIS_WEBHOOKS_TRIES'"),
        ("TAMIS_BROKERS_SYNCHRONOUS", "did you mean 'TAMIS_BROKER_SYNCHRONOUS'"),
        ("TAMIS_TENANTS_SHOP", "TAMIS_TENANTS_SHOP, which is no setting"),
    ],
)
def test_a_wrong_variable(folder: Path, variable: str, message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        settings(folder, "", {variable: "1"})
    assert settings(folder, "", {"TAMIS_URL": "x", "TAMIS_KAFKA": "x"}) == settings(folder)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def test_check_finds_what_cannot_start(tmp_path: Path, folder: Path) -> None:
    def reason(*words: object) -> str:
        result = run("serve", *words, "--check")
        assert (result.exit_code, result.stdout) == (1, "")
        return result.stderr

    file = tmp_path / "file"
    file.touch()
    assert f"{file}: is a file, not a folder" in reason(file)
    assert f"{file}: is a file, not a folder" in reason(file / "inside")
    assert "is a file, not a folder" in refusal(file)
    folder.mkdir()
    (folder / "tokens.json").mkdir()
    assert "tokens.json: cannot be read" in reason(folder, "--tokens", "always")
    (folder / "tokens.json").rmdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1, port {port}: " in reason(folder, "--port", port)
        # A service that is to be upgraded has its own port.
        with tamis.open(folder / "tenants" / "default"):
            assert run("serve", folder, "--check", "--port", port).exit_code == 0


def test_check_prints_the_settings(folder: Path) -> None:
    port = free_port()
    result = run("serve", folder, "--check", "--port", port)
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    assert (shown["port"], shown["needs_tokens"], shown["limits"]["depth"]) == (port, False, 100)
    assert not folder.exists()
    result = run("serve", folder, "--check", "--host", "0.0.0.0")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "needs TLS" in result.stderr


def test_options_of_the_broker(folder: Path) -> None:
    assert settings(folder, "[broker]\nsynchronous = 'normal'").tenant("x").broker == {"synchronous": "normal"}


def test_options_of_the_broker_in_the_environment(folder: Path) -> None:
    text = "[broker]\nsynchronous = 'full'\n[tenants.shop.broker]\nsynchronous = 'off'"
    found = settings(folder, text, {"TAMIS_BROKER_SYNCHRONOUS": "normal"})
    assert [found.tenant(name).broker for name in ("x", "shop")] == [{"synchronous": "normal"}] * 2
    with pytest.raises(OptionError, match=r"\[broker\] has no 'fast'"):
        settings(folder, "", {"TAMIS_BROKER_FAST": "1"})


def test_a_history(folder: Path) -> None:
    found = settings(
        folder, "[broker.history]\nrows = 5\nkey = 'genre'\n[tenants.shop.broker.history]\nage = '7d'\norder = 'at'"
    )
    assert found.tenant("x").broker == {"history": History(rows=5, key="genre")}
    assert found.tenant("shop").broker == {"history": History(age=timedelta(days=7), order="at")}
    assert json.loads(run("serve", folder, "--check", "--port", "0").stdout)["broker"]["history"]["rows"] == 5


def test_tokens_of_the_command_line(folder: Path) -> None:
    made = run(
        "token", "create", folder, "--tenant", "shop", "--role", "publish", "--role", "publish", "--expires", "90d"
    )
    text = made.stdout.strip()
    assert made.exit_code == 0
    assert (folder / "tenants" / "shop").is_dir()
    listed = run("token", "list", folder).stdout
    record = json.loads(listed)
    assert (record["tenant"], record["roles"], record["note"]) == ("shop", ["publish"], "")
    secret = text.split("_", 2)[2]
    assert secret not in listed
    assert secret not in (folder / "tokens.json").read_text(encoding="utf-8")
    assert (folder / "tokens.json").stat().st_mode & 0o077 == 0
    token = TokenFile(folder).find(text)
    assert token is not None
    assert token.id == record["id"]
    assert run("token", "revoke", folder, record["id"]).exit_code == 0
    assert TokenFile(folder).find(text) is None
    again = run("token", "revoke", folder, record["id"])
    assert (again.exit_code, again.stderr) == (1, f"Error: no token {record['id']!r}\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--role", "king"], "'king' is not one of"),
        (["--role", "admin", "--tenant", "../x"], "is not a name of a tenant"),
        (["--role", "admin", "--expires", "soon"], "'soon' is not a moment"),
        (["--role", "admin", "--expires", "9999999999d"], "too far away"),
        (["--role", "admin", "--expires", "9" * 5000 + "m"], "too far away"),
        (["--role", "admin", "--expires", "soon"], "Hint: 90m, 12h, 90d, or a moment such as 2027-01-01"),
        (["--role", "admin", "--expires", "5w"], "Hint: 90m, 12h, 90d, or a moment"),
        (["--role", "admin", "--expires", "2020-01-01"], "is over already"),
        (["--role", "admin", "--expires", "0d"], "is over already"),
        (["--role", "admin", "--all-tenants", "--tenant", "shop"], "for one tenant or for all"),
    ],
)
def test_wrong_tokens(folder: Path, words: list[str], message: str) -> None:
    result = run("token", "create", folder, *words)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert not folder.exists()


@pytest.mark.parametrize(("text", "minutes"), [("90m", 90), ("1h", 60), ("12h", 720), ("2d", 2880)])
def test_a_token_ends_after_a_time(folder: Path, text: str, minutes: int) -> None:
    before = datetime.now(UTC)
    assert run("token", "create", folder, "--role", "admin", "--expires", text).exit_code == 0
    (token,) = TokenFile(folder).all()
    assert token.expires is not None
    assert before <= datetime.fromisoformat(token.expires) - timedelta(minutes=minutes) <= datetime.now(UTC)


def test_a_damaged_file_of_tokens(folder: Path) -> None:
    folder.mkdir()
    (folder / "tokens.json").write_text("{", encoding="utf-8")
    result = run("token", "list", folder)
    assert result.exit_code == 1
    assert "tokens.json: cannot be read" in result.stderr
