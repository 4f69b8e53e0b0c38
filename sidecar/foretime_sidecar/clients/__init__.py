"""Schedulers as the daemon asks them: one protocol, and processes that are run for it.

Pure parsers and thin runners; nothing here decides.

Public names: `SchedulerClient`, `QueuedJob`, `FinishedRecord`, `Queue`, `Cursor`, `JobChange`.
"""
