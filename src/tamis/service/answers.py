"""Answers as JSON, and the media type of NDJSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from tamis.service.problems import MEDIA_TYPE, ProblemError

NDJSON = "application/x-ndjson"


def json_bytes(value: Any) -> bytes:
    """A value as JSON in UTF-8. A lone surrogate, which UTF-8 lacks, is escaped."""
    text = _encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _encode_ascii(value).encode()


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer with one JSON value."""
    return Response(json_bytes(value), status, headers, media_type="application/json")


def problem_answer(problem: ProblemError, request_id: str | None = None) -> Response:
    """The answer for an error."""
    body = json_bytes(problem.document(request_id))
    return Response(body, problem.status, problem.headers, media_type=MEDIA_TYPE)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
