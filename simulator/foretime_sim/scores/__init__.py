"""What is measured on schedules: metrics, comparisons, intervals, pictures of them.

Knows no scheduler: a schedule is all it sees.

Public names: `score`, `METRICS`, `compare`, `Interval`, `Repeats`.
"""
