"""What the model of priorities says where a record has what a live cluster said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from foretime_sim.reference.slurm.factors import Factors
from foretime_sim.reference.slurm.fair_share import Member
from foretime_sim.reference.slurm.priorities import Priorities
from foretime_sim.sites.slurm_site import SlurmSite

from tests.support.slurm_priority_record import Record, Sample, cells_of, tres_of

_FACTORS_OF_USERS_ALONE = (23, 2)
"""Before, sshare works out a classic fair share of accounts, too (22.05 does, 25.11 does not)."""


@dataclass
class LiveJob:
    """A job as scontrol shows it; see `foretime_sim.reference.slurm.factors.PricedJob`."""

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
        for command, live, model in (
            ("sprio", said.sample.sprio, said.sprio),
            ("sshare", said.sample.sshare, said.sshare),
        ):
            for row in cells_of(live):
                if model.get((row[0], row[1])) != row:
                    when = said.sample.at - record.began
                    yield f"{command} after {when} s: {row}, model: {model.get((row[0], row[1]))}"


@dataclass(frozen=True)
class Said:
    """Rows of sprio by job and partition, and of sshare by account and user."""

    sample: Sample
    sprio: dict[tuple[str, str], list[str]]
    sshare: dict[tuple[str, str], list[str]]


class Replay:
    """Tells the model of all that happened."""

    def __init__(self, record: Record, site: SlurmSite, version: tuple[int, int]) -> None:
        self._record, self._site = record, site
        self._old_sshare = version < _FACTORS_OF_USERS_ALONE
        self._priorities = Priorities(site, record.began)
        self._now = record.began
        self._waiting: dict[int, LiveJob] = {}
        self._running: dict[int, LiveJob] = {}

    def said(self) -> Iterator[Said]:
        """Go through the record; gives what the model says at each sample that is of one moment."""
        done = 0
        for sample in self._record.samples:
            if sample.events < 0:
                continue
            for event, number in self._record.events[done : sample.events]:
                self._happen(event, number)
            done = sample.events
            yield Said(sample, dict(self._sprio(sample)), dict(self._sshare()))

    def _happen(self, event: str, number: int) -> None:
        if event == "tick":
            self._now += number
            self._start_until(self._now)
            self._priorities.tick(self._now)
        elif event == "first":
            job = live_job(self._record.waiting.get(number, self._record.jobs[number]))
            self._waiting[number] = job
            self._priorities.submitted(job, job.submit_time)
        else:
            ended = int(self._record.jobs[number]["EndTime"])
            self._start_until(ended)
            job_that_ran = self._running.pop(number, None)
            if job_that_ran is not None:
                self._priorities.ended(job_that_ran, ended)

    def _start_until(self, time: int) -> None:
        for number in list(self._waiting):
            shown = self._record.jobs[number]
            if shown["JobState"] == "PENDING" or int(shown["StartTime"]) > time:
                continue
            job = self._waiting.pop(number)
            self._running[number] = job
            tres = tres_of(shown.get("AllocTRES") or shown.get("TRES") or "")
            self._priorities.started(job, tres, int(shown["StartTime"]), shown["Partition"])

    def _sprio(self, sample: Sample) -> Iterator[tuple[tuple[str, str], list[str]]]:
        known = {**self._waiting, **self._running}
        for row in cells_of(sample.sprio):
            job = known[int(row[0])]
            factors = self._priorities.factors_of(job, row[1])
            yield (row[0], row[1]), [row[0], row[1], *self._columns(factors)]

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
        eligible_time=int(shown["EligibleTime"]),
        time_limit_s=((days * 24 + hours) * 60 + minutes) * 60 + seconds,
        nice=int(shown["Nice"]),
        tres=tres_of(shown.get("ReqTRES") or shown.get("TRES") or ""),
    )
