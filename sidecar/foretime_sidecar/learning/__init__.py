"""What is learned from finished jobs, and what is left alone.

Sets nothing at the scheduler.

Public names: `Learner`, `Exclusions`, `why_plain`, `HeldEstimator`, `LearnedScheme`, `EventFeed`.
"""
