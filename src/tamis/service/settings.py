"""Settings from a TOML file, from the environment and from flags. Flags win over the environment, and both win over the file.

    port = 8750                    TAMIS_PORT=8750                       --port 8750
    [limits]
    body_bytes = 1000000           TAMIS_LIMITS_BODY_BYTES=1000000       (no flag)
    [webhooks]
    timeout = 5.0                  TAMIS_WEBHOOKS_TIMEOUT=5.0            (no flag)
    [broker]
    synchronous = "normal"         TAMIS_BROKER_SYNCHRONOUS=normal   (no flag)
    [tenants.shop.limits]          only in the file; what is not given is as in [limits]

A setting that does not exist is an error, so a wrong letter is found when the service starts: in the environment if the variable
looks like one of a group, such as TAMIS_LIMIT_DEPTH. Variables such as TAMIS_URL belong to others.
"""

from __future__ import annotations

import inspect
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

from tamis.broker import open as open_broker
from tamis.broker.arguments import check_synchronous
from tamis.earlier.history import History, read_age
from tamis.errors import FileError, OptionError, SchemaError, did_you_mean, shortened
from tamis.language.schema import Schema
from tamis.service.config import Limits, LogLevel, ServiceConfig, TenantConfig, TokensWanted
from tamis.service.tenant_names import checked_tenant
from tamis.service.webhooks.settings import WebhookSettings

C = TypeVar("C", Limits, ServiceConfig, WebhookSettings)

PREFIX = "TAMIS_"
_TABLES = ("limits", "webhooks", "broker", "tenants")
_GROUPS = re.compile(r"(LIMIT|WEBHOOK|BROKER|TENANT)S?_")
"""How variables begin that can only be meant for a service."""
_WORDS: dict[str, tuple[str, ...]] = {"tokens": get_args(TokensWanted), "log": get_args(LogLevel)}


def read_settings(
    folder: Path, path: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]
) -> ServiceConfig:
    """The configuration of a service. Without a path, ``service.toml`` in the folder is read, if it is there.

    Raises
    ------
    FileError
        The file cannot be read, or a setting in it is wrong.
    OptionError
    """
    found = ServiceConfig(folder)
    file = path or folder / "service.toml"
    if path is not None or file.exists():
        try:
            found = _with_tables(found, _read(file))
        except (OptionError, SchemaError) as error:
            raise FileError(str(error), path=str(file)) from None
    found = _with_environment(found, environment)
    found = _with(found, flags, "flag")
    found.check()
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"not TOML: {error}", path=str(path)) from None
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror}", path=str(path)) from None


def _with_tables(config: ServiceConfig, given: Mapping[str, Any]) -> ServiceConfig:
    plain = {name: value for name, value in given.items() if name not in _TABLES}
    config = _with(config, plain, "setting", (*_names(ServiceConfig), *_TABLES))
    limits = _with(config.limits, _table(given, "limits"), "limit")
    webhooks = _with(config.webhooks, _table(given, "webhooks"), "setting of webhooks")
    broker = _broker_options(_table(given, "broker"))
    tenants = {}
    for name, words in _table(given, "tenants").items():
        checked_tenant(name)
        known = ("limits", "broker", "schema")
        for word in words if isinstance(words, dict) else [words]:
            if word not in known:
                raise OptionError(f"[tenants.{name}] has no {shortened(word)}; there are: {', '.join(known)}")
        own = _with(limits, _table(words, "limits"), "limit")
        options = {**broker, **_broker_options(_table(words, "broker"))}
        schema = words.get("schema")
        if schema is not None:
            Schema.of(schema)
        tenants[name] = TenantConfig(own, options, schema)
    return replace(config, limits=limits, webhooks=webhooks, broker=broker, tenants=tenants)


def _with_environment(config: ServiceConfig, environment: Mapping[str, str]) -> ServiceConfig:
    plain: dict[str, str] = {}
    limits: dict[str, str] = {}
    hooks: dict[str, str] = {}
    broker: dict[str, str] = {}
    for variable, text in environment.items():
        name = variable.removeprefix(PREFIX)
        if name == variable:
            continue
        if name.startswith("LIMITS_"):
            limits[name.removeprefix("LIMITS_").lower()] = text
        elif name.startswith("WEBHOOKS_"):
            hooks[name.removeprefix("WEBHOOKS_").lower()] = text
        elif name.startswith("BROKER_"):
            broker[name.removeprefix("BROKER_").lower()] = text
        elif name.lower() in _names(ServiceConfig):
            plain[name.lower()] = text
        elif _GROUPS.match(name):
            raise OptionError(
                f"the environment has {variable}, which is no setting{did_you_mean(variable, _variables())}"
            )
    before = config.limits
    after = _with(before, {name: _read_text(Limits, name, text) for name, text in limits.items()}, "limit")
    changed = {each.name: getattr(after, each.name) for each in fields(Limits) if each.name in limits}
    options = _broker_options(broker)
    tenants = {
        name: replace(each, limits=replace(each.limits, **changed), broker={**each.broker, **options})
        for name, each in config.tenants.items()
    }
    config = _with(config, {name: _read_text(ServiceConfig, name, text) for name, text in plain.items()}, "setting")
    hooked = {name: _read_text(WebhookSettings, name, text) for name, text in hooks.items()}
    webhooks = _with(config.webhooks, hooked, "setting of webhooks")
    return replace(config, limits=after, webhooks=webhooks, broker={**config.broker, **options}, tenants=tenants)


def _variables() -> list[str]:
    """The variables of limits, webhooks and brokers."""
    groups = (("LIMITS", _names(Limits)), ("WEBHOOKS", _names(WebhookSettings)), ("BROKER", _broker_names()))
    return [f"{PREFIX}{group}_{name.upper()}" for group, names in groups for name in names]


def _read_text(cls: type[C], name: str, text: str) -> Any:
    """The value of a variable of the environment: a number, a list with commas, or a word."""
    kind = next((str(each.type) for each in fields(cls) if each.name == name), "str")
    if kind == "int":
        return int(text) if text.strip().isdecimal() else text
    if kind == "float":
        with suppress(ValueError):
            return float(text)
    if kind.startswith("tuple"):
        return [word for each in text.split(",") if (word := each.strip())]
    return text


def _with(config: C, given: Mapping[str, Any], what: str, known: Iterable[str] | None = None) -> C:
    """The configuration with other values, each of the right type.

    Raises
    ------
    OptionError
    """
    names = _names(type(config))
    types = {each.name: str(each.type) for each in fields(config)}
    for name in given:
        if name not in names:
            listed = sorted(known or names)
            raise OptionError(f"there is no {what} {name!r}{did_you_mean(name, listed)} Known: {', '.join(listed)}")
    return replace(config, **{name: _checked(name, value, types[name]) for name, value in given.items()})


def _checked(name: str, value: Any, kind: str) -> Any:
    if kind == "int":
        if type(value) is not int or value < 0:
            raise OptionError(f"`{name}` must be a number from 0 on, not {shortened(value)}")
    elif kind == "float":
        if type(value) not in (int, float) or not 0 <= value < math.inf:
            raise OptionError(f"`{name}` must be a number from 0 on, not {shortened(value)}")
        return float(value)
    elif kind.startswith("tuple"):
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise OptionError(f"`{name}` must be a list of strings, not {shortened(value)}")
        return tuple(value)
    elif not isinstance(value, str):
        raise OptionError(f"`{name}` must be a string, not {shortened(value)}")
    elif name in _WORDS and value not in _WORDS[name]:
        raise OptionError(f"`{name}` must be {' or '.join(map(repr, _WORDS[name]))}, not {value!r}")
    return value


def _names(cls: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cls) if each.name not in (*_TABLES, "folder"))


def _table(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = given.get(name, {})
    if not isinstance(found, dict):
        raise OptionError(f"`{name}` must be a table, not {shortened(found)}")
    return found


def _broker_names() -> list[str]:
    return [name for name in inspect.signature(open_broker).parameters if name not in ("path", "read_only", "clock")]


def _broker_options(given: Mapping[str, Any]) -> dict[str, Any]:
    known = _broker_names()
    for name in given:
        if name not in known:
            raise OptionError(f"[broker] has no {name!r}; there are: {', '.join(known)}")
    found = dict(given)
    if "history" in found:
        found["history"] = _history(_table(given, "history"))
    if "synchronous" in found:
        check_synchronous(found["synchronous"])
    return found


def _history(given: Mapping[str, Any]) -> History:
    known = [each.name for each in fields(History)]
    for name in given:
        if name not in known:
            raise OptionError(f"[broker.history] has no {name!r}; there are: {', '.join(known)}")
    age = given.get("age")
    return History(**{**given, "age": read_age(age) if isinstance(age, str) else age})
