"""Expressions to conjunctions of key intervals.

Read in this order:

    compile             one expression -> clauses of predicates in keys
    predicates          predicates in columns                    conjunctions        the table of distinct conjunctions
    programs            large expressions as jump code           phrases             from keys back to words
    plain_row           one plain conjunction, the quick way
    predicate_table     Arrow tables of predicates               predicate_rows      the same, taken apart
    kept_predicates     the same in little memory                row_premises        what an event must have to match
    predicate_encoding  all of these rows in bulk
"""
