"""Webhooks: the notes of a subscriber are sent to a URL, each at least once and in order.

Read in this order:

    settings        how often, how long, and to which addresses   record          a webhook, a batch of notes, a dead letter
    addresses       URLs, and which addresses may be reached      signing         signatures, so that a receiver knows the sender
    channel         a connection to one checked address           delivery        one try: sign, send, follow redirects
    store           webhooks and dead letters, in SQLite          reading         notes of a broker as a batch
    post            what the couriers of a tenant share           courier         one webhook at work
    webhooks        all webhooks of a tenant                      names           looking up the hosts of receivers

The position of a webhook is the cursor of its subscriber in the broker: what is delivered is acknowledged. Tries, states and
dead letters are in ``webhooks.sqlite`` beside the tables of the broker. Each webhook is a task of the event loop. It holds no
thread while it waits for notes or for its receiver, so a slow receiver slows nobody.
"""
