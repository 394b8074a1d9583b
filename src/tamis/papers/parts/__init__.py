"""Code that several indexes share. No module needs another one. Read in this order:

collecting    matches of unknown number from kernels
records       the predicates of conjunctions, to be checked
slabs         many lists in one array
pair_map      a hash table over pairs of numbers
static        indexes that are built once
past_events   past events: how selective predicates are
parting       parts intervals at the keys of a tree
size          bytes of all arrays of an object
"""
