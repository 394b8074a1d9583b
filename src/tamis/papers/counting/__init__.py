"""`counting`: count the satisfied predicates of each subscription, and SIFT's methods. Read in this order:

index           the index `counting`
hit_counting    its two phases on one event
sift            SIFT's methods: counting with enumeration, keys, trees
sift_terms      terms of profiles
sift_matching   matching with these methods
"""
