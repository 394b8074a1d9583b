"""Code that several indexes share.

records     the predicates of conjunctions, to be checked       past_events  past events: how selective predicates are
pair_map    a hash table over pairs of numbers                  slabs        many lists in one array
collecting  matches of unknown number from kernels              static       indexes that are built once
size        bytes of all arrays of an object                    parting      parts intervals at the keys of a tree
"""
