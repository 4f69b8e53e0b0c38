"""The keys of a policy in TOML, and the policy that their values make.

Policy files, campaigns and the options of `foretime replay` and `foretime simulate` all come to a
`Policy` here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from foretime_estimators.jobs.errors import InputError
from pydantic import BaseModel, ConfigDict, Field

from foretime_sim.policies.families import FAMILIES, Compression, has_setting, with_settings
from foretime_sim.policies.guard import GuardBy, parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Correction, EventOrder, Policy, Roles
from foretime_sim.policies.policy_values import (
    LEARNED,
    OFF,
    AnyOrderName,
    AverageWait,
    BackfillName,
    CompressionName,
    CorrectionName,
    CorrectionSteps,
    Depth,
    EventOrderName,
    GuardByName,
    InsertionOrderName,
    NotNegative,
    OverrunsName,
    PositiveSecondsOrOff,
    RolesName,
    SecondsOrOff,
    SlackWeights,
    backfill_named,
    order_named,
    slack_weights,
)
from foretime_sim.policies.slack import InsertionOrder, Overruns, SlackSettings
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.site_file import Site, read_site

SLACK_KEYS = ("slack_factor", "average_wait_s", "insertion_order", "slack_weights", "overruns")
_SLACK = SlackSettings()


class PolicyTable(BaseModel):
    """A policy: how the scheduler works."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    order: AnyOrderName = Field(
        default="fcfs",
        description=f"Queue order: {', '.join(o.value for o in Order if o is not Order.PRIORITY)}, "
        "dynp for switching between orders under planning (`dynp-DECIDER-QUALITY/setting=value`), "
        "or `module:attribute` of your own, from the current folder, or a campaign's own.",
    )
    site: str | None = Field(
        default=None,
        description="A site's file (`foretime site import`): its scheduler, on its nodes, takes "
        "the place of order and backfill; from the current folder, or a campaign's own.",
    )
    backfill: BackfillName = Field(
        default="easy",
        description=f"Backfilling: {', '.join(FAMILIES)}, or `module:attribute`.",
    )
    depth: Depth = Field(default=1, description="Reservations held at once by the kinds of easy.")
    compression: CompressionName = Field(
        default=str(Compression.RESERVATION_ORDER),
        description="How conservative backfilling moves reservations forward: "
        f"{', '.join(c.value for c in Compression)}.",
    )
    slack_factor: NotNegative = Field(
        default=_SLACK.slack_factor,
        description="Of backfilling slack: how many average waits a job of priority 0 may be "
        "delayed for others.",
    )
    average_wait_s: AverageWait = Field(
        default=LEARNED,
        description='Of slack: the average wait, seconds; "learned" is the mean of the jobs that '
        "have started so far.",
    )
    insertion_order: InsertionOrderName = Field(
        default=str(_SLACK.insertion_order),
        description="Of slack: in which order jobs that made room are planned again: "
        f"{', '.join(o.value for o in InsertionOrder)}.",
    )
    slack_weights: SlackWeights = Field(
        default="1,1,1,1",
        description="Of slack: weights of utilization, time, priority and fairness, from 0 to 1.",
    )
    overruns: OverrunsName = Field(
        default=str(_SLACK.overruns),
        description="Of slack: what happens to a job whose requested time is up: "
        f"{', '.join(o.value for o in Overruns)}.",
    )
    correction: CorrectionName = Field(
        default="requested",
        description="What a job that outlives t_sched is planned with: "
        f"{', '.join(c.value for c in Correction)}.",
    )
    correction_steps: CorrectionSteps = Field(
        default=OFF,
        description="With correction incremental or doubling: a job that has been corrected so "
        'often is planned with its request; "off": it goes on in steps.',
    )
    roles: RolesName = Field(
        default="111", description="Where t_sched is used: queue, backfill, drain."
    )
    guard_s: SecondsOrOff = Field(
        default=OFF,
        description="Starvation guard of the kinds of easy with a depth of 1, and of your own "
        'backfilling, seconds; "off" for none.',
    )
    guard_by: GuardByName = Field(
        default=str(GuardBy.REQUESTED_PLAN),
        description="What that guard goes by: the head job's plan on requested times, or its start "
        "in a plain EASY beside, at once or gradually (kinds of easy only): "
        f"{', '.join(g.value for g in GuardBy)}.",
    )
    guard_share: NotNegative = Field(
        default=0.0,
        description="With a guard by a plain EASY: share of a job's wait there that is taken off "
        "guard_s.",
    )
    ageing_s: PositiveSecondsOrOff = Field(
        default=OFF,
        description="How fast candidates of easy-sjbf and easy-wspt with a depth of 1 age: their "
        'times count as time / (1 + wait / ageing_s); "off" for not at all.',
    )
    event_order: EventOrderName = Field(
        default="per-timestep",
        description=f"What comes first in a second: {', '.join(e.value for e in EventOrder)}.",
    )
    scheduling_interval_s: PositiveSecondsOrOff = Field(
        default=OFF,
        description='Seconds between scheduling passes; "off": a pass follows every event.',
    )


_Readers: TypeAlias = Mapping[str, Callable[[Any], object]]
_OF_ALL: _Readers = {
    "correction": Correction.parse,
    "correction_steps": int,
    "roles": Roles.parse,
    "event_order": EventOrder.parse,
    "scheduling_interval_s": int,
}
_OF_A_FAMILY: _Readers = {"depth": int, "compression": Compression.parse, "ageing_s": int}


def policy_of(values: Mapping[str, Any], folder: Path | None = None) -> Policy:
    """Give the policy of some keys' values.

    Parameters
    ----------
    values
        By keys of `PolicyTable`, in its forms; a key that is left out, or ``None``, is at its
        default.
    folder
        Where the user's own order and backfilling are looked for; the current one if ``None``.

    Raises
    ------
    InputError
        If a value is out of its range, or values do not go together.

    Examples
    --------
    >>> from foretime_sim.policies.policy_table import policy_of
    >>> policy = policy_of({"order": "sjf", "backfill": "conservative"})
    >>> policy.order, str(policy.backfill)
    (<Order.SJF: 'sjf'>, 'conservative')
    """
    given = {key: value for key, value in values.items() if value is not None}
    if "site" in given:
        return _policy_of_site_file(given, folder)
    if given.get("guard_s") == OFF:  # with all that belongs to it
        given = {key: value for key, value in given.items() if not key.startswith("guard_")}
    family = backfill_named(given.get("backfill", "easy"), folder)
    of_slack = [key for key in SLACK_KEYS if key in given]
    if of_slack and not has_setting(family, "settings"):
        raise InputError(
            f"{of_slack[0]} is {given[of_slack[0]]}: only slack backfilling has a slack, not"
            f" {family}: leave it out"
        )
    family = with_settings(
        family,
        guard=parse_guard(
            given.get("guard_s"),
            GuardBy.parse(given.get("guard_by", GuardBy.REQUESTED_PLAN.value)),
            given.get("guard_share", 0.0),
        ),
        settings=_slack(given) if of_slack else None,
        **_read(_OF_A_FAMILY, given),
    )
    policy = Policy(backfill=family, **_read(_OF_ALL, given))
    return policy.in_order(order_named(given.get("order", "fcfs"), folder))


def _policy_of_site_file(given: Mapping[str, Any], folder: Path | None) -> Policy:
    if not given["site"]:
        raise InputError("site is empty: name a site's file, or leave it out")
    said = {key: value for key, value in given.items() if value != OFF}
    if other := next((key for key in said if key != "site"), None):
        raise InputError(
            f"{other} is {said[other]}: a site's scheduler goes by the site alone: leave {other}"
            " out, or the site"
        )
    return policy_of_site(read_site((folder or Path()) / said["site"]))


def policy_of_site(site: Site) -> Policy:
    """Give the policy of a site's scheduler."""
    return Policy(backfill=Pbs(site) if isinstance(site, PbsSite) else Slurm(site))


def _read(readers: _Readers, given: Mapping[str, Any]) -> dict[str, Any]:
    """Read the values that say something."""
    return {key: read(given[key]) for key, read in readers.items() if given.get(key, OFF) != OFF}


def _slack(given: Mapping[str, Any]) -> SlackSettings:
    wait_s = given.get("average_wait_s", LEARNED)
    utilization, time, priority, fairness = slack_weights(given.get("slack_weights", "1,1,1,1"))
    return SlackSettings(
        given.get("slack_factor", _SLACK.slack_factor),
        None if wait_s == LEARNED else wait_s,
        utilization,
        time,
        priority,
        fairness,
        insertion_order=InsertionOrder.parse(given.get("insertion_order", "ast")),
        overruns=Overruns.parse(given.get("overruns", "kill")),
    )
