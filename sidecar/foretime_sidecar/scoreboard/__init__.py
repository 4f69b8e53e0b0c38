"""All estimators asked beside the one in use, never believed, and how they do.

Changes no plan.

Public names: `ShadowScoreboard`, `EstimatorBoard`, `BoardRow`.
"""
