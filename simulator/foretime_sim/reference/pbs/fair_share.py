"""PBS's fair share: a tree of shares, what has been used, and who stands before whom.

fairshare.cpp of OpenPBS, and ``init_scheduling_cycle`` and ``create_prev_job_info``, which charge.
What a running job uses is charged at each cycle, as the difference since the cycle before; what it
uses after the last cycle that sees it running is never charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foretime_sim.reference.pbs.formula import Formula
from foretime_sim.reference.pbs.job import PbsJob
from foretime_sim.sites.pbs.formula import parse_formula
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import ShareGroup

LEAST_USAGE = 1.0
"""Usage never decays below it (FAIRSHARE_MIN_USAGE)."""


@dataclass(slots=True)
class Entity:
    """Somebody in the tree, or a group of them."""

    name: str
    parent: Entity | None
    shares: int
    usage: float = LEAST_USAGE
    assumed: float = LEAST_USAGE
    """Usage of this cycle, with what jobs that start in it ask for (``temp_usage``)."""
    part: float = 1.0
    """Its part of the whole machine (``tree_percentage``)."""
    used_factor: float = 0.0
    children: list[Entity] = field(default_factory=list)

    @property
    def path(self) -> list[Entity]:
        """From the root to itself."""
        above = [] if self.parent is None else self.parent.path
        return [*above, self]


class FairShare:
    """The tree of a site.

    Parameters
    ----------
    groups
        Lines of resource_group.
    scheduler
        Its settings.
    decayed_at
        When usage was last decayed.
    """

    def __init__(
        self, groups: Sequence[ShareGroup], scheduler: PbsScheduler, decayed_at: int
    ) -> None:
        self.settings = scheduler
        self.root = Entity("TREEROOT", None, 0)
        self.unknown = _below(self.root, Entity("unknown", self.root, scheduler.unknown_shares))
        self.by_name = {"root": self.root, "unknown": self.unknown}
        waiting = list(groups)
        while waiting:
            group = next(group for group in waiting if group.parent in self.by_name)
            waiting.remove(group)
            parent = self.by_name[group.parent]
            entity = _below(parent, Entity(group.name, parent, group.shares, group.usage))
            self.by_name[group.name] = entity
        self._share_out(self.root)
        self.unknown.usage += sum(
            child.usage for child in self.unknown.children if child.usage != LEAST_USAGE
        )
        self.root.usage = max(
            LEAST_USAGE, sum(child.usage for child in self.root.children if child.usage > 1)
        )
        self.decayed_at = decayed_at
        self.formula = Formula(parse_formula(scheduler.fairshare_usage_res))
        self._seen: dict[int, float] = {}

    def _share_out(self, above: Entity) -> None:
        total = sum(child.shares for child in above.children)
        for child in above.children:
            child.part = child.shares / total * above.part if total else 0.0
            self._share_out(child)

    def entity_of(self, job: PbsJob) -> Entity:
        """Give whom a job is charged to; who is not in resource_group is below ``unknown``."""
        name = {
            "euser": job.user,
            "egroup": job.group,
            "queue": job.queue,
            "project": job.project,
        }[self.settings.fairshare_entity]
        if name not in self.by_name:
            self.by_name[name] = _below(self.unknown, Entity(name, self.unknown, 1))
            self._share_out(self.unknown)
        return self.by_name[name]

    def begin_cycle(self, running: Sequence[tuple[PbsJob, int]], now: int) -> None:
        """Charge running jobs (each with the seconds it is known to have run), and decay."""
        charged = {}
        for job, known_s in running:
            charged[job.index] = self._used(job, known_s)
            if job.index in self._seen:
                delta = max(charged[job.index] - self._seen[job.index], 0.0)
                for entity in self.entity_of(job).path:
                    entity.usage += delta
        self._decay(now)
        for entity in self._all(self.root):
            entity.assumed = entity.usage
        self._use_factors()
        self._seen = charged

    def end_cycle(self, running: Sequence[tuple[PbsJob, int]]) -> None:
        """Remember what running jobs had used, those that have just started among them."""
        self._seen = {job.index: self._used(job, known_s) for job, known_s in running}

    def started(self, job: PbsJob) -> None:
        """Assume for the rest of the cycle that a job uses what it asks for.

        So it is of jobs that start and of top jobs (``update_usage_on_run``).
        """
        asked = self.formula.value(job.list)
        for entity in self.entity_of(job).path:
            entity.assumed += asked

    def factors(self, job: PbsJob) -> dict[str, float]:
        """Give what formulas may name."""
        entity = self.entity_of(job)
        factor = 2.0 ** -(entity.used_factor / entity.part) if entity.part else 0.0
        return {
            "fairshare_perc": entity.part,
            "fair_share_perc": entity.part,
            "fairshare_tree_usage": entity.used_factor,
            "fairshare_factor": factor,
        }

    def compare(self, one: PbsJob, other: PbsJob) -> int:
        """Say who stands first: -1 the one, 1 the other, 0 neither (``compare_path``).

        The first level at which their groups differ in usage by share decides.
        """
        for a, b in zip(self.entity_of(one).path, self.entity_of(other).path, strict=False):
            if a is b:
                continue
            if a.part <= 0 or b.part <= 0:
                return (a.part <= 0) - (b.part <= 0)
            used, others = a.assumed / a.part, b.assumed / b.part
            if used != others:
                return -1 if used < others else 1
        return 0

    def _used(self, job: PbsJob, known_s: int) -> float:
        # CPU time is not known of a log; it is taken as if all CPUs were busy.
        used = job.list | {"walltime": known_s, "cput": known_s * job.list.get("ncpus", 1)}
        return self.formula.value(used)

    def _decay(self, now: int) -> None:
        span = self.settings.fairshare_decay_time_s
        if span <= 0 or now - self.decayed_at <= span:
            return
        times = -(-(now - self.decayed_at) // span) - 1
        for entity in self._all(self.root):
            for _ in range(times):
                if entity.usage == LEAST_USAGE:
                    break
                entity.usage *= self.settings.fairshare_decay_factor
                entity.usage = max(entity.usage, LEAST_USAGE)
        self.decayed_at = now - (now - self.decayed_at) % span

    def _use_factors(self) -> None:
        """``calc_usage_factor``: usage as a part of all, drawn towards that of the group."""
        self.root.used_factor = 0.0
        for child in self.root.children:
            child.used_factor = child.usage / self.root.usage
            self._use_factors_below(child)

    def _use_factors_below(self, above: Entity) -> None:
        total = sum(child.shares for child in above.children)
        for child in above.children:
            used = child.usage / self.root.usage
            part = child.shares / total if total else 0.0
            child.used_factor = used + (above.used_factor - used) * part
            self._use_factors_below(child)

    def _all(self, entity: Entity) -> list[Entity]:
        return [entity, *(one for child in entity.children for one in self._all(child))]


def _below(above: Entity, entity: Entity) -> Entity:
    above.children.append(entity)
    return entity
