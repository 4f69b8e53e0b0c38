"""What a job's priority is: its factors, fair share, and usage as it is charged and decays.

Nodes, the queue and limits are not known here.

Public names: `EpochPriorities`, `FairShare`.
"""
