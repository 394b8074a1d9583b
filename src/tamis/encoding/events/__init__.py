"""Events to batches of (dimension, key interval) values.

Read in this order:

    event_batch    EventBatch; mappings one after another                 asked          which attributes to read
    one_event      one mapping, in a buffer that is used again
    event_columns  Arrow tables -> columns of attributes                  event_table    columns -> a batch
    plain_columns  columns of numbers -> a batch, in one kernel           flat_rows      rows of a table -> flat events
    plain_rows     rows whose numbers a card encodes
    json_lines     lines of JSON -> a batch                               json_scanner   lines -> values, in one kernel
    json_names     the names that the kernel looks for                    json_columns   values -> columns
    json_reader    one event of JSON, with Python's own reader
    mappings       a list of mappings                                     mapping_columns  mappings -> columns
    mapping_encoder  mappings -> a batch, by column or one by one         needed_values  what events need of columns
    needed_strings   what a single event needs
"""
