"""Many simulations from one TOML file: declared, run, kept, reported.

Knows no command line.

Public names: `read_campaign`, `plan`, `execute`, `CampaignStore`.
"""
