"""`be-tree`: a tree that cuts the space by an attribute, then by its values, and so on, where expressions are dense.

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

Modules: `nodes` (the arrays, drawn there), `domains` (constants, and where to cut), `entries` (expressions in l-nodes),
`insertion`, `partitioning`, `removal`, `matching`, `tree` (the index), `inspection` (its drawing and its invariants).

Invariants
----------
- An expression is in one l-node: of a c-node none of whose p-nodes has an attribute that it has and that is not used above.
- It lies in the smallest bucket that encloses it (insertion rule): the own expressions of one that is split are in neither half.
- The c-node of a bucket that is not split has p-nodes only if the bucket is atomic (forced split rule).
- No attribute is used twice on a path. No l-node has more expressions than its capacity, a multiple of max_cap.

Departures from the paper
-------------------------
- Domains are those of the constants seen so far, or as options say. The outermost buckets are open to their side, which is what
  clamping values into the domain comes to. When many constants lie outside, the domain is made wider, and the p-nodes of its
  dimension are taken out and inserted again; the same when many are not whole numbers any more.
- Numbers are not discrete: a bucket is cut at the middle of its values. It is atomic if it is a single value, or all expressions
  in it have one and the same interval, which no cut can separate; when another one arrives, what was partitioned so is taken
  out and inserted again. With boundaries as tight as they are, this leaves out nothing but a chain of buckets with one half each.
- A half that encloses nothing has no node until something is put there.
- Where a conjunction is, is noted, not searched for, when it is deleted. Halves are merged together or not at all.
- Of an event with several values or intervals, `<>` and NOT IN ask that none of its values is among those named, as everywhere in
  the language; in the paper, as any other predicate, that some value is not. For other events it is the same.
- In the gain of a bucket, a predicate counts as equal to it if its ends are the bucket's; one that is open to a side, or `<>`,
  never does. With the defaults of alpha_s and alpha_c, both 1, that makes no difference.
- No predicate is left out since the path decides it; but the first that is tested is one that the path says nothing of.
- The loss of a node counts what is evaluated in vain in its l-node, and one for each event that its boundary turns away. Its
  window has at least `least_window` operations, and the root is not recycled: it would be the whole tree. Of the adaptation
  policies that the paper names, only recycling is described there, and only that is here.
"""

from tamis.papers.be_tree.tree import BETree

__all__ = ["BETree"]
