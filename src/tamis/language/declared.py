"""What is declared for the attributes of a schema, read from words, Python types and Arrow types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, get_args, get_origin

from tamis.errors import ExpressionError, SchemaError, did_you_mean, shortened
from tamis.language.checks import check_attribute
from tamis.language.event import MAX_NESTING
from tamis.language.values import Kind

_SPELLINGS: dict[str, Kind] = {
    **dict.fromkeys(("number", "integer", "int", "bigint", "long", "float", "double", "decimal"), Kind.NUMBER),
    **dict.fromkeys(("string", "str", "text", "varchar"), Kind.STRING),
    **dict.fromkeys(("boolean", "bool"), Kind.BOOLEAN),
    **dict.fromkeys(("timestamp", "datetime", "date"), Kind.TIMESTAMP),
}
_TYPES: dict[type, Kind] = {
    int: Kind.NUMBER,
    float: Kind.NUMBER,
    Decimal: Kind.NUMBER,
    str: Kind.STRING,
    bool: Kind.BOOLEAN,
    date: Kind.TIMESTAMP,
    datetime: Kind.TIMESTAMP,
}


@dataclass(frozen=True, slots=True)
class Declared:
    """What an attribute's values are, and whether there may be several at once."""

    kind: Kind
    several: bool = False

    def __str__(self) -> str:
        return f"list<{self.kind}>" if self.several else str(self.kind)


def read_declared(source: Any) -> dict[str, Declared]:
    """The declarations of a mapping from names to kinds or of a `pyarrow.Schema`, nested ones under dotted names.

    Raises
    ------
    SchemaError
        Naming the entry that cannot be read.
    """
    if _is_arrow(source) and hasattr(source, "names"):
        fields: Iterable[tuple[Any, Any]] = [(field.name, field.type) for field in source]
    elif isinstance(source, Mapping):
        fields = source.items()
    else:
        raise SchemaError(
            f"a schema must be a mapping from attributes to kinds or a pyarrow.Schema, not {shortened(source)}. "
            'Hint: {"price": "number", "tags": "list<string>"}'
        )
    entries: dict[str, Declared] = {}
    for name, kind in fields:
        _declare(entries, name, kind, 1)
    return entries


def _declare(entries: dict[str, Declared], name: Any, kind: Any, depth: int, several: bool = False) -> None:
    """Enter an attribute, or those of a nested object under dotted names; `several` within a list of objects."""
    try:
        name = check_attribute(name)
    except ExpressionError as error:
        raise SchemaError(str(error)) from None
    if depth > MAX_NESTING:
        raise SchemaError(
            f"the schema is nested deeper than {MAX_NESTING} levels, or contains itself: {name[:60]!r}..."
        )
    element = _element(kind)
    if element is not None:
        _declare(entries, name, element, depth + 1, several=True)
        return
    fields = _fields(kind)
    if fields is not None:
        for key, inner in fields:
            if not isinstance(key, str) or not key:
                raise SchemaError(
                    f"an attribute's name must be a non-empty string, not {shortened(key)} (inside {name!r})"
                )
            _declare(entries, f"{name}.{key}", inner, depth + 1, several)
        return
    if name in entries:
        raise SchemaError(f"attribute {name!r} is declared twice: nested and as a dotted name")
    declared = _read(name, kind)
    entries[name] = Declared(declared.kind, several or declared.several)


def _element(kind: Any) -> Any:
    """What a list of objects or of lists holds: ``[{"port": "number"}]``, or an Arrow list; None for anything else."""
    if isinstance(kind, list) and len(kind) == 1 and isinstance(kind[0], Mapping | list):
        return kind[0]
    if not _is_arrow_type(kind):
        return None
    import pyarrow.types as arrow

    if not (arrow.is_list(kind) or arrow.is_large_list(kind) or arrow.is_fixed_size_list(kind)):
        return None
    return kind.value_type if arrow.is_nested(kind.value_type) else None


def _fields(kind: Any) -> list[tuple[Any, Any]] | None:
    """The fields of a nested mapping or an Arrow struct; None for anything else."""
    if isinstance(kind, Mapping):
        return list(kind.items())
    if _is_arrow_type(kind):
        import pyarrow.types as arrow

        if arrow.is_struct(kind):
            return [(kind.field(place).name, kind.field(place).type) for place in range(kind.num_fields)]
    return None


def _read(name: str, kind: Any) -> Declared:
    if isinstance(kind, Declared):
        return kind
    if isinstance(kind, Kind):
        return Declared(kind)
    if isinstance(kind, str):
        return _read_word(name, kind)
    if _is_arrow_type(kind):
        return _read_arrow(name, kind)
    if get_origin(kind) in (list, set, frozenset, tuple):
        elements = {found for found in map(_of_type, get_args(kind)) if found is not None}
        if len(elements) == 1:
            return Declared(elements.pop(), several=True)
    found = _of_type(kind)
    if found is None:
        raise SchemaError(
            f"attribute {name!r}: {shortened(kind)} is not a kind. Hint: number, string, boolean, timestamp, list<...>"
        )
    return Declared(found)


def _of_type(kind: Any) -> Kind | None:
    return _TYPES.get(kind) if isinstance(kind, type) else None


def _read_word(name: str, word: str) -> Declared:
    text = "".join(word.lower().split())
    several = text.startswith(("list<", "array<")) and text.endswith(">")
    kind = _SPELLINGS.get(text[text.index("<") + 1 : -1] if several else text)
    if kind is None:
        hint = (
            did_you_mean(word, list(_SPELLINGS)) or "; the kinds are number, string, boolean, timestamp and list<...>"
        )
        raise SchemaError(f"attribute {name!r}: {shortened(word)} is not a kind{hint}")
    return Declared(kind, several)


def _is_arrow(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pyarrow"


def _is_arrow_type(value: Any) -> bool:
    return _is_arrow(value) and hasattr(value, "num_buffers")


def _read_arrow(name: str, kind: Any) -> Declared:
    import pyarrow.types as arrow

    if arrow.is_list(kind) or arrow.is_large_list(kind) or arrow.is_fixed_size_list(kind):
        return Declared(_arrow_kind(name, kind.value_type), several=True)
    return Declared(_arrow_kind(name, kind))


def _arrow_kind(name: str, kind: Any) -> Kind:
    import pyarrow.types as arrow

    if arrow.is_dictionary(kind):
        kind = kind.value_type
    if arrow.is_integer(kind) or arrow.is_floating(kind) or arrow.is_decimal(kind):
        return Kind.NUMBER
    if arrow.is_string(kind) or arrow.is_large_string(kind) or arrow.is_string_view(kind):
        return Kind.STRING
    if arrow.is_boolean(kind):
        return Kind.BOOLEAN
    if arrow.is_timestamp(kind) or arrow.is_date(kind):
        return Kind.TIMESTAMP
    raise SchemaError(f"attribute {name!r}: the Arrow type {kind} is not supported")
