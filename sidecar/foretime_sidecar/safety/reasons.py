"""The words that the audit gives as reasons, in sentences for people."""

from __future__ import annotations

REASONS = {
    "-": "it is planned with its scheduled time",
    "observe": "Foretime only observes: no job is changed",
    "advise": "Foretime only advises: no job is changed",
    "share": "planning is for a share of the users, and this one is not in it",
    "only-accounts": "planning is for jobs of some accounts alone",
    "only-slurm_partitions": "planning is for jobs in some slurm_partitions alone",
    "only-queues": "planning is for jobs in some queues alone",
    "settings": "the settings leave such jobs alone (hook.leave_*)",
    "opt-out": "its comment says foretime:off, or on PBS its environment FORETIME=off",
    "limited": "a limit of its user, account or QOS counts what is planned",
    "too-long": "it asks for more than MaxTime, MaxWall or hook.reservation_lead_time_s allow",
    "no-row": "too few such jobs of this user and account have ended",
    "as-requested": "such jobs of this user and account need what they ask for",
    "no-limit": "it has no time limit",
    "shrink-to-fit": "PBS takes no soft_walltime for jobs with a min_walltime or max_walltime",
    "heterogeneous": "parts of heterogeneous jobs are left alone",
    "deadline": "jobs with a deadline are left alone",
    "reservation-job": "jobs in a reservation are left alone",
    "reservation": "with all of its time limit it could reach a reservation or dedicated time",
    "own-time-min": "its user gave a --time-min, and it is left alone",
    "table": "there was no valid table when it was submitted: the daemon did not run",
    "off": "the table said off",
    "hook": "the table says to plan it, but the hook did not: it opted out, its slurm_partition's "
    "limit is below its own, planning was switched off, or the hook is not reached",
    "started": "it started before the daemon had set its time_min",
    "refined": "what such jobs take is estimated anew as others end (learned.refine)",
    "modified": "it was changed after its submission, by its user, an administrator or the daemon",
}
