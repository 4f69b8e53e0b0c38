"""A site under Slurm, and what its jobs say to it, as the native core takes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from foretime_estimators.arrays import Int64Array, MaskedInt64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim import _core
from foretime_sim.engine.native.limits_core import JobNumbers
from foretime_sim.engine.native.node_core import core_group, core_request
from foretime_sim.files.near_names import nearest
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.same_site import kept_for_the_same
from foretime_sim.sites.slurm.accounts import Accounts
from foretime_sim.sites.slurm.limit_tables import limit_tables
from foretime_sim.sites.slurm.priority_tables import PriorityTables
from foretime_sim.sites.slurm.reason_codes import reason_word
from foretime_sim.sites.slurm.refusals import unmodelled_refusal
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import Request
from foretime_sim.workloads.resource_requests import check_all_fit, fit_requests
from foretime_sim.workloads.site_jobs import SiteJob, SiteJobs
from foretime_sim.workloads.workload import Workload

_AFTER_END = 1
"""`foretime_sim.engine.admission.After.END`, which is above this room."""
JOB_COLUMNS = 16
"""Of what a job says, as the core takes it (`StepwiseNames.row`)."""
_FLAWS = ("none", "account", "qos")
"""As ``slurm::Flaw`` of the core has them."""


@kept_for_the_same
def core_site(site: SlurmSite, epoch: int) -> _core.SlurmSite:
    """Give a site as the native core has it.

    Parameters
    ----------
    site
        What is set up.
    epoch
        Epoch seconds of the clock's zero: Slurm's periods are those of the real clock.

    Raises
    ------
    InputError
        If the site does what is not modelled.
    """
    refusal = unmodelled_refusal(site)
    if refusal is not None:
        raise InputError(f"site: {refusal}")
    machine = site.machine
    core = _core.SlurmSite(
        version=site.version,
        parameters=dataclasses.asdict(site.parameters),
        groups=[core_group(machine, number) for number in range(len(machine.node_groups))],
        priority=PriorityTables.of(site),
        limits=limit_tables(site),
        epoch=epoch,
    )
    for index, part in enumerate(machine.slurm_partitions):
        rules = site.rules_of(part.name)
        core.add_partition(
            priority_tier=part.priority_tier,
            most_nodes_in_use=part.max_nodes_in_use,
            max_cpus_per_node=rules.max_cpus_per_node,
            default_memory_per_node=rules.default_memory_per_node_mib,
            over_time_limit=site.over_time_limit_s(part.name),
            starts=rules.state in ("UP", "DRAIN"),
            submits=rules.state in ("UP", "DOWN"),
            groups=list(machine.groups_of(index)),
        )
    numbers = {group.name: number for number, group in enumerate(machine.node_groups)}
    for reservation in site.reservations:
        core.add_reservation(
            reservation.start,
            reservation.end,
            sorted(numbers[name] for name in reservation.node_groups),
        )
    places = {switch.name: place for place, switch in enumerate(site.switches)}
    for switch in site.switches:
        core.add_switch(
            [numbers[name] for name in switch.node_groups],
            [places[name] for name in switch.switches],
        )
    return core


@kept_for_the_same
def as_submitted(site: SlurmSite) -> SlurmSite:
    """Give a site that starts jobs in the order of their submission, whosever they are.

    For jobs of which neither user nor account nor QOS is known.
    """
    anybodys = {
        name: dataclasses.replace(
            rules,
            qos=None,
            allow_accounts=None,
            deny_accounts=None,
            allow_qos=None,
            deny_qos=None,
            min_nodes=0,
        )
        for name, rules in site.rules.items()
    }
    basic = dataclasses.replace(site.priority, multifactor=False)
    return dataclasses.replace(
        site, priority=basic, rules=anybodys, qos={}, associations=(), enforced=frozenset()
    )


def machine_of_site(workload: Workload, machine: Machine) -> Workload:
    """Put a workload on its site's machine, if it is on no machine yet.

    Raises
    ------
    InputError
        If it is on another one, or on a flat pool of another size.
    """
    if workload.machine == machine:
        return workload
    if workload.machine is not None:
        raise InputError(
            f"{workload.name}: its machine is another than that of the site: put it on"
            " site.machine (foretime_sim.workloads.resource_requests.with_machine)"
        )
    if workload.machine_processors != machine.cpus:
        raise InputError(
            f"{workload.name}: it has {workload.machine_processors} processors, the machine of the"
            f" site has {machine.cpus} CPUs: put it on site.machine"
            " (foretime_sim.workloads.resource_requests.with_machine)"
        )
    return dataclasses.replace(workload, machine=machine)


def use_slurm_site(
    core: _core.Engine, slurm: Slurm, epoch: int, *, record: bool, keep_plans: bool
) -> None:
    """Let a core schedule as a site does, before any job is submitted.

    Parameters
    ----------
    record
        What jobs have of which nodes.
    keep_plans
        Plan as far as Slurm does, so that plans can be asked for; otherwise only as far as it
        matters for who starts.
    """
    core.use_slurm(core_site(slurm.site, epoch), record, keep_plans, slurm.coarse)


def describe_for_slurm(core: _core.Engine, workload: Workload, site: SlurmSite) -> None:
    """Tell the core what each job of a workload asks for and says, before they are submitted.

    Raises
    ------
    InputError
        If a job could never run, or names what the site has not.
    """
    fitted = fit_requests(workload, site.reservations)
    check_all_fit(workload, fitted)
    for request in fitted.requests:
        core.add_request(core_request(request))
    core.set_requests(fitted.request_of.astype(np.int64))
    said = workload.site_jobs or SiteJobs()
    jobs = len(workload)
    names = list(site.qos)
    reserved = [reservation.name for reservation in site.reservations]
    qos = _codes_among(workload, "qos", said.qos, names) if names else np.full(jobs, -1)
    users, accounts = _codes(workload.users, jobs), _codes(workload.projects, jobs)
    first = np.array([request.choices[0].slurm_partition for request in fitted.requests], int)
    columns = (
        users,
        accounts,
        *_whose_rules(workload, site, users, accounts, qos, first[fitted.request_of]),
        _numbers(said.nice, jobs, 0),
        _numbers(said.site_factor, jobs, 0),
        _numbers(said.time_min_s, jobs, 0),
        _numbers(said.begin_time, jobs, 0),
        _codes_among(workload, "reservation", said.reservations, reserved),
        _codes(workload.array_ids, jobs),
        _numbers(said.array_most_running, jobs, 0),
        _numbers(said.after, jobs, -1),
        _numbers(said.after_what, jobs, _AFTER_END) == _AFTER_END,
    )
    rows = np.stack([np.asarray(column, dtype=np.int64) for column in columns], axis=1)
    core.describe_all_for_slurm(np.ascontiguousarray(rows))
    if said.licenses is not None:
        for job, text in enumerate(said.licenses.by_job()):
            if text:
                where = f"{workload.name}: job {workload.job_id[job]}"
                core.give_licenses(job, core_licenses(where, text, site.licenses))


def _whose_rules(
    workload: Workload,
    site: SlurmSite,
    users: Int64Array,
    accounts: Int64Array,
    qos: Int64Array,
    slurm_partition: Int64Array,
) -> Int64Array:
    """Give the columns of `WhoseRules`, worked out once for all jobs that say the same."""
    rows = np.stack([users, accounts, qos, slurm_partition], axis=1)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    rules, names = whose_rules(site), list(site.qos)
    of = [
        rules.of(
            None if user < 0 or workload.users is None else workload.users.names[user],
            None if account < 0 or workload.projects is None else workload.projects.names[account],
            None if named < 0 else names[named],
            site.machine.slurm_partitions[part].name,
        )
        for user, account, named, part in distinct.tolist()
    ]
    found: Int64Array = np.array(of, dtype=np.int64).reshape(-1, 5)[which.reshape(-1)].T
    return found


class WhoseRules:
    """Whose priority and whose limits a job has, as places in a site's tables.

    Parameters
    ----------
    site
        Which the jobs are submitted to.
    """

    def __init__(self, site: SlurmSite) -> None:
        self._site = site
        self._accounts, self._numbers = Accounts(site), JobNumbers(limit_tables(site))
        self._qos = {name: place for place, name in enumerate(site.qos)}

    def of(
        self, user: str | None, account: str | None, qos: str | None, slurm_partition: str
    ) -> tuple[int, int, int, int, int]:
        """Give association and QOS of priorities, both of limits, and what is wrong with them.

        -1 where there is none; ``slurm_partition`` is the first that the job names.
        """
        association = self._accounts.association_of(user, account, (slurm_partition,))
        name = self._accounts.qos_of(association, qos)
        limited, number, flaw = self._numbers.whose(user, account, qos, slurm_partition)
        return (
            _or_none(association),
            -1 if name is None else self._qos[name],
            _or_none(limited),
            _or_none(number),
            _FLAWS.index(flaw),
        )


@kept_for_the_same
def whose_rules(site: SlurmSite) -> WhoseRules:
    """Give those of a site."""
    return WhoseRules(site)


def _or_none(place: int | None) -> int:
    return -1 if place is None else place


class _Said(NamedTuple):
    """What a job said at its submission, and what was changed since."""

    user: str | None
    account: str | None
    reservation: str | None
    slurm_partition: str
    said: SiteJob


class StepwiseNames:
    """Names of jobs that come one by one, as the codes that the core knows them by.

    Parameters
    ----------
    site
        Which the jobs are submitted to.
    rules
        Those of the site, where they are known already.
    """

    def __init__(self, site: SlurmSite, rules: WhoseRules | None = None) -> None:
        self.site = site
        self._rules = rules or whose_rules(site)
        self._codes: dict[tuple[str, str], int] = {}
        self._count: dict[str, int] = {}
        self._said: dict[int, _Said] = {}

    def of_jobs(self, jobs: Int64Array) -> StepwiseNames:
        """Give the same codes for an engine in which these jobs are the first, in this order."""
        taken = StepwiseNames(self.site, self._rules)
        taken._codes, taken._count = self._codes.copy(), self._count.copy()
        said = self._said
        taken._said = {new: said[old] for new, old in enumerate(jobs.tolist()) if old in said}
        return taken

    def first_partition(self, request: Request) -> str:
        """Give the first slurm_partition that a request names."""
        return self.site.machine.slurm_partitions[request.choices[0].slurm_partition].name

    def code(self, kind: str, name: str | None) -> int:
        """Give the code of a name of a kind; -1 for none."""
        if name is None:
            return -1
        if (kind, name) not in self._codes:
            self._codes[kind, name] = self._count.get(kind, 0)
            self._count[kind] = self._codes[kind, name] + 1
        return self._codes[kind, name]

    def describe(
        self,
        core: _core.Engine,
        user: str | None,
        account: str | None,
        reservation: str | None,
        slurm_partition: str,
        said: SiteJob,
    ) -> None:
        """Tell the core what the next job says.

        Raises
        ------
        InputError
            If it names what the site has not.
        """
        index = len(core)
        row, licenses = self.row(f"job {index}", user, account, reservation, slurm_partition, said)
        core.describe_for_slurm(index, row, licenses)
        self._said[index] = _Said(user, account, reservation, slurm_partition, said)

    def note(
        self,
        index: int,
        user: str | None,
        account: str | None,
        reservation: str | None,
        slurm_partition: str,
        said: SiteJob,
    ) -> None:
        """Note what a job says that the core has been told of in the same order by `row`."""
        self.row(f"job {index}", user, account, reservation, slurm_partition, said)
        self._said[index] = _Said(user, account, reservation, slurm_partition, said)

    def change(
        self,
        core: _core.Engine,
        index: int,
        nice: int | None,
        qos: str | None,
        site_factor: int | None,
    ) -> None:
        """Tell the core what a job says otherwise from now on; ``None``: as before.

        Raises
        ------
        InputError
            If the site has no such QOS.
        """
        user, account, reservation, slurm_partition, before = self._said[index]
        said = dataclasses.replace(
            before,
            nice=before.nice if nice is None else nice,
            qos=before.qos if qos is None else qos,
            site_factor=before.site_factor if site_factor is None else site_factor,
        )
        row, _ = self.row(f"job {index}", user, account, reservation, slurm_partition, said)
        core.change_for_slurm(index, row)
        self._said[index] = _Said(user, account, reservation, slurm_partition, said)

    def row(
        self,
        where: str,
        user: str | None,
        account: str | None,
        reservation: str | None,
        slurm_partition: str,
        said: SiteJob,
    ) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
        """Give what a job says as the core's columns, and its licenses.

        Raises
        ------
        InputError
            If it names what the site has not; it begins with ``where``.
        """
        site = self.site
        reserved = [one.name for one in site.reservations]
        for what, name, known in (
            ("qos", said.qos, list(site.qos)),
            ("reservation", reservation, reserved),
        ):
            if name is not None and known and name not in known:
                raise InputError(f"{where}: there is no {what} {name!r}{nearest(name, known)}")
        licenses = core_licenses(where, said.licenses or "", site.licenses)
        row = (
            self.code("user", user),
            self.code("account", account),
            *self._rules.of(user, account, said.qos, slurm_partition),
            said.nice,
            said.site_factor,
            said.time_min_s or 0,
            said.begin_time or 0,
            -1 if reservation is None else reserved.index(reservation),
            self.code("array", said.array),
            said.array_most_running or 0,
            -1 if said.after is None else said.after,
            int(said.after_what in (None, _AFTER_END)),
        )
        return row, licenses


def core_licenses(where: str, text: str, there: Mapping[str, int]) -> list[tuple[int, int]]:
    """Read ``--licenses`` (``name``, ``name:count``, separated by commas) for the core.

    Raises
    ------
    InputError
        If the site has not so many; it begins with ``where``.
    """
    names = list(there)
    found: dict[str, int] = {}
    for word in text.split(","):
        name, _, number = word.strip().partition(":")
        if name:
            found[name] = found.get(name, 0) + int(number or 1)
    for name, count in found.items():
        if count > there.get(name, 0):
            raise InputError(
                f"{where} asks for {count} of the license {name!r}, of which the site has"
                f" {there.get(name, 0)}: add it to the site's licenses"
            )
    return [(names.index(name), count) for name, count in found.items()]


def why_slurm_never(core: _core.Engine, site: SlurmSite) -> Callable[[int], str]:
    """Give what says of a job, by its index, that was refused or never starts, why."""
    kinds = limit_tables(site).kinds

    def why(job: int) -> str:
        word = reason_word(core.why_slurm_keeps(job), kinds)
        return word or "reservations or states of partitions keep it out"

    return why


def slurm_reason(core: _core.Engine, site: SlurmSite, job: int) -> str:
    """Give Slurm's word for why a job does not start; "" if no rule of the site keeps it."""
    code = core.slurm_reason(job)
    return (reason_word(code, limit_tables(site).kinds) or "") if code else ""


def whole_minutes(seconds: Int64Array) -> Int64Array:
    """Round time limits up to minutes, as Slurm keeps them; at least one (`time_str2mins`)."""
    minutes: Int64Array = np.maximum(-(-seconds // 60), 1) * 60
    return minutes


def _codes(labels: Labels | None, jobs: int) -> Int64Array:
    return np.full(jobs, -1, dtype=np.int64) if labels is None else labels.codes.astype(np.int64)


def _codes_among(
    workload: Workload, what: str, labels: Labels | None, known: list[str]
) -> Int64Array:
    if labels is None:
        return np.full(len(workload), -1, dtype=np.int64)
    number = {name: place for place, name in enumerate(known)}
    codes = np.array([*(number.get(name, -2) for name in labels.names), -1], dtype=np.int64)
    found: Int64Array = codes[labels.codes]
    if (found == -2).any():
        job = int(np.flatnonzero(found == -2)[0])
        name = str(labels.get(job))
        raise InputError(
            f"{workload.name}: job {workload.job_id[job]}: there is no {what}"
            f" {name!r}{nearest(name, known)}"
        )
    return found


def _numbers(column: MaskedInt64Array | None, jobs: int, missing: int) -> Int64Array:
    if column is None:
        return np.full(jobs, missing, dtype=np.int64)
    return np.asarray(column.filled(missing), dtype=np.int64)
