"""The console: one page, from the files of the package. It asks for its data as any other client does, so it needs no token."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tamis.service.problems import ProblemError

router = APIRouter(include_in_schema=False)

_PAGE = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # The browser refuses to read any text as HTML.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # A browser asks again each time, so a new version is seen at once.
    "Cache-Control": "no-cache",
}


class _File(NamedTuple):
    body: bytes
    media_type: str
    tag: str


@cache
def _console() -> dict[str, _File]:
    """All files of the console, by name. They are some tens of kB, and are read once."""
    found = {}
    for entry in files("tamis.service").joinpath("console").iterdir():
        _, dot, ending = entry.name.rpartition(".")
        if dot + ending in _TYPES:
            body = entry.read_bytes()
            found[entry.name] = _File(body, _TYPES[dot + ending], f'"{hashlib.sha256(body).hexdigest()[:20]}"')
    return found


@router.get("/")
async def page(request: Request) -> Response:
    """The page of the console."""
    return _answer(request, _PAGE)


@router.get("/console/{name}")
async def part(request: Request, name: str) -> Response:
    """A file that the page needs."""
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    found = _console().get(name)
    if found is None:
        raise ProblemError(404, "unknown-route", "the console has no such file")
    headers = {**_HEADERS, "ETag": found.tag}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.body, headers=headers, media_type=found.media_type)
