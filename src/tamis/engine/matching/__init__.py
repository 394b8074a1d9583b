"""How an event meets a segment: from keys to the slots of subscriptions.

Read in the order in which an event goes:

    match       all steps for some events                       scratch     the arrays of a thread
    lists_met   keys -> spaces -> lists and runs
    filtering   entries -> survivors -> rows                    sorting     rows that were found several times
    owners      rows -> subscriptions                           batch       a whole batch in one call
    results     slots by event, and how much work it was        counters    the work of all threads
"""
