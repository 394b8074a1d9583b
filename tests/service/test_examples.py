"""The examples of running the service: the unit of systemd, the container file, the configuration of nginx."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tamis.service.config import DEFAULT_PORT
from tests.cli.running import run

INSTRUCTIONS = {
    "FROM", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT",
}  # fmt: skip
EXAMPLES = Path(__file__).parents[2] / "examples" / "service"


def test_the_unit_of_systemd(tmp_path: Path) -> None:
    text = (EXAMPLES / "tamis.service").read_text(encoding="utf-8")
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    for name in ("ExecStartPre", "ExecStart"):
        command, *words = shlex.split(unit["Service"][name].replace("%S", str(tmp_path)))
        assert command == "tamis"
        result = run(*words, "--port", "0", *([] if "--check" in words else ["--check"]))
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["folder"] == str(tmp_path / "tamis")
    assert int(unit["Service"]["TimeoutStopSec"]) > json.loads(result.stdout)["end_seconds"]
    assert int(unit["Service"]["LimitNOFILE"]) > json.loads(result.stdout)["connections"]
    if shutil.which("systemd-analyze"):
        text = re.sub("^(ExecStart|ExecStartPre)=tamis", f"\\1={shutil.which('true')}", text, flags=re.MULTILINE)
        (tmp_path / "tamis.service").write_text(text, encoding="utf-8")
        answer = subprocess.run(
            ["systemd-analyze", "verify", tmp_path / "tamis.service"], capture_output=True, text=True, check=False
        )
        assert "tamis.service:" not in answer.stderr


def test_the_container_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (EXAMPLES / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    instructions = [line.split(" ", 1)[0] for line in lines]
    assert set(instructions) <= INSTRUCTIONS
    # A minor version of Python that Tamis supports, from a registry that is named.
    image = re.fullmatch(r"FROM docker\.io/library/python:(\d+\.\d+)-slim", lines[0])
    assert image is not None
    assert f"Programming Language :: Python :: {image[1]}" in (EXAMPLES.parents[1] / "pyproject.toml").read_text(
        "utf-8"
    )
    # The service is not root, and its folder is a volume that belongs to it. Nothing is installed after that.
    user = lines[instructions.index("USER")].split(" ")[1]
    assert user not in ("root", "0")
    assert any(f"useradd --system {user}" in line and f"chown {user} /data" in line for line in lines)
    assert instructions.count("USER") == 1
    assert instructions.index("USER") > max(place for place, word in enumerate(instructions) if word in ("RUN", "COPY"))
    assert "VOLUME /data" in lines
    check = next(line for line in lines if line.startswith("HEALTHCHECK"))
    assert f"http://127.0.0.1:{DEFAULT_PORT}/ready" in check
    assert "STOPSIGNAL SIGTERM" in lines
    words = json.loads(next(line for line in lines if line.startswith("ENTRYPOINT")).partition(" ")[2])
    environment = dict(line.split(" ")[1].split("=") for line in lines if line.startswith("ENV "))
    for name, value in environment.items():
        if name.startswith("TAMIS_"):
            monkeypatch.setenv(name, value)
    folder = tmp_path / words[-1].strip("/")
    # Without a proxy, the container would send tokens in the clear, and refuses to start.
    assert "it needs TLS" in run("serve", folder, "--check", "--port", "0").stderr
    monkeypatch.setenv("TAMIS_PROXY", re.findall("TAMIS_PROXY=([0-9.]+)", text)[0])
    shown = json.loads(run("serve", folder, "--check", "--port", "0").stdout)
    assert (shown["host"], shown["needs_tokens"]) == ("0.0.0.0", True)
    assert f"EXPOSE {DEFAULT_PORT}" in lines


def working_builder() -> str | None:
    """A program that builds containers here; docker needs a daemon for that."""
    for name in ("podman", "docker"):
        found = shutil.which(name)
        if found and subprocess.run([found, "info"], capture_output=True, check=False).returncode == 0:
            return found
    return None


@pytest.mark.long
def test_the_container_is_built_and_run(tmp_path: Path) -> None:
    builder = working_builder()
    if builder is None:
        pytest.skip("needs podman, or docker with its daemon")
    root = EXAMPLES.parents[1]
    subprocess.run(["make", "wheel"], cwd=root, check=True)
    subprocess.run([builder, "build", "--file", EXAMPLES / "Containerfile", "--tag", "tamis-test", root], check=True)
    words = [builder, "run", "--rm", "--env", "TAMIS_PROXY=10.0.0.1", "tamis-test", "--check"]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout)["host"] == "0.0.0.0"


def test_nginx_names_the_port_of_the_service(tmp_path: Path) -> None:
    text = (EXAMPLES / "nginx.conf").read_text(encoding="utf-8")
    shown = json.loads(
        run(
            "serve", tmp_path, "--check", "--port", "0", "--proxy", "127.0.0.1", "--host-name", "alerts.example.com"
        ).stdout
    )
    assert f"proxy_pass http://{shown['host']}:{DEFAULT_PORT};" in text
    assert "server_name alerts.example.com;" in text
    if shutil.which("nginx"):
        (tmp_path / "nginx.conf").write_text(
            "events {}\nhttp {\n" + re.sub(".*ssl.*\n", "", text) + "}\n", encoding="utf-8"
        )
        subprocess.run(["nginx", "-t", "-c", tmp_path / "nginx.conf", "-p", tmp_path], check=True, capture_output=True)
