"""Since which release of Slurm a rule of limits holds; read in CHANGELOG and source."""

from __future__ import annotations

ACCOUNTS_BELOW_SINCE = (23, 2)
"""AllowAccounts and DenyAccounts hold for the accounts below, too."""
RUN_MINUTES_PER_USER_SINCE = (24, 5)
"""MaxTRESRunMinsPerUser and -PerAccount are enforced; 22.05.8 takes them and keeps none."""
USER_AND_GROUP_APART_SINCE = (23, 2)
"""A QOS with GrpTRES or MaxTRESPerUser no longer hides both of the next QOS at submission.

22.05.8 does, 25.11.7 does not (``_validate_tres_limits_for_qos``); the release between is a guess.
"""
