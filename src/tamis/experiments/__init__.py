"""The papers' experiments, repeated by one command: `tamis experiments`.

Read `figure`, then `ps_tree`, then `running`.

    scales       how large an experiment is           figure       Figure: spots, claim, judge
    contenders   what stands in the plots             sweeps       workloads along an axis
    point        Point: one measurement               claims       judges of claims
    filling      contenders filled with a workload    ps_tree, be_tree, op_index, fabret, tatbul   figures
    tasks        the ways to measure a point          catalog      all of them
    normal_forms OpIndex's DNF and CNF                checking     answers beside those of a scan
    leaf_capacity   of BE-Tree, by share of matches   archive      all results of a paper in one file
    adjusting    BE-Tree's self-adjustment            aging        Fabret's aging subscriptions
    joining      Tatbul's joins, shared or not        profiles     where the time of a contender goes
    measuring    a point in a process of its own      findings     why a claim does not hold
    running      all points, resumable                plots, pages, leaderboard   the report
    peers        DuckDB and polars                    timing, machine   seconds, and facts about the machine
"""
