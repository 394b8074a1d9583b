"""How a segment is planned and laid out: from conjunctions in keys to the arrays that matching reads.

Read in the order in which a segment is built:

    scale            keys of a dimension -> at most 254 spaces           aspects         what an event shows of a wide dimension
    statistics       how likely each value is                            costs           what the steps of matching cost
    predicate_codes  predicates as ranges of spaces; CodedTable, which all later steps read
    key_numbers      numbers for the keys of wide dimensions             plan            which predicate finds a conjunction
    pairs            conjunctions found by two values                    second_filter   a second word to filter by
    lists            which entries a value leads to                      runs            parts of lists sorted by a bound
    guards           blocks of lists that events skip                    record_words    the words of what is left to check
    record_header    the groups of these words                           records         what is left to check
    lookup           words by which a value finds its lists              limits          how much these words hold
    forecast         how many entries an event should visit              segment_build   all steps, and the arrays
    access_path      how one conjunction is found, for `plan()`
"""
