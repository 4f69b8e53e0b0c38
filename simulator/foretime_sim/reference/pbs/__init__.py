"""OpenPBS's scheduler in plain Python: the specification of what it does in a cycle.

Read from the source of the head of 2026 (``src/scheduler``); each module names its functions. Left
out, and refused: preemption by express queues and soft limits, jobs that shrink to fit, placement
sets, provisioning, peer scheduling, primetime, jobs inside reservations, job arrays.

Public names: `PbsJob`, `Chunk`, `PbsRun`, `run_pbs`.
"""
