"""Blue Genes: midplanes, cables, bgp_partitions and which of them conflict.

Knows no jobs.

Public names: `BgpMachine`, `BgpPartition`, `find_bgp_machine`, `intrepid`, `parse_bgp_machine`,
`read_cobalt_partitions`.
"""
