"""The commands of a site: its daemon and its scheduler, asked, checked and changed.

A module has one command, or a pair such as disable and enable. None knows another, nor a command
of simulations.

Public names: `wait`, `status`, `explain`, `decisions`, `serve`, `doctor`, `install_app`.
"""
