"""``tamis token``: who may use a service."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from tamis.cli.moment_text import moment_of
from tamis.errors import BrokerError, OptionError

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@click.group()
def token() -> None:
    """Make, list and revoke the tokens of a service.

    A running service sees changes at once.

    \b
    Examples:
      tamis token create alerts --role publish --role subscribe
      tamis token list alerts
      tamis token revoke alerts 3f9a1c20
    """


@token.command()
@click.argument("folder")
@click.option(
    "--tenant",
    metavar="NAME",
    help="Whose broker; it is made if it is not there. Default: default.",
)
@click.option(
    "--all-tenants", is_flag=True, help="A token for all tenants: requests choose one by the header Tamis-Tenant."
)
@click.option(
    "--role",
    "roles",
    type=click.Choice(["publish", "subscribe", "admin"]),
    multiple=True,
    required=True,
    help="What the token may do; admin may do everything. Repeat for several.",
)
@click.option(
    "--expires",
    metavar="MOMENT|TIME",
    help="When it ends: a moment such as 2027-01-01, or a time from now: 90m, 12h or 90d. Default: never.",
)
@click.option("--note", metavar="TEXT", default="", help="What it is for.")
def create(
    folder: str, tenant: str | None, all_tenants: bool, roles: tuple[str, ...], expires: str | None, note: str
) -> None:
    """Make a token for the service of FOLDER and print it.

    Nobody can ask for it again: FOLDER has only its hash.

    \b
    Example:
      tamis token create alerts --tenant shop --role publish --expires 90d --note checkout
    """
    from tamis.service.tenant_names import DEFAULT, folder_of
    from tamis.service.tokens import ALL_TENANTS, TokenFile

    end = _end(expires)
    if all_tenants and tenant is not None:
        raise OptionError("a token is for one tenant or for all. Hint: leave out --tenant or --all-tenants")
    name = ALL_TENANTS if all_tenants else tenant or DEFAULT
    if not all_tenants:
        folder_of(Path(folder), name).mkdir(parents=True, exist_ok=True)
    _, text = TokenFile(Path(folder)).create(name, roles, end, note)  # type: ignore[arg-type]
    click.echo(text)


@token.command(name="list")
@click.argument("folder")
def list_tokens(folder: str) -> None:
    """List the tokens of the service of FOLDER, as JSON lines without secrets.

    \b
    Example:
      tamis token list alerts
    """
    from tamis.service.tokens import TokenFile, token_record

    _check(folder)
    for each in TokenFile(Path(folder)).all():
        click.echo(json.dumps(token_record(each)))


@token.command()
@click.argument("folder")
@click.argument("id")
def revoke(folder: str, id: str) -> None:
    """Revoke the token with this ID. Requests with it are refused from now on.

    \b
    Example:
      tamis token revoke alerts 3f9a1c20
    """
    from tamis.service.tokens import TokenFile

    _check(folder)
    TokenFile(Path(folder)).revoke(id)


def _check(folder: str) -> None:
    if not Path(folder).is_dir():
        raise BrokerError(f"there is no folder {folder}. Hint: `tamis serve` makes one")


def _end(text: str | None) -> datetime | None:
    """The end of a token: a moment, or a time from now."""
    if text is None:
        return None
    unit, count = _UNITS.get(text[-1:]), text[:-1]
    now = datetime.now(UTC)
    if unit is not None and count.isdecimal():
        try:
            end: datetime | None = now + timedelta(**{unit: int(count)})
        except (OverflowError, ValueError):  # ValueError: thousands of digits
            raise OptionError(
                f"--expires {text} is too far away. Hint: leave it out for a token that never ends"
            ) from None
    else:
        try:
            end = moment_of(text)
        except OptionError as error:
            there = str(error).partition(". Hint: ")[0]
            raise OptionError(f"{there}. Hint: 90m, 12h, 90d, or a moment such as 2027-01-01") from None
    if end is not None and end.replace(tzinfo=end.tzinfo or UTC) <= now:
        raise OptionError(f"--expires {text} is over already")
    return end
