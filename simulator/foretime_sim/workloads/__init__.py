"""What a simulation is given: jobs in columns, what they ask of a machine, and a log's own columns.

Knows no policy, and not how logs are written.

Public names: `Workload`, `Labels`, `JobLog`, `JobResources`, `ResourceRequests`, `with_machine`,
`with_bgp_machine`.
"""
