"""What is learned from finished jobs, and whom it must not be used on.

Sets nothing at the scheduler.

Public names: `Learner`, `Exclusions`, `why_plain`, `HeldEstimator`, `LearnedScheme`, `EventFeed`.
"""
