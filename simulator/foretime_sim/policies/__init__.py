"""What a scheduler is told to do: orders, backfilling, corrections, guards, dynP, slack.

Decides nothing itself: that is for `engine`, and in plain Python for `reference`.

Public names: `Policy`, `Order`, `Backfill` and its families (`Easy`, `Conservative` and others),
`Guard`, `Correction`, `EventOrder`, `Roles`, `SlackSettings`, `PolicySwitching`, `read_policy`,
`policy_of`.
"""
