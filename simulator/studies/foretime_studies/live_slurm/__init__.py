"""Live Slurm clusters side by side, with and without Foretime, on the same jobs."""
