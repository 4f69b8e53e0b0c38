"""The published benchmark of waits at a real Slurm site, DRAC's Graham."""
