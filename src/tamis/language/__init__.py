"""The language: what can be written, and what it means.

    values, event                    values, and events in their normal form
    expression, joins, operators     the tree, its nodes for earlier events, its operators
    checks                           what makes a predicate right
    evaluate, explain                the reference evaluator: it defines what matches, and why
    parser, grammar, functions, history_sql, predicate_reader, operands  SQL text -> expression
    dialect, cursor, words, literals, quoting, spark_numbers         the words of the text
    refusals, alternatives           what to write instead of what the language does not have
    shapes, template                 texts that differ in literals only are read once
    printer, engine_sql              expression -> SQL text, ours and that of DuckDB and Spark
    builder                          expressions in Python
    json_form, json_writer           expressions in JSON
    json_text                        JSON texts, with errors in one sentence
    reading                          any of these forms -> expression
    normal, simplify, scalar_set, value_set, like, addresses         normal forms, and what predicates imply
    implication, demand, value_tests, patterns_implied               which expressions follow from others
    schema, declared                 declared attributes
    fault_places                     where in a text the fault stands that a schema has found

Read `values`, `expression` and `evaluate` first.
"""
