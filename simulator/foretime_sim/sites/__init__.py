"""A site's scheduler as it is set up: what it schedules by, for whom, and on what.

It knows no log, no engine and no live scheduler. The files of a site are written and read here;
`slurm` and `pbs` each have what is one scheduler's own.

What its jobs say to it is in `foretime_sim.workloads.site_jobs`.

Public names: `read_site`, `format_site`.
"""
