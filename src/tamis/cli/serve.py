"""``tamis serve``: a broker on a network."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tamis.errors import OptionError

_HINT = "Hint: pip install 'tamis[service]'"


@click.command()
@click.argument("folder")
@click.option(
    "--config", "config_path", metavar="FILE", help="TOML file with settings. Default: service.toml in FOLDER."
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one. Default: 8750.")
@click.option("--tls-certificate", metavar="FILE", help="Certificate chain for TLS, as PEM.")
@click.option("--tls-key", metavar="FILE", help="Private key of the certificate, as PEM.")
@click.option(
    "--proxy",
    metavar="ADDRESS",
    multiple=True,
    help="Address of a proxy in front, which speaks TLS. Repeat for several.",
)
@click.option(
    "--host-name", "hosts", metavar="NAME", multiple=True, help="Name of the service for clients. Repeat for several."
)
@click.option(
    "--origin",
    "origins",
    metavar="URL",
    multiple=True,
    help="Origin of pages that may call the service. Repeat for several.",
)
@click.option(
    "--tokens",
    type=click.Choice(["auto", "always"]),
    help="Whether each request needs a token. auto: unless only this machine can reach the service. Default: auto.",
)
@click.option(
    "--log", type=click.Choice(["debug", "info", "warning", "error"]), help="What to log on stderr. Default: info."
)
@click.option(
    "--check",
    is_flag=True,
    help="Check settings, folder, tokens and port, print the settings as JSON, and end.",
)
def serve(folder: str, config_path: str | None, check: bool, **flags: Any) -> None:
    """Serve the brokers in FOLDER over HTTP, until SIGTERM or Ctrl-C.

    FOLDER is made if it is not there. When the service is ready, it prints its address on stdout. Settings come from a
    file, from the environment (TAMIS_PORT=8750, TAMIS_LIMITS_BODY_BYTES=1000000) and from these options; the last one wins.

    \b
    Examples:
      tamis serve alerts
      tamis serve alerts --host 0.0.0.0 --tls-certificate cert.pem --tls-key key.pem
      tamis serve alerts --check
    """
    serve_folder, read_settings, check_folder, check_start = _service()
    given = {name: value for name, value in flags.items() if value is not None and value != ()}
    config = read_settings(Path(folder), None if config_path is None else Path(config_path), os.environ, given)
    if check:
        check_start(config)
        import json
        from dataclasses import asdict

        click.echo(json.dumps({**asdict(config), "needs_tokens": config.needs_tokens}, indent=2, default=str))
        return
    check_folder(config.folder)
    config.folder.mkdir(parents=True, exist_ok=True)
    serve_folder(config, lambda address: click.echo(f"serving {folder} on {address}"))


def _service() -> tuple[Callable[..., None], Callable[..., Any], Callable[..., None], Callable[..., None]]:
    """The functions of the service. They need packages that Tamis itself does not need.

    Raises
    ------
    OptionError
    """
    try:
        from tamis.service.checks import check_folder, check_start
        from tamis.service.server import serve as serve_folder
        from tamis.service.settings import read_settings
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "tamis":
            raise
        raise OptionError(f"the service needs the package {error.name}. {_HINT}") from None
    return serve_folder, read_settings, check_folder, check_start
