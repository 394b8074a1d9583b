"""`k-index`: posting lists by size, attribute and value. Read in this order:

index                  the index `k-index`, with the paper and the idea
posting                posting lists in arrays
enumeration            ranges as sets of values
conjunction_algorithm  how the lists of an event are intersected
"""
