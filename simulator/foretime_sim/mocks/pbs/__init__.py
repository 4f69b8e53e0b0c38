"""A PBS that lives a log: its server, its hook under a fake ``pbs``, its commands' words.

Knows no daemon.

Public names: `MockPbs`, `PbsSetup`, `PbsSubmission`, `PbsHook`.
"""
