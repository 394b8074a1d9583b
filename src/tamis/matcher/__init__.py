"""The matcher: subscriptions come and go, and events are matched against all of them.

matcher           Matcher: matching, plans, statistics                       read this first
subscriptions     what it has of a dictionary; subscription, rejected        what users read back
bulk_add, replacing                 many subscriptions in one call
expression_reader, event_input, options    what users give: expressions, events, numbers
store             what both stores share
engine_store      subscriptions over the engine; clauses, gate, crew, event_shares
paper_store       subscriptions over an index of the papers
ids, expression_store               ids and expressions of slots
naming, plan      matches and access paths as users see them
snapshot, load, frozen, pickling    matchers in files and in other processes
exercises         calls that make all kernels be compiled
"""
