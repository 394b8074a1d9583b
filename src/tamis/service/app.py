"""The application: routes, errors, and what surrounds every request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, WebSocketRoute
from starlette.websockets import WebSocket

from tamis import __version__
from tamis.errors import TamisError, shortened
from tamis.service.answers import problem_answer
from tamis.service.config import ServiceConfig
from tamis.service.middleware import Surroundings
from tamis.service.problems import ProblemError, problem_of
from tamis.service.routes import (
    administration,
    console,
    description,
    events,
    health,
    language,
    notifications,
    streams,
    subscriptions,
    webhooks,
)
from tamis.service.service import Service

ROUTERS = tuple(
    module.router
    for module in (events, subscriptions, notifications, streams, webhooks, language, administration, health)
)
"""All routes of the API. A request tries one after the other, so the most frequent ones come first."""

_BESIDE = (description.router, console.router)
"""Routes that are no part of the API."""


def make_app(config: ServiceConfig) -> FastAPI:
    """The application of a service. Its brokers are opened when it starts."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = app.state.service = Service(config)
        try:
            await service.open()
        except Exception as error:
            app.state.failed = error
            service.log.close()
            raise
        yield
        await service.close()

    app = FastAPI(
        title="Tamis", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None
    )
    app.state.description = None
    app.add_middleware(Surroundings)
    handlers: tuple[tuple[type[Exception], Any], ...] = (
        (ProblemError, _answer_problem),
        (TamisError, _answer_error),
        (HTTPException, _answer_http),
        (RequestValidationError, _answer_invalid),
        (WebSocketRequestValidationError, _answer_invalid),
    )
    for kind, handler in handlers:
        app.add_exception_handler(kind, handler)
    for router in (*ROUTERS, *_BESIDE):
        # As they are: a request would go twice through the routes of a router that is included.
        app.router.routes.extend(router.routes)
    return app


async def _answer_problem(connection: Request | WebSocket, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return _answered(connection, error)


async def _answer_error(connection: Request | WebSocket, error: Exception) -> Response:
    assert isinstance(error, TamisError)
    return _answered(connection, problem_of(error))


async def _answer_http(connection: Request | WebSocket, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = shortened(connection.scope["path"])
    if error.status_code == 405:
        methods = ", ".join(_methods(connection))
        detail = f"{path} has no method {connection.scope.get('method')}; it has: {methods}"
        return _answered(connection, ProblemError(405, "wrong-method", detail, headers={"Allow": methods}))
    if error.status_code == 404 and _is_socket(connection):
        detail = f"{path} is a WebSocket. Hint: connect with ws: or wss:, or read .../stream"
        headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
        return _answered(connection, ProblemError(426, "not-a-websocket", detail, headers=headers))
    if error.status_code == 404:
        detail = f"there is no route {path}. Hint: /openapi.json lists the routes"
        return _answered(connection, ProblemError(404, "unknown-route", detail))
    return _answered(connection, ProblemError(error.status_code, "http", str(error.detail), headers=error.headers))


def _is_socket(connection: Request | WebSocket) -> bool:
    """Whether a WebSocket has the path of a request."""
    scope = {**connection.scope, "type": "websocket"}
    return any(
        isinstance(route, WebSocketRoute) and route.matches(scope)[0] is not Match.NONE
        for route in streams.router.routes
    )


def _methods(connection: Request | WebSocket) -> list[str]:
    """The methods of all routes with the path of a request. The answer of Starlette knows those of the first route only."""
    found = {
        method
        for router in (*ROUTERS, *_BESIDE)
        for route in router.routes
        if isinstance(route, Route) and route.matches(connection.scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    if "GET" in found and not connection.scope["path"].endswith("/stream"):
        found.add("HEAD")
    return sorted(found)


async def _answer_invalid(connection: Request | WebSocket, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError | WebSocketRequestValidationError)
    found = [{"place": list(each["loc"]), "reason": each["msg"]} for each in error.errors()]
    given = [shortened(each["input"]) for each in error.errors()]
    detail = "; ".join(
        f"{each['place'][0]} parameter `{each['place'][-1]}`: {each['reason'][:1].lower()}{each['reason'][1:]}, not {text}"
        for each, text in zip(found, given, strict=True)
    )
    return _answered(connection, ProblemError(422, "invalid", detail, errors=found))


def _answered(connection: Request | WebSocket, problem: ProblemError) -> Response:
    """The answer. A WebSocket that is not open yet is refused with it."""
    return problem_answer(problem, connection.scope["state"].get("request_id"))
