"""How an event meets a segment: from keys to the slots of subscriptions.

Read in the order in which an event goes:

    match           all steps, for some events of a batch
    scratch         the arrays of a thread: the loaded event, lists and runs that it meets, survivors
    loading         keys -> spaces and aspects by dimension
    lists_met       spaces -> lists and runs
    filtering       entries -> survivors, by filter words
    vectors         the longest loops of filtering and checking, for processors with AVX-512
    checking        survivors -> rows, by records
    several_values  the last two steps for events with several values of an attribute
    owners          rows -> slots of subscriptions
    results         slots by event, and how much work it was
    counters        the work of all threads
    thread_scratch  the scratch of each thread, which grows when a kernel lacks room
"""
