"""What the daemon keeps: SQLite, its migrations, all SQL, and states of models.

A module has one subject: it reads and writes rows, and decides nothing.

Public names: `Store`, `Decisions`, `ForecastRows`, `StartBounds`, `ModelStates`, `data_of`,
`erase`.
"""
