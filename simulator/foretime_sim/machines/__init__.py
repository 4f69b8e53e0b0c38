"""Machines: nodes, slurm_partitions, what is set aside on them, and the files that describe them.

Knows no jobs: what they ask of a machine is for `workloads`.

Public names: `Machine`, `NodeGroup`, `SlurmPartition`, `AdvanceReservation`, `NodeReservation`,
`read_any_machine`.
"""
