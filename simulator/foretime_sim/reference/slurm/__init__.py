"""The specification of Slurm's scheduling in plain Python: loops, node choice, priorities, limits.

Facts are from Slurm 22.05.8 and 25.11.7; each docstring names file and function. Versions between
are told apart by the release notes; what is said of 26.05 was seen on live 26.05.5.

`cluster` lives through it second by second, and needs every room below.

Public names: `cluster.simulate_slurm`.
"""
