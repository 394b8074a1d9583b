"""Whether the service lives. These routes need no token and say nothing about tenants."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tamis.service.answers import json_answer
from tamis.service.documented import TEXT, documented, form
from tamis.service.problems import ProblemError
from tamis.service.service import Service

router = APIRouter(tags=["health"])


@router.get("/health", **documented(form(status=TEXT)))
async def health() -> Response:
    """The process answers."""
    return json_answer({"status": "ok"})


@router.get("/ready", **documented(form(status=TEXT)))
async def ready(request: Request) -> Response:
    """All brokers are open, and the process was not told to end."""
    service: Service = request.app.state.service
    if not service.is_ready or service.stopping.is_set():
        raise ProblemError(503, "not-ready", "the service is starting or ending", headers={"Retry-After": "1"})
    return json_answer({"status": "ready"})
