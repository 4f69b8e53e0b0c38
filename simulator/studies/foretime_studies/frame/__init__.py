"""What all studies share: the command, options, runs, tables, figures, claims and what is kept.

Knows no paper.

Public names: `command.study_command`, `report.StudyReport`, `tables.StudyTable`,
`published.published`, `claims.keeps`, `targets.Target`, `runs.run_cases`,
`kept_results.kept_results`, `progress.counted_on`.
"""
