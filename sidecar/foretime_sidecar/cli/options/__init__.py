"""Options that several commands have, and what is read by them: settings, policies, workloads.

Prints no answer, and knows no command.

Public names: `SettingsOption`, `site_settings`, `WorkloadOptions`, `WorkloadSource`,
`OnePolicyOptions`, `SeveralPoliciesOptions`, `ScoringOptions`, `OutputOptions`.
"""
