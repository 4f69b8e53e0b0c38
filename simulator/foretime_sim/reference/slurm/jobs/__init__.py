"""Jobs as slurmctld holds them, and what became of them.

Nothing here decides who starts: neither nodes nor queue, priorities nor limits are known.

Public names: `SlurmJob`, `Run`, `Allocation`, `Loop`, `JobOutcome`, `SlurmSchedule`, `billing`.
"""
