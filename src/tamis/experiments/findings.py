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
    "predicates, and then verified like PSTHash's. For events that match nothing, PSTBloom is the fastest index of the papers "
    "here, too."
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
    "ps-tree 7a": (
        "With alpha 5 nearly all subscriptions have the same attributes. BE-Tree then cannot tell them apart by attributes, "
        "and visits seven times as many nodes as with alpha 0. PSTHash is the fastest, and k-index behind the scan, as the "
        "paper says."
    ),
    "ps-tree 7b": (
        "With alpha 5 the workload is as in figure 7a, since it no longer matters how many dimensions are hardly ever used."
    ),
    "ps-tree 8a": (
        "OpIndex and k-index behave as in the paper. PSTBloom has the same number of matches with any number of dimensions, "
        "and its time is that of these matches. For events that match nothing it falls, too, from 7.3 to 4.4 microseconds."
    ),
    "ps-tree 8b": _ALL_IN_LISTS_MATCH,
    "ps-tree 9a": _ALL_IN_LISTS_MATCH,
    "ps-tree 9b": _ALL_IN_LISTS_MATCH,
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
}
"""Paper and number of a figure -> the reason, in sentences."""


def finding_of(name: str) -> str:
    """The finding for a figure such as "ps-tree 6a", or an empty string."""
    return FINDINGS.get(name, "")
