"""News of when jobs start: what counts as news, and how it reaches the job's user.

Nothing here changes a job or a forecast. What can't be sent is counted, and dropped.

Public names: `next_news`, `Notifier`, `Outbox`, `way_of`.
"""
