"""The routes, a module for each noun. Each module has a `router`, and `app` includes it.

    subscriptions   what subscribers want                         events          publishing
    notifications   reading notes, and acknowledging them         language        expressions: checked, explained, compared
    streams         notes as they come                            webhooks        where notes are sent
    administration  figures, changes, retention, schema           health          whether the service lives
    console         the page of the console                       description     what OpenAPI says of the routes

A route asks for a visit with the role that it needs, such as ``visit: PublishVisit``. The visit has the tenant, and
``await visit.tenant.work(call)`` runs a call of its broker in a thread. No route calls a broker in the event loop.
"""

from __future__ import annotations

from tamis.service import path_names as path_names
