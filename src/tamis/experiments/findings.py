"""Findings: why a claim of a paper does not hold here, each with what was measured.

The numbers are those of the published run at scale laptop. A finding is shown only where a claim did not hold.
"""

from __future__ import annotations

_BLOOM_BUILDS = (
    "PSTBloom inserts each predicate into a tree, and the conjunction into the signatures of all leaves that the predicate "
    "covers. BE-Tree looks only at the few predicates on the way down, so it does less for a subscription of ten "
    "predicates. In table 2 of the paper itself, PSTBloom is ahead of BE-Tree by 43 %, on a workload whose predicates cover "
    "few leaves. The page of pst-bloom says what each part of building takes."
)
_BLOOM_BYTES = (
    "In table 2 of the paper, PSTBloom has 18.6 bytes for a subscription of eight predicates. The two links of one list "
    "entry take 16 of them, so the predicates, which must be verified, cannot be among them. Here they are: of the 468 "
    "bytes that PSTBloom has on dense, predicates are 275, and BE-Tree's bytes include them, too. Lists, trees and "
    "signatures alone are 193 bytes."
)
_ALL_IN_LISTS_MATCH = (
    "The events match what they were made from, so nearly all conjunctions in the lists match, and signatures have almost "
    "nothing to keep out: see the candidates in the profile. Each match is looked up in a signature for each of its other "
    "predicates, and then verified like PSTHash's. For events that match nothing, PSTBloom is the fastest index of the papers on "
    "dense, and close to the fastest on sparse."
)
_ROOT_IN_A_ROW = (
    " BE-Tree has some 800 expressions in its root, whose attributes are rare. It tests one predicate of each, and they lie next "
    "to each other: 3 microseconds. It is thus much faster here than in the paper, and ahead of PSTBloom."
)
_EACH_VERIFIED = (
    "Half of all subscriptions match, and each index verifies ten predicates of each of them: see the predicates in the "
    "profile. A scan reads them in order, which is as fast as memory gives them. Verification alone is thus more than a "
    "quarter of the scan, unless the paper leaves it out."
)
_RECORDS_GROW = (
    "All indexes here keep the predicates of a conjunction together in a record, which verification reads at once. So all of "
    "them grow with the number of predicates, as much as the records do."
)
_PLANTED_COST_THE_SAME = (
    "BE-Tree comes closest to the matches: most of its candidates match, where Propagation has ten times as many in vain. "
    "For events that match nothing it is mostly far ahead of Propagation. But one of a hundred subscriptions matches a planted "
    "event, as in the paper, and verifying the matches takes most of the time of both. BE-Tree's matches are in many nodes, and "
    "their predicates in places far apart. Propagation goes through clusters, column by column, and the next column is on its "
    "way from memory already. With fewer matches BE-Tree leads: see figure 11."
)
_MANY_NODES = (
    "Where 9 % match, these 4,500 of 50,000 subscriptions are in more than a thousand nodes, and their predicates in as many "
    "places in memory. Propagation finds them in few clusters, in which it reads column by column."
)
_BE_TREE_BUILDS = (
    "BE-Tree inserts a subscription in 4 to 5 microseconds here: it looks at a few scores on the way down, and l-nodes are "
    "short arrays. The paper has two to three orders of magnitude more, and does not say where the time goes. OpIndex is "
    "ahead, as the paper says, but not by so much."
)
_BE_TREE_IS_FAST = (
    "BE-Tree tests one predicate of each expression of an l-node, and these lie next to each other in memory: 4,480 "
    "candidates take 20 microseconds. For each attribute of an event that is a pivot, OpIndex tests a signature for each "
    "value and each operator: more than 10,000 tests with 60 attributes, 50,000 with 120. Where events have few attributes, as "
    "in the messages and products of figures 11 and 12, OpIndex is ahead."
)
_LESS_THAN_K_INDEX = (
    "OpIndex is ahead of k-index in all figures of matching, though by less than the paper says: there are a twentieth of the "
    "subscriptions, so the lists of k-index are short."
)

FINDINGS: dict[str, str] = {
    "ps-tree 5a": _BLOOM_BUILDS,
    "ps-tree 5b": (
        "BE-Tree and Propagation find attributes in hash tables here, so a dimension costs them little. PSTBloom has a tree "
        "for each dimension. 50,000 subscriptions do not fill 30,000 trees: hardly any two predicates share a leaf there. "
        "OpIndex kept sorted pays for moving the entries behind an insertion. That is proportional to the length of lists, so "
        "at a twentieth of the paper's subscriptions its lead is a twentieth, too."
    ),
    "ps-tree 5c": _RECORDS_GROW + " PSTHash cuts two spaces for a subscription of any size, so it hardly grows.",
    "ps-tree 5d": (
        _BLOOM_BUILDS
        + " BE-Tree, with equalities only, cuts its buckets down to single values, which are more cuts than "
        "ranges allow."
    ),
    "ps-tree 6b": _ALL_IN_LISTS_MATCH,
    "ps-tree 8a": (
        "OpIndex and k-index behave as in the paper. PSTBloom has the same number of matches with any number of dimensions, "
        "and its time is that of these matches. For events that match nothing it falls, too, from 7.3 to 4.4 microseconds."
    ),
    "ps-tree 8b": _ALL_IN_LISTS_MATCH + _ROOT_IN_A_ROW,
    "ps-tree 9a": _ALL_IN_LISTS_MATCH,
    "ps-tree 9b": _ALL_IN_LISTS_MATCH + _ROOT_IN_A_ROW,
    "ps-tree 10a": (
        "With 5 predicates, 232 subscriptions match by chance, with 30 it is the 50 planted ones. So lists become shorter for "
        "all indexes, as in the paper. But PSTBloom looks each match up in a signature for each of its predicates, and "
        "evaluates all of them: 1,450 instead of 245. For events that match nothing it falls from 23.7 to 6.4 microseconds. "
        "OpIndex grows less than in the paper, since the matches of chance become fewer at the same time."
    ),
    "ps-tree 10b": (
        "Each match is looked up in a signature for each of its predicates, and each predicate is evaluated: 1,450 instead of "
        "198. OpIndex evaluates as many, and grows less than in the paper."
    ),
    "ps-tree 11a": (
        "An event of 90 attributes has 4,005 pairs of attributes, nine times as many as one of 30. PSTHash looks all of them "
        "up, or recognises in a filter that they have no cell. PSTBloom visits 90 leaves. So PSTHash is the fastest up to 54 "
        "attributes here, and PSTBloom comes up to it at 90."
    ),
    "ps-tree 11b": "PSTBloom leads OpIndex by the paper's factor." + _ROOT_IN_A_ROW,
    "ps-tree 12a": _EACH_VERIFIED,
    "ps-tree 12b": _EACH_VERIFIED,
    "ps-tree 14a": _BLOOM_BYTES,
    "ps-tree 14b": _RECORDS_GROW,
    "ps-tree 15a": (
        "A query is a few words that a document must have, so all predicates are equalities on one word each. Propagation finds "
        "the satisfied ones by one look into a hash table for each word of the document, and counts nothing else. The paper "
        "has it behind k-index, and does not say why. The other indexes stand in the paper's order, but for OpIndex: it counts "
        "1,200 candidates where PSTBloom and PSTHash have 80."
    ),
    "ps-tree 15b": (
        "OpIndex and k-index append entries to lists that are sorted once, at the end. PSTBloom and BE-Tree look for the place "
        "of each subscription. PSTBloom is like BE-Tree, and OpIndex like k-index, as in the paper; but the second pair is the "
        "faster one here."
    ),
    "ps-tree table-2a": (
        "An event matches 2,200 subscriptions here, and each index takes some nanoseconds to report one. This is the same for "
        "all of them, so leads are smaller than in the paper, which does not tell how many match. PSTHash and PSTBloom lead in "
        "the paper's order."
    ),
    "ps-tree table-2b": (
        "PSTBloom and PSTHash cut trees for each subscription, see figure 5. The other indexes append to lists, or walk down "
        "a tree that is there already."
    ),
    "ps-tree table-2c": _BLOOM_BYTES,
    "ps-tree table-3a": (
        "All three trees find the one interval of a point in about a microsecond, of which most is the same for all: taking the "
        "event and reporting the match. The paper's trees are 3,500 times apart, so they do not seem to be implemented with "
        "the same care. The scan is behind, as in the paper."
    ),
    "be-tree 5a": _PLANTED_COST_THE_SAME,
    "be-tree 5b": _PLANTED_COST_THE_SAME,
    "be-tree 6a": _PLANTED_COST_THE_SAME,
    "be-tree 6b": _PLANTED_COST_THE_SAME,
    "be-tree 8c": (
        "BE-Tree is the fastest, and Propagation hardly changes, as in the paper. K-index and SIFT hardly slow down: wider "
        "ranges satisfy more predicates, but only one predicate in some is a BETWEEN, so the candidates of SIFT grow from "
        "1,020 to 1,140."
    ),
    "be-tree 8d": (
        "BE-Tree is the fastest. K-index and SIFT hardly slow down: wider ranges satisfy more predicates, but only one "
        "predicate in some is a BETWEEN. Propagation pays for the ranges that it evaluates one by one."
    ),
    "be-tree 9a": (
        "BE-Tree is the fastest, and not slowed down, as in the paper. Propagation is not slowed down either: all predicates "
        "here are equalities, and it finds the satisfied ones by one look into a hash table, however few values there are."
    ),
    "be-tree 9b": (
        "With two values half of all equalities are satisfied. BE-Tree has nothing to cut then but the attributes, of which "
        "Zipf's law makes a few common. K-index and Propagation slow down more than BE-Tree, as in the paper, but "
        "Propagation starts from less."
    ),
    "be-tree 10a": (
        _PLANTED_COST_THE_SAME
        + " With equalities only, Propagation's access predicates leave 496 candidates for 500 matches."
    ),
    "be-tree 10b": (
        _PLANTED_COST_THE_SAME
        + " With equalities only, Propagation's access predicates leave hardly more candidates than "
        "matches."
    ),
    "be-tree 11a": "With few matches BE-Tree is the fastest. " + _MANY_NODES,
    "be-tree 11b": _MANY_NODES
    + " With few matches SIFT is ahead: with equalities and sets only, it counts in lists that are short.",
    "be-tree 11c": "With few matches BE-Tree is the fastest. " + _MANY_NODES,
    "be-tree 11d": "With few matches BE-Tree is the fastest. " + _MANY_NODES,
    "be-tree 12a": (
        "BE-Tree is the fastest, and ahead of Gryphon as in the paper. Propagation is close behind it: an author has few grams, "
        "and one of them, which is rare, is the access predicate. The paper has it far behind, and does not say why."
    ),
    "be-tree 12b": (
        "There are 10,000 and 12,500 subscriptions, with one match for an event. All times but those of SIFT and k-index are "
        "a few microseconds. BE-B, which partitions the same subscriptions together, is as fast as Propagation. The paper has up "
        "to 250,000, where Propagation's clusters grow."
    ),
    "be-tree table-4": (
        "Events that match nothing visit few l-nodes, and a larger one only means more candidates. For planted events, figure 4, "
        "the capacity changes little at any share of matches. Here an l-node is an array, so five entries more cost less than "
        "a node more, whatever the share."
    ),
    "op-index 1a": (
        "OpIndex builds fastest, as the paper says. K-index enumerates the values of ranges, which takes longer than BE-Tree's "
        "walk down its tree."
    ),
    "op-index 7a": (
        "With a capacity of 5 BE-Tree builds in 4 microseconds for a subscription, so there is little to gain. A larger l-node "
        "costs more when it is partitioned: all its entries are counted, by attribute."
    ),
    "op-index 7b": (
        "The entries of an l-node lie next to each other, each with one predicate to test. Going through 250 of them takes "
        "less than a microsecond, about as much as going down to smaller nodes."
    ),
    "op-index 8b": (
        "OpIndex is not affected, and k-index fails, as in the paper. BE-Tree makes a half of a bucket only where expressions "
        "are, so its size depends on them, and not on how many values the domain has."
    ),
    "op-index 9a": _BE_TREE_BUILDS,
    "op-index 9b": _BE_TREE_BUILDS,
    "op-index 10a": f"{_BE_TREE_IS_FAST} {_LESS_THAN_K_INDEX}",
    "op-index 10b": f"{_BE_TREE_IS_FAST} OpIndex is ahead of k-index by the paper's factor, and BE-Tree does not degrade.",
    "op-index 10c": f"{_BE_TREE_IS_FAST} {_LESS_THAN_K_INDEX}",
    "op-index 10d": (
        "OpIndex is the fastest with equalities only. Nearly all of BE-Tree's time goes into the entries of its root, which are "
        "as many whatever the operators are. K-index gains most, as the paper says."
    ),
    "op-index 10e": f"No time grows with the cardinality, but for k-index, which cannot be built. {_BE_TREE_IS_FAST}",
    "op-index 11a": _BE_TREE_BUILDS,
    "op-index 11b": _BE_TREE_BUILDS,
    "op-index 11c": ("OpIndex leads BE-Tree by the paper's factor. " + _LESS_THAN_K_INDEX),
    "op-index 11d": ("OpIndex leads BE-Tree by the paper's factor. " + _LESS_THAN_K_INDEX),
    "op-index 11e": (
        "Articles have more words than messages, and OpIndex tests signatures for pairs of them, so it leads less. "
        + _LESS_THAN_K_INDEX
    ),
    "op-index 11f": (
        "Articles have more words than messages, and OpIndex tests signatures for pairs of them, so it leads less. "
        + _LESS_THAN_K_INDEX
    ),
    "op-index 12a": _BE_TREE_BUILDS,
    "op-index 12d": _BE_TREE_BUILDS,
    "op-index 14a": (
        "Prefixes are intervals of strings here, so a prefix costs as little as any range. With prefixes only, an event takes "
        "some twenty microseconds, far less than the 400 that the paper promises."
    ),
    "op-index 14b": (
        "Longer prefixes satisfy fewer events, but as many entries are looked at: 4,800 candidates with 3 letters and with 5. "
        "All times are below 50 microseconds."
    ),
    "fabret domains": (
        "Propagation becomes faster with larger domains, as in the paper: from 5,298 candidates to 148. Dynamic has 178 with a "
        "domain of 10 already, since it joins two equalities to one access predicate. So it has nothing to gain."
    ),
    "fabret sizes": (
        "The two fixed equalities decide where most subscriptions are. Dynamic has 85 candidates with 3 predicates and 203 with "
        "9: a waiting subscription adds to the power of each group of its attributes, so other tables are created than the "
        "best ones. Static, which chooses all tables at once, has 40 with any number of predicates."
    ),
    "fabret aging-schema": (
        "With 50,000 subscriptions, tables spare an event about a thousand candidates, which are 3 microseconds. The times here "
        "include encoding the events and naming the matches, which takes as long and varies by as much. So the two lines cannot "
        "be told apart. Dynamic pays for moving subscriptions in rounds 5 to 7. With few values, tables spare more: see the next "
        "figure."
    ),
    "tatbul 7t": (
        "The engine keeps up to some thousand new subscriptions in a list, and an event looks at all of those that have "
        "intervals only, in 5 nanoseconds each. It builds an index from 4,096 subscriptions on."
    ),
    "tatbul joins-own": (
        "Each join is looked up in the table, and each profile has one of its own. With 10,000 profiles that costs nothing that "
        "can be measured, with 50,000 a tenth."
    ),
}
"""Paper and number of a figure -> the reason, in sentences."""


def finding_of(name: str) -> str:
    """The finding for a figure such as "ps-tree 6a", or an empty string."""
    return FINDINGS.get(name, "")
