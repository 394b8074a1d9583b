"""Five indexes on constant predicates: E. N. Tatbul, Index Structures and Algorithms for Efficient Profile Matching (2001), 4.1.

Read in this order:

    profiles            the rows of the table as profiles: for every attribute, intervals of profiles
    vectors             sets of profiles as compressed bit vectors
    elementary          elementary intervals between the endpoints of an attribute
    matching            common to the five: one tree for each attribute, whose vectors are ANDed
    cluster_tree        clusters of profiles, split by keys
    cluster_index       4.1.1: leaves hold the profiles that may match
    interval_index      4.1.2: a binary search tree of elementary intervals with the profiles that do match
    hybrid_index        4.1.3: interval indexes on the leaves of a cluster index
    segment_tree        4.1.4: profiles at the nodes that their intervals cover
    interval_tree       4.1.4: every interval once, in two sorted lists of the node whose key it contains
"""
