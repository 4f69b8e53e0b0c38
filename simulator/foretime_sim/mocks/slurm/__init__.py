"""A Slurm that lives a log: slurmctld, the hook under Lua, its commands' words.

Knows no daemon.

Public names: `MockSlurm`, `SlurmSetup`, `Submission`, `LuaHook`.
"""
