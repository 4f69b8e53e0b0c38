"""The specification of Slurm's scheduling in plain Python: its loops, node choice and queue.

Facts are from Slurm 22.05.8 and 25.11.7; each docstring names file and function. Versions between
are told apart by the release notes, and newer ones are taken for 25.11.

Public names: `cluster.simulate_slurm`, `schedule.SlurmSchedule`, `schedule.Loop`.
"""
