"""What the model of priorities says where a record has what a live cluster said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from foretime_sim.reference.slurm.priorities.factors import Factors
from foretime_sim.reference.slurm.priorities.fair_share import Member
from foretime_sim.reference.slurm.priorities.priorities import Priorities
from foretime_sim.sites.slurm.site import SlurmSite

from tests.support.slurm.slurm_priority_record import Record, Sample, cells_of, tres_of

_FACTORS_OF_USERS_ALONE = (23, 2)
"""Before, sshare works out a classic fair share of accounts, too (22.05 does, 25.11 does not)."""


@dataclass
class LiveJob:
    """A job as scontrol shows it; see `reference.slurm.priorities.factors.PricedJob`."""

    index: int
    user: str
    account: str
    qos: str
    slurm_partitions: tuple[str, ...]
    submit_time: int
    eligible_time: int | None
    time_limit_s: int
    nice: int
    site_factor: int = 0
    tres: Mapping[str, int] = field(default_factory=dict)


def differences(record: Record, site: SlurmSite, version: tuple[int, int]) -> Iterator[str]:
    """Compare every row of a record's sprio and sshare with the model's; give those that differ."""
    for said in Replay(record, site, version).said():
        when = said.sample.at - record.began
        for number, priority in said.priorities.items():
            live_one = said.sample.priorities[number]
            if live_one != priority:
                yield f"job {number} after {when} s: priority {live_one}, model: {priority}"
        for command, live, model in (
            ("sprio", said.sample.sprio, said.sprio),
            ("sshare", said.sample.sshare, said.sshare),
        ):
            for row in cells_of(live):
                is_over = command == "sprio" and int(row[0]) in said.over
                if model.get((row[0], row[1])) != row and not is_over:
                    yield f"{command} after {when} s: {row}, model: {model.get((row[0], row[1]))}"


@dataclass(frozen=True)
class Said:
    """Rows of sprio by job and partition, and of sshare by account and user; priorities of waiting
    jobs of one partition by id; and jobs that are over, which sprio may still show."""

    sample: Sample
    sprio: dict[tuple[str, str], list[str]]
    sshare: dict[tuple[str, str], list[str]]
    priorities: dict[str, int]
    over: frozenset[int]


class Replay:
    """Tells the model of all that happened."""

    def __init__(self, record: Record, site: SlurmSite, version: tuple[int, int]) -> None:
        self._record, self._site = record, site
        self._old_sshare = version < _FACTORS_OF_USERS_ALONE
        self._priorities = Priorities(site, record.began)
        self._now = record.began
        self._waiting: dict[int, LiveJob] = {}
        self._running: dict[int, LiveJob] = {}
        self._over: set[int] = set()

    def said(self) -> Iterator[Said]:
        """Go through the record; gives what the model says at each sample that is of one moment."""
        done = 0
        for sample in self._record.samples:
            if sample.events < 0:
                continue
            for event, number in self._record.events[done : sample.events]:
                self._happen(event, number)
            done = sample.events
            yield Said(
                sample,
                dict(self._sprio(sample)),
                dict(self._sshare()),
                dict(self._waiting_priorities(sample)),
                frozenset(self._over),
            )

    def _happen(self, event: str, number: int) -> None:
        if event == "tick":
            self._now += number
            self._priorities.tick(self._now)
        elif event == "first":
            job = live_job(self._record.waiting.get(number, self._record.jobs[number]))
            self._waiting[number] = job
            self._priorities.submitted(job, self._first_priority_at(job))
        elif event == "started" and number in self._waiting:
            job, shown = self._waiting.pop(number), self._record.jobs[number]
            self._running[number] = job
            tres = tres_of(shown.get("AllocTRES") or shown.get("TRES") or "")
            self._priorities.started(job, tres, int(shown["StartTime"]), shown["Partition"])
        elif number in self._running:
            ended = int(self._record.jobs[number]["EndTime"])
            self._priorities.ended(self._running.pop(number), ended)
            self._over.add(number)

    def _first_priority_at(self, job: LiveJob) -> int:
        """A held job gets its first priority as it is released."""
        number = str(job.index)
        was_held = any(sample.priorities.get(number) == 0 for sample in self._record.samples)
        if not was_held:
            return job.submit_time
        return self._record.firsts.get(job.index, job.eligible_time or 0)

    def _sprio(self, sample: Sample) -> Iterator[tuple[tuple[str, str], list[str]]]:
        known = {**self._waiting, **self._running}
        for row in cells_of(sample.sprio):
            job = known.get(int(row[0]))
            if job is None:
                continue
            factors = self._priorities.factors_of(job, row[1])
            yield (row[0], row[1]), [row[0], row[1], *self._columns(factors)]

    def _waiting_priorities(self, sample: Sample) -> Iterator[tuple[str, int]]:
        for number in sample.priorities:
            job = self._waiting.get(int(number))
            if job is not None and len(job.slurm_partitions) == 1:
                name = job.slurm_partitions[0]
                yield number, self._priorities.priority_of(job, name, sample.at)
            elif job is None and sample.priorities[number] == 0:
                yield number, 0  # held

    def _columns(self, factors: Factors) -> list[str]:
        weights = self._site.priority
        tres = {kind: value for kind, value in factors.tres.items() if value}
        weighed = (
            (factors.age, weights.weight_age),
            (factors.association, weights.weight_assoc),
            (factors.fair_share, weights.weight_fair_share),
            (factors.job_size, weights.weight_job_size),
            (factors.slurm_partition, weights.weight_partition),
            (factors.qos, weights.weight_qos),
        )
        total = sum(value for value, _ in weighed) + factors.site_factor - factors.nice
        for value in tres.values():
            total += value
        return [
            str(int(max(total, 1))),
            str(factors.site_factor),
            *(f"{value:.0f}" for value, _ in weighed),
            str(factors.nice),
            ",".join(f"{kind}={value:.0f}" for kind, value in tres.items()),
            *(f"{value / weight:.7f}" for value, weight in weighed),
            ",".join(
                f"{kind}={value / weights.weight_tres[kind]:.2f}" for kind, value in tres.items()
            ),
        ]

    def _sshare(self) -> Iterator[tuple[tuple[str, str], list[str]]]:
        fair_share = self._priorities.fair_share
        for place, member in enumerate(fair_share.members):
            if member.association.user is not None:
                fair_share.effective_usage_of(place)
            name = (member.association.account, member.association.user or "")
            yield name, [*name, *self._shares(place, member)]

    def _shares(self, place: int, member: Member) -> list[str]:
        fair_share, shares = self._priorities.fair_share, member.association.shares
        effective = fair_share.effective_usage_of(place)
        is_user = member.association.user is not None
        level_fs = "" if shares is None else f"{float(member.level_fs):.6f}"
        if fair_share.is_fair_tree:
            factor = f"{member.factor:.6f}" if is_user else ""
            level_fs = level_fs if place else ""
        elif self._old_sshare:
            factor = f"{fair_share.classic_factor(effective, member.shares_norm):.6f}"
        else:
            factor = f"{fair_share.factor_of(place):.6f}" if is_user else ""
        return [
            "" if place == 0 else "parent" if shares is None else str(shares),
            f"{member.shares_norm:.6f}",
            str(int(member.usage_raw)),
            f"{float(member.usage_norm):.6f}" if place else "",
            f"{float(effective):.6f}",
            factor,
            level_fs,
        ]


def live_job(shown: Mapping[str, str]) -> LiveJob:
    """Read a job of scontrol's."""
    limit = shown["TimeLimit"]
    hours, minutes, seconds = (int(part) for part in limit.split("-")[-1].split(":"))
    days = int(limit.split("-")[0]) if "-" in limit else 0
    return LiveJob(
        index=int(shown["JobId"]),
        user=shown["UserId"].split("(")[0],
        account=shown["Account"],
        qos=shown["QOS"],
        slurm_partitions=tuple(shown["Partition"].split(",")),
        submit_time=int(shown["SubmitTime"]),
        eligible_time=None if shown["EligibleTime"] == "Unknown" else int(shown["EligibleTime"]),
        time_limit_s=((days * 24 + hours) * 60 + minutes) * 60 + seconds,
        nice=int(shown["Nice"]),
        tres=tres_of(shown.get("ReqTRES") or shown.get("TRES") or ""),
    )
