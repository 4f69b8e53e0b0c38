"""Which scheduler a replay models: Slurm's own rules, PBS's, a site's, or a policy for research."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from foretime_estimators.jobs.errors import InputError
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_file import read_policy
from foretime_sim.policies.policy_table import policy_of
from foretime_sim.policies.scheduler_defaults import default_policy
from foretime_sim.policies.site_machine import assumptions, on_one_pool, site_of
from foretime_sim.policies.slack import Overruns
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.cli.options.mechanism_options import MechanismOptions
from foretime_sidecar.cli.options.policy_cases import naming_options, runnable_policy
from foretime_sidecar.cli.options.policy_details import PolicyDetails
from foretime_sidecar.cli.options.policy_options import OnePolicyOptions

_GUARD_S = 6 * 3600
FOR_RESEARCH = (
    "Scheduled by a policy for research: the cycles, priorities and limits of Slurm and PBS are"
    " left out."
)
"""What a policy that is no scheduler's own leaves out."""
_OF_THE_GUARD = {"guard_s", "guard_by", "guard_share"}


@dataclass(frozen=True, slots=True)
class ReplayedScheduler:
    """What a replay's options say of the scheduler.

    Attributes
    ----------
    chosen, details, mechanism
        As given on the command line.
    """

    chosen: OnePolicyOptions
    details: PolicyDetails
    mechanism: MechanismOptions

    @property
    def _kind(self) -> Literal["slurm", "pbs", "policy"]:
        """Give the scheduler that is named, or that the other options are of; else Slurm."""
        if self.chosen.scheduler is not None:
            return self.chosen.scheduler
        if self._of_a_policy:
            return "policy"
        return "pbs" if self.mechanism.mechanism is Mechanism.PBS_SOFT_WALLTIME else "slurm"

    @property
    def _of_a_policy(self) -> bool:
        chosen, details = self.chosen, self.details
        return bool(chosen.policy or chosen.values or details.values or details.reservations)

    def policy(self) -> Policy | None:
        """Give the policy that the options say; ``None`` for Slurm or PBS with its defaults.

        The options' values come over the policy file's, and these over the mechanism's.

        Raises
        ------
        InputError
            If options do not go together, or a value is wrong.
        """
        chosen = self.chosen
        if chosen.site is not None and "," in chosen.site and not Path(chosen.site).exists():
            raise InputError(
                f"--site {chosen.site}: a replay takes one site; foretime simulate compares several"
            )
        named = {} if chosen.policy is None else read_policy(chosen.policy)
        said = named | chosen.values | self.details.values
        of_file = named.keys() - chosen.values.keys() - self.details.values.keys()
        if chosen.scheduler == "policy" and chosen.site is not None:
            raise InputError("--scheduler policy: --site has a scheduler: leave one of them out")
        if "site" in said:
            with naming_options(of_file):
                policy = runnable_policy(said)
            return _of_scheduler(policy, chosen.scheduler)
        if self._kind != "policy":
            if self._of_a_policy:
                raise InputError(
                    f"--scheduler {self._kind}: it goes by a site alone; leave --policy, --order,"
                    " --backfill and their settings out, or give --scheduler policy"
                )
            return None
        values = self.mechanism.policy_values | said
        with naming_options(of_file):
            if "guard_s" not in values:
                unguarded = {key: values[key] for key in values.keys() - _OF_THE_GUARD}
                if policy_of(unguarded).backfill.head_only:
                    values["guard_s"] = _GUARD_S
            policy = policy_of(values)
        if policy.overruns is not Overruns.KILL:
            raise InputError(
                f"overruns is {policy.overruns}: a scheduler kills jobs at their limits; take it"
                f" out of {chosen.policy}, or use foretime simulate"
            )
        return policy

    def on_defaults(self, workload: Workload) -> tuple[Workload, Policy, tuple[str, ...]]:
        """Give jobs for one pool, Slurm or PBS with its defaults, and what that assumes.

        Raises
        ------
        InputError
            If the workload is on a machine that the scheduler has no nodes of.
        """
        asks_for_more = workload.machine is None and workload.requests is not None
        workload = on_one_pool(workload)
        pbs = self._kind == "pbs"
        policy = default_policy("pbs" if pbs else "slurm", workload)
        said = _said_of_pbs() if pbs else _said_of_slurm(workload)
        if asks_for_more:
            said += " What jobs ask for besides processors (nodes, GPUs, ...) does not count."
        site = site_of(policy)
        return workload, policy, (*(() if site is None else assumptions(site)), said)


def _of_scheduler(policy: Policy, scheduler: str | None) -> Policy:
    """Give the policy of a site, if its scheduler is the one that is named."""
    own = "pbs" if policy.is_pbs else "slurm"
    if scheduler in ("slurm", "pbs") and scheduler != own:
        raise InputError(f"--scheduler {scheduler}: the site is under {own}: leave the option out")
    return policy


def _said_of_pbs() -> str:
    left_out = "queues, job_sort_formula, fair share, limits and hosts"
    return f"These are PBS's defaults, and the processors are one host. {_left_out(left_out)}"


def _said_of_slurm(workload: Workload) -> str:
    pool, nodes = ("", "") if workload.machine else (", and the processors are one pool", ", nodes")
    left_out = f"partitions{nodes}, priorities, fair share and limits"
    return f"These are Slurm's defaults{pool}. {_left_out(left_out)}"


def _left_out(what: str) -> str:
    return f"A site's own {what} are left out: give them with --site (foretime site import)."
