"""The site's scheduler run on without Foretime, beside the real one, from the same events.

It says when each job would have started without Foretime, or with it where Foretime only observes:
what it has brought so far, and who is late. Nothing here changes a job.

Public names: `PlainBeside`, `Account`.
"""
