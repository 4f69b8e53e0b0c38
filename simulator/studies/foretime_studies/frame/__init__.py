"""What all studies share: the command, options, runs, tables, figures, claims and what is kept.

Knows no paper.

Public names: `command.study_command`, `report.StudyReport`, `tables.StudyTable`,
`tables.study_table`, `published.published`, `claims.keeps`, `targets.Target`, `targets.Spread`,
`runs.run_cases`, `kept_results.kept_results`, `kept_results.kept_cases`, `progress.counted_on`.
"""
