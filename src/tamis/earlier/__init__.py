"""Earlier events: what is retained of them, and what ANY, ALL and EXISTS find there.

history           History: which events are retained                       read this first
retained          the retained events: which history an event has, and when events leave
places            keys and times of events
leaving           the order in which events leave
event_log         all retained events in order of arrival, and columns of their attributes
chunks            where the log keeps events: packed bytes, or tables of Arrow
alike             events of one form, by attribute
number_events     events of numbers alone, in flat arrays
column            the values of one attribute, in keys
key_ranges        keys of values, and the ranges of keys that satisfy a comparison
shelf             the events of one history
attribute_index   the values of one attribute in one history, in order
block_summary     summaries of blocks of events: the kernels of attribute_index
key_chains        chains of events with equal keys
chain_search      a walk of such a chain, until an event satisfies EXISTS
decisions         the truth of joins for one event
row_programs      rests as programs for a kernel
row_joins         the kernels that decide the joins of a batch
row_decisions     the truths of rests for many rows of a batch, by these kernels
flat_text         flat events as JSON text, for files
implied           table 2 of the paper: what a constant and a join say together of earlier events
needs             what a subscription needs of earlier events
tally             how many events are where, and which needs this satisfies
following         a tally that follows the retained events
prefilter         which subscriptions no event can satisfy at present
phases            the order of phases: constants first or joins first
marks             slots with a rest, among many
join_table        the joins of subscriptions; each distinct one is decided once for an event

The package is not called `history`: `tamis.history` is a public function.

Reference: N. Tatbul, sections 3.2, 4.2 and 4.3. Departures, beside those that `implied`, `prefilter` and `phases` name:

- Truth has three values, as in the reference evaluator. Events that lack the attribute are counted apart. In the paper they are
  zeros of the document vector, so that one of them makes "for all" false.
- A subscription may have several joins, under AND, OR and NOT. The paper ORs the profile vectors of its join table, which is
  right only if each profile has one join.
- One join needs no document vector: the smallest key, the largest key, or one look-up decides ANY and ALL.
- EXISTS with an equality walks the events with this value until one satisfies the rest. Other ones, and walks that are too long,
  take the events that the most selective index finds, and hold the other comparisons against their columns. Document vectors took
  longer, see `decisions`.
- The paper has a B-tree for each attribute. Ours is a column in blocks by arrival. A block gets a summary and an order when a
  join first needs them. Chains of equal keys answer `=`.
- In example 5, the prose calls the profile vector 001 a document vector. The column is headed <old,new>, but the operators read
  new OP old, which is what we implement.
"""
