"""What keeps a job from being accepted, considered or started besides room, or ends it.

Nodes, priorities and the loops are not known here: limits are told what starts and ends.

Public names: `limits.Limits`, `LimitedJob`, `RunMinutes`, `PartitionLimits`.
"""
