"""Names in paths. Importing this module makes ``{subscriber:name}`` known to routes."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor


class NameConvertor(Convertor[str]):
    """A name in a path, such as ``{subscriber:name}``. It may have any characters, also %2F: see `Surroundings`."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value, errors="surrogateescape")

    def to_string(self, value: str) -> str:
        raise NotImplementedError("no route is named in an answer")


register_url_convertor("name", NameConvertor())
