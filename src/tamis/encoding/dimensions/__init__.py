"""Dimensions: an attribute with one facet of its values, and the keys in which predicates and events meet.

Read in this order:

    keys           values -> 64-bit keys that keep the order             intervals      sets of keys
    labels         keys for strings and large integers                   leaf           a predicate in keys
    dimension      one dimension: how its values become keys             dimension_set  all dimensions of a matcher
    patterns       which of many patterns a string contains              automaton      all needles in one pass
    premises       strings without which an attribute is not needed
    regex_literals what a regular expression cannot match without        texts          columns of strings
"""
