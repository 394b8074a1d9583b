"""`be-tree`: a tree that divides dense parts of the space by an attribute, then by its values, and so on.

Sadoghi and Jacobsen: BE-Tree: An Index Structure to Efficiently Match Boolean Expressions over High-dimensional Discrete Space
(SIGMOD 2011). Implemented: the structure and its rules (4.1 to 4.3, Table 1), ranking and recycling (5), algorithms 1 to 6, the
batch construction BE-B (7.2), and deletion, which the paper omits.

    c-node (root)                         l-node: expressions with no p-node for them here
      p-node a                            p-directory: one p-node for each attribute, every expression below has it
        bucket a [1, 8]                   c-directory: buckets, cut in halves; each has one c-node,
          l-node, p-node b ...            with an l-node and a p-directory of its own
          bucket a [1, 4]                 every expression lies in the smallest bucket that encloses it
            l-node
      p-node d
        bucket d [1, 8]

Read in this order:

    nodes          the arrays, drawn there
    domains        constants, and where to cut
    entries        expressions in l-nodes
    matching       algorithms 1 and 2: the expressions that an event satisfies
    insertion      algorithms 3 to 6: where an expression goes
    partitioning   algorithm 5: how a full l-node is divided
    removal        deleting, merging and recycling
    tree           the index `be-tree`
    inspection     its drawing and its invariants, for tests

Invariants
----------
- An expression is in one l-node. No p-node of the same c-node has an attribute of the expression that is not used above.
- An expression lies in the smallest bucket that encloses it (insertion rule). If that bucket is split, neither half encloses it.
- The c-node of a bucket that is not split has p-nodes only if the bucket is atomic (forced split rule).
- No attribute is used twice on a path. No l-node has more expressions than its capacity, a multiple of max_cap.

Departures from the paper
-------------------------
- The domain of a dimension spans the constants seen so far, or options set it. The outermost buckets are open to their side,
  which has the same effect as clamping values into the domain. When many constants lie outside, the domain grows: the p-nodes of
  its dimension are taken out and inserted again. The same happens when many constants are not whole numbers any more.
- Numbers are not discrete: a bucket is cut at the middle of its values. A bucket is atomic if it is a single value, or if all
  its expressions have the same interval, which no cut can separate. When an expression with another interval arrives, the
  partitions of the bucket are taken out and inserted again. Boundaries are tight, so this saves only a chain of buckets with one
  half each.
- A half gets its node when the first expression is put there.
- The place of each conjunction is noted, so deleting needs no search. Both halves of a bucket are merged, or neither.
- If an event has several values or intervals, `<>` and NOT IN hold if no value is among the named ones, as everywhere in the
  language. In the paper they hold if some value is not named. For other events both rules are the same.
- In the gain of a bucket, a predicate counts as equal to the bucket if both have the same ends. A predicate that is open to a
  side, or `<>`, never counts as equal. With the defaults of alpha_s and alpha_c, which are the same, that makes no difference.
- The weights of the gain are 0.1 by default, not 1, so that a rank can fall below theta = 0. Recycling is paid for: each
  insertion and deletion, and every few thousand candidates, pay for one expression that is inserted again.
- Predicates that the path has decided are tested too. But the first test is a predicate about which the path says nothing.
- The loss of a node counts expressions evaluated in vain in its l-node, and one for each event that its boundary turns away. Its
  window has at least `least_window` operations. The root is not recycled: that would rebuild the whole tree. The paper names
  several adaptation policies but describes only recycling, so only recycling is implemented.
"""

from tamis.papers.be_tree.tree import BETree

__all__ = ["BETree"]
