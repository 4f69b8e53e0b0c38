"""How accurate users' and projects' requests were, and the factor A that follows (Tang 2010, V).

Knows finished jobs, and no scheduler: what becomes of A is for others.

Public names: `AccuracyModel`, `AccuracySettings`, `Scheme`.
"""
