"""The indexes of the papers: one interface, one folder or module per algorithm, found by name.

    interface   what an index is                          read this first
    options     what can be set on an index               registry    the indexes by name
    scan        every conjunction, one by one: the simplest index, and a model for others
    be_tree/    counting/    fabret/    gryphon    k_index/    op_index/    ps_tree/    tatbul/
    parts/      what several indexes use
    owners      which subscriptions own which conjunctions
    clause_table  the table of indexes that take conjunctions of disjunctions

Indexes of different papers know nothing of each other.
"""
