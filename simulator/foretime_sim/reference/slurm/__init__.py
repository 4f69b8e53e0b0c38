"""The specification of scheduling as Slurm does it, in plain Python."""
