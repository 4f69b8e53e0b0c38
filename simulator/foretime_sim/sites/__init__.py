"""A site's scheduler as it is set up: what it schedules by, for whom, and on what.

It knows no log, no engine and no live scheduler. The files of a site are written and read here.

Public names: `SlurmSite`, `SlurmParameters`, `SlurmPriority`, `Limits`, `Qos`, `Association`,
`PartitionRules`, `SiteJobs`; `PbsSite`, `PbsServer`, `PbsQueue`, `PbsHost`, `PbsScheduler`,
`PbsLimits`, `ShareGroup`, `PbsReservation`.
"""
