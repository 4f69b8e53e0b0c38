"""Job logs, the scheduling engine, a mock Slurm and what is measured on them."""
