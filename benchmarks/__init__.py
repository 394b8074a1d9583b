"""Benchmarks. Most print tables of ratios that are measured side by side, and write results for the page.

Read `tamis.experiments.timing` and `shapes` first, then one benchmark and its page.

    shapes        the workloads of the engine's benchmark
    memory        the speed of random reads

    headline      Tamis, a scan, DuckDB and polars: the figures of the README
    first_use     the cost of the first use, with an empty cache of kernels
    loading       how fast subscriptions are added
    engine        the engine's benchmark: runs the next three
    matching      one workload: the engine, a scan, and the methods of the matcher
    updates       changes during matching
    rules         detection rules
    detection     detection rules and JSON: all ways into the matcher beside json.loads, the commands beside jq
    spark         matching with Spark
    broker        what publish/subscribe costs on top of matching
    service       what the network costs on top of a broker
    history       what earlier events cost
    history_parts what the join table, the order of phases and the pre-filter each bring
    exits         how processes end while threads of Tamis work

    markdown      tables, and pages with a generated part
    svg           charts of bars
    engine_page   the engine's tables and chart
    spark_page    the tables and chart of Spark
    broker_page   the tables of the broker
    service_page  the tables of the service
    history_page  the tables of earlier events
    page          makes the page of benchmarks from the result files
    cluster_plan  computes the size of a cluster from measured rates
"""
