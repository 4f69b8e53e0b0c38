"""Slurm and PBS: what the daemon does for each at a look, and what it asks them through.

Public names: `SchedulerStrategy`, `strategy_of`, `client_of`, `kept_site_of`.
"""
