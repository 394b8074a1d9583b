"""What OpenAPI says of all routes. It is made at the first request, in a thread, since that takes a tenth of a second."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from tamis.service.answers import json_bytes
from tamis.service.service import Service

router = APIRouter(include_in_schema=False)


@router.get("/openapi.json")
async def description(request: Request) -> Response:
    """The document of OpenAPI."""
    app: FastAPI = request.app
    service: Service = app.state.service
    if app.state.description is None:
        loop = asyncio.get_running_loop()
        app.state.description = await loop.run_in_executor(service.threads.pool, lambda: json_bytes(app.openapi()))
    return Response(app.state.description, media_type="application/json")
