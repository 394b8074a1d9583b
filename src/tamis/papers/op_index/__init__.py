"""OpIndex: subscriptions by pivot attribute, their predicates by operator, matched by counting down.

D. Zhang, C.-Y. Chan, K.-L. Tan: An Efficient Publish/Subscribe Index for E-Commerce Databases (VLDB 2014). Read in this order:

    entries         predicates as entries of operator lists           lists          predicate lists L(A, op), in segments
    probes          where an event looks in these lists               matching       counting down (Algorithm 2), clearing bits
    counting_index  the index `op-index`                              index          chooses between it and `cnf`
    factors, cnf    conjunctions of disjunctions (6.1)                growing_lists  lists with several columns
    operator_lists  lists for any operator (6.2)                      trie           that of prefixes
    named_index     an index over names, with such operators
"""
