"""The command `tamis`: a module for each command, and modules that commands share.

    main                the group, and how errors are shown          options              options of several commands
    match, filter, check, explain, plan, stats, build, generate, pipeline, indexes, experiments, warmup, demo    the commands
    subscribe, publish, receive, changes, backup, compact                                           those of the broker
    serve, token                                                                                    those of the service
    sigma                                                                                           those of Sigma rules

Subscriptions:
    subscription_files  subscriptions of a file, with their lines    expression_text      an expression as an argument
    subscription_lines  those of text files                          subscription_tables  those of Parquet files
    load, load_tables   from there into a matcher                    seen_ids             which ids came before
    csv_records         records of CSV, with their lines             history_options      which earlier events are retained

Events:
    byte_stream         bytes of a file, unpacked                    lines                the lines of a text file
    event_lines         events of text files one by one              event_files          events of files, in batches
    json_text           strict JSON                                  json_array           elements of a JSON array
    event_json          what JSON does not say of an event           event_ids            ids of events in Parquet
    csv_text            messages about text that is not CSV          csv_values           fields of CSV as values
    parquet_rows        rows of a Parquet file, some at a time

The broker:
    broker_folder       a folder is opened, or its lock awaited      json_output          notes and receipts as JSON lines
    wanted_files        subscriptions of a file for a broker         wanted_load          from there into the broker
    publish_run         one pass over events                         following            notes or changes in blocks
    moment_text         moments as text

Runs and output:
    match_run           one pass over events                         match_files          matches to a file
    event_filter        one expression on one event                  table_filter         on the rows of a table
    json_filter         on many lines of JSON                        json_blocks          lines of JSON, many at a time
    kernel_choice       whether it is worth loading kernels          check_report         findings about a file
    filter_run          one pass over files for it
    sigma_files         one pass of Sigma rules
    generate_options    options of `tamis generate` for one style
    diagnostics         messages, progress and bad lines on stderr   error_file           all bad lines in a file
    whole_file          a file appears whole or not at all           exit_status          what the process ends with
    bookshop            the data of the demo                         demo_page            the output of the demo
    demo_broker         the part of the demo with a broker

A line that cannot be read becomes a `FileError` in its place; the error is not raised. `check` lists all such errors, `match`
stops at the first or skips it. Modules of the library are imported inside functions, so that ``tamis --help`` is quick.
"""
