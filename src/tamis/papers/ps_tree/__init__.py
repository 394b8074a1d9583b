"""PS-Trees and the indexes over them: `ps-tree`, `pst-bloom`, `pst-hash`.

S. Ji, H.-A. Jacobsen: PS-Tree-based Efficient Boolean Expression Matching for High-Dimensional and Dense Workloads.
PVLDB 12(3), 2018. Read in this order:

    elements    the elements of a tree's values
    nodes       inner nodes and leaves in flat arrays; Partition, MatchPair, merging (section 4)
    tree        `PSTree`, a single tree
    covering    the leaves of keys, and the leaves that predicates cover
    forest      one tree for each dimension
    verifying   one event: the leaves that it meets, and its candidates, a block at a time
    forest_index  common to the indexes over a forest
    lists       subscription lists of leaves: the index `ps-tree`
    blocks      leaves in a row, which wide predicates cover together
    signatures  Bloom filters of leaves and blocks
    matching    MatchEvent over lists and signatures (Alg. 5)
    bloom       the index `pst-bloom` (section 5)
    cells       lists of N-dimensional spaces
    meeting     MatchEvent over cells (Alg. 7)
    hashed      the index `pst-hash` (section 6)
    checking    invariants of trees, for tests
"""
