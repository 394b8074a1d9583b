"""From values and expressions to integers: dimensions, keys, conjunctions, batches of events.

    dimensions/   attribute and facet -> dimension; value -> key; predicate -> key intervals           read this first
    expressions/  expression -> conjunctions of key intervals, one by one or in bulk
    events/       event -> (dimension, key interval), for one mapping, a list of mappings or an Arrow table
    columns       Arrow columns as both of them read them
    evaluation    whether predicates in keys are true of an event in keys, for kernels

*Plain* values and conjunctions take quick ways, with the same result. A plain value is a number or a string whose attribute has
a single dimension, of the same kind. A plain conjunction is an AND of predicates, none of them with lower or upper.

`expressions` and `events` know nothing of each other. They meet in the keys of `dimensions`, and in `evaluation`.
"""
