"""Job logs of sites, read, filtered and written: SWF, sacct, CSV, PBS, Cobalt.

Knows no policy and no engine.

Public names: `read_log`, `read_swf`, `write_swf`, `workload_of_log`, `Filters`.
"""
