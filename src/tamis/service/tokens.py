"""Tokens of a service, in the file ``tokens.json`` of its folder. The file has hashes only: nobody can read a token from it.

    tamis_3f9a1c20_Zk3...      "tamis", the id of the token, and 256 random bits

A secret with so many random bits needs no slow hash: nobody can try all of them. The service looks at the file at every
request, so a token that was revoked is refused at once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from tamis.errors import FileError, OptionError, UnknownIdError
from tamis.storage.replacing import replacing

if sys.platform != "win32":
    import fcntl

Role = Literal["publish", "subscribe", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
ALL_TENANTS = "*"
"""The tenant of an operator's token, which may choose any tenant."""
FILE = "tokens.json"
_PREFIX = "tamis"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token."""

    id: str
    tenant: str
    roles: tuple[Role, ...]
    hash: str
    """SHA-256 of the whole token."""
    created: str
    expires: str | None = None
    note: str = ""

    def is_over(self, now: datetime) -> bool:
        return self.expires is not None and datetime.fromisoformat(self.expires) <= now


class TokenFile:
    """The tokens of a folder. Any number of processes may read and change them."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._seen: tuple[int, ...] | None = None
        self._tokens: dict[str, Token] = {}

    def all(self) -> list[Token]:
        """All tokens, in the order in which they were made.

        Raises
        ------
        FileError
        """
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            self._seen, self._tokens = None, {}
            return []
        except OSError as error:
            raise _unreadable(self.path, error) from None
        seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        if seen != self._seen:
            self._tokens = {token.id: token for token in _read(self.path)}
            self._seen = seen
        return list(self._tokens.values())

    def find(self, given: str) -> Token | None:
        """The token with this text, if there is one and it is not over. The time of this says nothing about the secret."""
        self.all()
        parts = given.split("_", 2)
        known = self._tokens.get(parts[1]) if len(parts) == 3 and parts[0] == _PREFIX else None
        is_right = hmac.compare_digest(_hash(given), known.hash if known else _hash(""))
        return known if known is not None and is_right and not known.is_over(datetime.now(UTC)) else None

    def is_valid(self, token: Token) -> bool:
        """Whether a token that was found before is still there and not over."""
        self.all()
        return self._tokens.get(token.id) == token and not token.is_over(datetime.now(UTC))

    def create(
        self, tenant: str, roles: tuple[Role, ...], expires: datetime | None = None, note: str = ""
    ) -> tuple[Token, str]:
        """Make a token. Returns what is known of it, and its text, which nobody can ask for again."""
        for role in roles:
            if role not in ROLES:
                raise OptionError(f"there is no role {role!r}; the roles are: {', '.join(ROLES)}")
        if not roles:
            raise OptionError("a token needs a role")
        with self._changing() as tokens:
            identifier = next(each for each in iter(lambda: secrets.token_hex(4), "") if each not in tokens)
            text = f"{_PREFIX}_{identifier}_{secrets.token_urlsafe(32)}"
            created = datetime.now(UTC).isoformat(timespec="seconds")
            end = None if expires is None else expires.replace(tzinfo=expires.tzinfo or UTC).isoformat()
            token = Token(identifier, tenant, tuple(dict.fromkeys(roles)), _hash(text), created, end, note)
            tokens[identifier] = token
        return token, text

    def revoke(self, identifier: str) -> None:
        """Remove a token.

        Raises
        ------
        UnknownIdError
        """
        with self._changing() as tokens:
            if tokens.pop(identifier, None) is None:
                raise UnknownIdError(identifier, "token")

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Token]]:
        """Change the tokens while no other process does."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path.with_name("tokens.lock"), "a", encoding="utf-8") as lock:
            if sys.platform != "win32":
                fcntl.flock(lock, fcntl.LOCK_EX)
            self._seen = None
            self.all()
            tokens = dict(self._tokens)
            yield tokens
            if not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
            with replacing(str(self.path)) as stream:
                text = json.dumps({"tokens": [asdict(token) for token in tokens.values()]}, indent=1)
                stream.write(f"{text}\n".encode())
            self._seen = None


def _read(path: Path) -> list[Token]:
    try:
        text = path.read_text(encoding="utf-8")
        if not text:
            return []  # A process is making the first token.
        return [Token(**{**each, "roles": tuple(each["roles"])}) for each in json.loads(text)["tokens"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> FileError:
    hint = "Hint: restore a backup, or remove it and make new tokens"
    return FileError(f"cannot be read: {error}. {hint}", path=str(path))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def token_record(token: Token) -> dict[str, Any]:
    """What may be shown of a token."""
    found = asdict(token)
    del found["hash"]
    return found
