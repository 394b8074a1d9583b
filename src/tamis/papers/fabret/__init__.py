"""The filtering algorithms of Fabret, Jacobsen, Llirbat, Pereira, Ross and Shasha (SIGMOD 2001).

Phase 1 finds the predicates that an event satisfies, phase 2 tests subscriptions by their bits. Read in this order:

    bit_vector          a bit for each distinct predicate             points, ranges   predicates by key, and by interval
    predicate_index     all three together                            access           access predicates and hash tables
    clusters            subscriptions of one access predicate         two_phase        the structures of all three indexes
    matching            the event matching algorithm                  statistics       what events are like: mu and nu
    propagation         the index with single equalities (2)
    schemas             sets of attributes                            greedy           which of them get a table
    assignment          the best access predicate for given tables    static_clustering    the index for known subscriptions (3)
    power               what a new table would save                   dynamic_clustering   the index that follows changes (4)
"""
