"""Foretime put on a scheduler's host and taken off, with everything shown before.

Knows no daemon.

Public names: `plan_host`, `slurm_install`, `slurm_uninstall`, `pbs_install`, `SlurmConf`.
"""
