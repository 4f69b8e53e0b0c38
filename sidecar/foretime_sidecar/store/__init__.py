"""What the daemon keeps: SQLite, its migrations, and states of models.

All SQL of the tables that everybody uses is here.

Public names: `Store`, `ModelStates`, `NAMED`.
"""
