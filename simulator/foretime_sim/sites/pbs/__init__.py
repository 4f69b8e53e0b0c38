"""How a site's PBS is set up: its server, queues, hosts, scheduler and formula, and their texts.

Public names: `PbsSite`, `PbsServer`, `PbsQueue`, `PbsHost`, `PbsScheduler`, `PbsLimits`,
`ShareGroup`, `PbsReservation`.
"""
