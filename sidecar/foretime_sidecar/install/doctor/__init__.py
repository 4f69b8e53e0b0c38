"""What is looked at in an installation, and what to do where it is not sound.

Changes nothing.

Public names: `examine`, `Finding`, `Health`, `slurm_checks`, `pbs_checks`.
"""
