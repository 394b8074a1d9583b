"""The command `tamis`: one module per command, what they share beside them.

    main                the group, and what becomes of errors        options              options of several commands
    lines               the lines of a text file                     json_text            strict JSON
    subscription_files  subscriptions of a file, with their lines    load                 from there into a matcher
    byte_stream         bytes of a file, unpacked                    event_lines          events of text files one by one
    json_array          elements of a JSON array                     csv_values           fields of CSV as values
    event_files         events of files, in batches                  match_run            one pass over them
    event_filter        one expression on one event                  filter_run           one pass over files for it
    match_files         matches to a file                            check_report         what there is to say about a file
    bookshop            the world of the demo                        demo_page            how it is told
    diagnostics         messages, progress and bad lines on stderr   error_file           all bad lines in a file
    whole_file          a file appears whole or not at all

A line that cannot be read is handed on as a `FileError` in its place, not raised: `check` lists all of them, `match` stops
at the first or skips it. Modules of the library are imported inside functions, so that ``tamis --help`` is quick.
"""
