"""The matcher: subscriptions come and go, and events are matched against all of them.

matcher           Matcher: matching, plans, statistics                       read this first
subscriptions     Matcher as a dictionary; subscription, rejected: what users read back
bulk_add, replacing                        many subscriptions in one call; collecting: without the collector of cycles
unused_memory   what allocators keep after such a call
expression_reader, event_input, json_input, options   what users give: expressions, events, numbers
store, limits     what both stores share, and their sizes
engine_store      storing subscriptions over the engine
engine_matching   matching events over the engine; event_shares, crew: several threads
history_store     a store over the engine that also keeps earlier events
history_changes, history_matching, history_batch   its changes, its matching, and the joins of a batch; history_plan: its plans
keyed_engine      the engine, its dimensions and the gate: compiling, new labels, sweeping
paper_store       subscriptions over an index of the papers
compiling         expressions to conjunctions, for both stores; clauses: to rows of the engine
ids, expression_store                      ids and expressions of slots
naming, plan      matches and access paths as users see them
snapshot, load, frozen, pickling           matchers in files and in other processes; history_snapshot: what a history adds
covering          which subscriptions are identical, covered by others, or never true
exercises         calls that compile all kernels
"""
