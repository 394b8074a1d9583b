"""Who asks, and what he may. A route names the role that it needs:

    @router.post("/v1/events")
    async def publish(visit: PublishVisit) -> Response: ...

Every route needs a role, except those of `OPEN`. A test lists the routes and checks that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection

from tamis.errors import FileError, OptionError, did_you_mean, shortened
from tamis.service.connections import PLACE, TOO_MANY, Place
from tamis.service.problems import ProblemError
from tamis.service.service import Service
from tamis.service.tenant_names import DEFAULT
from tamis.service.tenants import Tenant
from tamis.service.tokens import ALL_TENANTS, ROLES, Role, Token

OPEN = ("/", "/console/{name}", "/health", "/ready", "/openapi.json")
"""Routes that need no token."""
TENANT_HEADER = "tamis-tenant"
TOKEN_PARAMETER = "access_token"
"""Where a browser puts the token of a stream: it cannot set headers there."""
_STREAMS = ("/stream", "/socket")


@dataclass(frozen=True, slots=True)
class Visit:
    """One request: the tenant that it may see, and the roles that it has."""

    service: Service
    tenant: Tenant
    roles: frozenset[Role]
    token: Token | None
    sees_all: bool
    """Whether it may see all tenants: an operator's token, or no tokens are needed."""
    state: dict[str, Any]
    """What the log and the metrics know of the request."""

    def check_token(self) -> None:
        """Refuse to go on if the token was revoked or is over meanwhile. Streams ask before each page.

        Raises
        ------
        ProblemError
        """
        with _reading_tokens(self.service):
            if self.token is not None and not self.service.tokens.is_valid(self.token):
                raise _no_token()

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Count a stream, or a request that waits, while the block runs.

        Raises
        ------
        ProblemError
        """
        metrics, most = self.tenant.metrics, self.tenant.limits.streams
        if most and metrics.streams >= most:
            detail = f"at most {most:,} streams are allowed at the same time"
            raise ProblemError(429, "too-many-streams", detail, headers={"Retry-After": "5"})
        self.state["is_stream"] = True
        metrics.streams += 1
        place: Place | None = self.state.get(PLACE)
        if place is not None:
            place.is_stream = True
        try:
            yield
        finally:
            metrics.streams -= 1
            if place is not None:
                place.is_stream = False


async def visit_of(connection: HTTPConnection) -> Visit:
    """The visit of a request or of a WebSocket.

    Raises
    ------
    ProblemError
        401 without a valid token, 404 for a tenant that does not exist, 429 beyond the rate of the tenant.
    """
    service: Service = connection.app.state.service
    if not service.is_ready:
        raise ProblemError(503, "not-ready", "the service is starting. Hint: ask /ready", headers={"Retry-After": "1"})
    token = _token(connection, service)
    roles: frozenset[Role] = frozenset(ROLES if token is None or "admin" in token.roles else token.roles)
    sees_all = token is None or token.tenant == ALL_TENANTS
    wanted = connection.headers.get(TENANT_HEADER)
    name = (wanted or DEFAULT) if token is None or sees_all else token.tenant
    tenant = await service.tenants.get(name) if wanted is None or wanted == name else None
    if tenant is None:
        # A token of one tenant gets the same answer for tenants that exist and for others.
        raise ProblemError(404, "unknown-tenant", "there is no such tenant for this token")
    state = connection.scope["state"]
    state["tenant"], state["token"] = tenant, None if token is None else token.id
    seconds = tenant.requests.wait()
    if seconds:
        tenant.metrics.refused += 1
        raise too_fast(tenant.limits.requests_per_second, "requests", seconds)
    tenant.requests.take(1)
    place: Place | None = state.get(PLACE)
    if place is not None and not place.claim(tenant.name, connection.client.host if connection.client else ""):
        tenant.metrics.refused += 1
        raise ProblemError(429, *TOO_MANY, headers={"Retry-After": "1"})
    return Visit(service, tenant, roles, token, sees_all, state)


def too_fast(per_second: int, what: str, seconds: float) -> ProblemError:
    """The problem of a tenant that sends too many requests or events."""
    headers = {"Retry-After": str(math.ceil(seconds))}
    return ProblemError(429, "too-fast", f"at most {per_second:,} {what} per second are allowed", headers=headers)


def _token(connection: HTTPConnection, service: Service) -> Token | None:
    """The token of a request; None if it has none and needs none.

    Raises
    ------
    ProblemError
    """
    scheme, _, text = connection.headers.get("authorization", "").partition(" ")
    if not scheme and connection.scope["path"].endswith(_STREAMS):
        text = connection.query_params.get(TOKEN_PARAMETER, "")
        scheme = "bearer" if text else ""
    if not scheme and not service.config.needs_tokens:
        return None
    with _reading_tokens(service):
        found = service.tokens.find(text.strip()) if scheme.lower() == "bearer" else None
    if found is None:
        raise _no_token()
    return found


@contextmanager
def _reading_tokens(service: Service) -> Iterator[None]:
    """Say in the log why the tokens cannot be read, and nothing of it in the answer.

    Raises
    ------
    ProblemError
    """
    try:
        yield
    except FileError as error:
        service.log("error", "tokens", reason=str(error))
        raise ProblemError(503, "no-tokens", "the tokens cannot be read. Hint: the log says why") from None


def _no_token() -> ProblemError:
    detail = "this needs a valid token. Hint: send `Authorization: Bearer TOKEN`; `tamis token create` makes one"
    return ProblemError(401, "no-token", detail, headers={"WWW-Authenticate": 'Bearer realm="tamis"'})


class Needs:
    """A dependency of FastAPI: a visit that has one of some roles."""

    def __init__(self, *roles: Role) -> None:
        self.roles = roles

    async def __call__(self, connection: HTTPConnection) -> Visit:
        visit = await visit_of(connection)
        if not visit.roles.intersection(self.roles):
            raise ProblemError(403, "forbidden", f"this needs a token with the role {' or '.join(self.roles)}")
        _check_parameters(connection)
        return visit


def _check_parameters(connection: HTTPConnection) -> None:
    """Refuse parameters that the route does not have: one with a wrong letter would change nothing, and nobody would notice.

    Raises
    ------
    OptionError
    """
    given = [name for name, _ in connection.query_params.multi_items()]
    known = _parameters(connection.scope["route"]) if given else ()
    for name in given:
        if name not in known:
            rest = f"; the parameters are: {', '.join(known)}" if known else "; this route has no parameters"
            raise OptionError(f"there is no parameter {shortened(name)}{did_you_mean(name, list(known))}{rest}")
        if given.count(name) > 1:
            raise OptionError(f"the parameter {name!r} is given twice")


def _parameters(route: APIRoute | APIWebSocketRoute) -> tuple[str, ...]:
    """The parameters of a route behind the question mark."""
    names = tuple(_parameters_of(route.dependant))
    return (*names, TOKEN_PARAMETER) if route.path.endswith(_STREAMS) else names


def _parameters_of(dependant: Dependant) -> Iterator[str]:
    yield from (each.alias for each in dependant.query_params)
    for each in dependant.dependencies:
        yield from _parameters_of(each)


def needs(*roles: Role) -> Any:
    """What a route declares to get a visit that has one of these roles."""
    return Depends(Needs(*roles))


PublishVisit = Annotated[Visit, needs("publish")]
SubscribeVisit = Annotated[Visit, needs("subscribe")]
AdminVisit = Annotated[Visit, needs("admin")]
AnyVisit = Annotated[Visit, needs(*ROLES)]
