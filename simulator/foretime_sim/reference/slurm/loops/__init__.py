"""Who starts: the state of one slurmctld, its queue, its main and its backfill loop.

When the loops run is not known here, nor how priorities and limits are worked out: `interfaces` has
what is asked of them.

Public names: `interfaces.Limits`, `interfaces.Priorities`, `NoLimits`.
"""
