"""The hook put into a scheduler and taken out, with everything shown before.

Knows no daemon.

Public names: `slurm_install`, `slurm_uninstall`, `pbs_install`, `SlurmConf`.
"""
