"""A Slurm asked by its commands, by slurmrestd or through pyslurm.

Parses and runs; decides nothing.

Public names: `SlurmCommands`, `SlurmRest`, `PySlurm`, `SlurmController`, `read_note`.
"""
