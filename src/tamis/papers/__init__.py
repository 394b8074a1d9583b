"""The indexes of the papers: one interface, one folder or module per algorithm, found by name.

    interface   the interface of an index                 read this first
    options     the options of an index                   registry    the indexes by name
    scan        tests every conjunction: the simplest index, and a model for others
    be_tree/    counting/    fabret/    gryphon    k_index/    op_index/    ps_tree/    tatbul/
    parts/      code that several indexes share
    owners      which subscriptions own which conjunctions
    factor_table  the table of indexes that take conjunctions of disjunctions

An index never imports an index of another paper.
"""
