"""Our own index: immutable segments with access paths chosen by cost, and what lets them change.

    engine      adding, removing, publishing and merging; one writer, many readers                   read this first
    version     the parts that a match works on, and matching a batch
    rows        the clauses of subscriptions on their way into a segment
    delta       new rows, found by a hash table                      segment     rows laid out for matching
    slot_table  when slots died, where their rows are                slot_lease  how long readers may meet a removed slot
    merging     which parts become one, and when                     watch       whether events keep to a segment's plan
    sample      past events, from which the planner learns           single      one event in one kernel
    top_k       the matches with the largest weights                 snapshot    an engine as named arrays
    limits      sizes of deltas, merges and buffers                  interrupts  calls inside of calls

    layout/     how a segment is planned and laid out
    matching/   how an event meets a segment

`layout` and `matching` do not know the modules beside them.
"""
