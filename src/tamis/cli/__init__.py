"""The command `tamis`: one module per command, and modules that several commands share.

    main                the group, and how errors are shown          options              options of several commands
    lines               the lines of a text file                     json_text            strict JSON
    subscription_files  subscriptions of a file, with their lines    load                 from there into a matcher
    byte_stream         bytes of a file, unpacked                    event_lines          events of text files one by one
    json_array          elements of a JSON array                     csv_values           fields of CSV as values
    event_files         events of files, in batches                  match_run            one pass over them
    event_filter        one expression on one event                  filter_run           one pass over files for it
    match_files         matches to a file                            check_report         findings about a file
    bookshop            the data of the demo                         demo_page            the output of the demo
    diagnostics         messages, progress and bad lines on stderr   error_file           all bad lines in a file
    whole_file          a file appears whole or not at all

A line that cannot be read becomes a `FileError` in its place; the error is not raised. `check` lists all such errors, `match`
stops at the first or skips it. Modules of the library are imported inside functions, so that ``tamis --help`` is quick.
"""
