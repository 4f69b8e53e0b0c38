"""The commands of logs and simulations: workloads, replays, campaigns, studies.

A module has one command. None knows another, nor a command of a site.

Public names: `simulate`, `replay`, `demo`.
"""
