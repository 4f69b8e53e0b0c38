"""Slurm's scheduling in plain Python: what the native core's Slurm must agree with, job for job.

Written from Slurm's documentation and source; each module says which of its files it follows.

Public names: `Limits`, `LimitedJob`, `Preemption`, `RunningJob`.
"""
