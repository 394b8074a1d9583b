"""The service: brokers on a network. `docs/service.md` describes it for users.

Read in this order:

    config           what a service is told                       settings         from a file, the environment and flags
    server           one process: sockets, signals, the end       protocol         HTTP with limits on connections and heads
    app              the application: routes and errors           middleware       what surrounds every request
    service          what all requests share                      request_log      logs as JSON lines
    checks           what keeps a service from starting
    tenant_names     names of tenants and their folders           first_use        compiled before the service is ready
    tenants          a tenant is a broker of its own              work             calls of brokers, in threads
    connections      who makes room when there are too many       origins          which pages may call from a browser
    access           who asks, and what he may                    tokens           tokens in a file, hashed
    rate             how many requests a tenant may send          hub              who waits for notes
    problems         errors as problem documents                  answers          answers as JSON
    json_reader      strict JSON                                  bodies           bodies of requests, within limits
    given            what requests give, checked
    line_publishing  the events of a body of lines                line_subscribing the subscriptions of a body of lines
    single_publishing  single events of many requests, together   turns            few requests begin in a turn of the loop
    event_schema     which strings are timestamps                 path_names       names in paths
    tenant_files     what a tenant has beside its broker
    metrics          counters and histograms, as text             figures          figures of a tenant
    process_metrics  figures of the process                       documented       what OpenAPI says of a route
    socket_protocol  WebSocket with limits on what a client sends
    note_pages       pages of notes as JSON text                   receipts         receipts as JSON text
    webhooks         notes that are sent to a URL
    routes           the routes, a module for each noun           console          the page for browsers; its plan is in main.js

Only this package knows FastAPI and uvicorn. They are the extra ``tamis[service]``.
"""
