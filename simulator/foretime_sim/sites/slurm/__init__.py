"""How a site's Slurm is set up: parameters, priorities, limits and accounts, and their texts.

Public names: `SlurmSite`, `SlurmParameters`, `SlurmPriority`, `Limits`, `Qos`, `Association`,
`PartitionRules`, `unmodelled_refusal`.
"""
