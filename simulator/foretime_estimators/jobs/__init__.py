"""Jobs as anybody may know them, and the errors that people see.

Knows of no estimator and no scheduler.

Public names: `JobRequest`, `FinishedJob`, `Ending`, `evidence_of`, `InputError`, `StateError`,
`SchedulerError`, `ForetimeError`.
"""
