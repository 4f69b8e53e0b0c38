"""PBS's fair share and formulas as the native core takes them, and its usage as the core has it."""

from __future__ import annotations

from dataclasses import replace

from foretime_sim import _core
from foretime_sim.engine.native.pbs_names import PbsNames
from foretime_sim.sites.pbs.formula import FormulaNode, parse_formula
from foretime_sim.sites.pbs.site import PbsSite, ShareGroup

LISTED = ("ncpus", "mem", "ngpus", "walltime", "soft_walltime")
"""What a job of a workload asks for, in the order of the core's PbsList."""
_FORMULA_NAMES = frozenset(
    (
        *LISTED,
        "cput",
        "queue_priority",
        "job_priority",
        "fairshare_perc",
        "fair_share_perc",
        "fairshare_tree_usage",
        "fairshare_factor",
    )
)


def add_shares(core: _core.PbsSite, site: PbsSite, names: PbsNames) -> None:
    """Give the core the tree of fair share, and how it is charged."""
    settings = site.scheduler
    places = _share_places(site)
    by_name = {group.name: group for group in site.share_groups}
    groups = [(-1, 0, 1.0), (0, settings.unknown_shares, site.unknown_usage)]
    for name in list(places)[len(groups) :]:
        group = by_name[name]
        groups.append((places[group.parent], group.shares, group.usage))
    entity = settings.fairshare_entity
    if entity == "queue":
        number = {at: places[q.name] for at, q in enumerate(site.queues) if q.name in places}
    else:
        kind = "p" if entity == "project" else "u"
        number = {names.code(kind, name): place for name, place in places.items()}
    core.share(
        on=settings.fair_share,
        enforce_no_shares=settings.fairshare_enforce_no_shares,
        entity="euser" if entity == "egroup" else entity,
        decay_time=settings.fairshare_decay_time_s,
        decay_factor=settings.fairshare_decay_factor,
        usage=core_formula(parse_formula(settings.fairshare_usage_res)),
        groups=groups,
        number=number,
    )


def _share_places(site: PbsSite) -> dict[str, int]:
    """Give the numbers of the entities of fair share, parents first."""
    places = {"root": 0, "unknown": 1}
    waiting = list(site.share_groups)
    while waiting:
        group = next(group for group in waiting if group.parent in places)
        waiting.remove(group)
        places[group.name] = len(places)
    return places


def with_usage(core: _core.Engine, site: PbsSite, epoch: int, names: PbsNames) -> PbsSite:
    """Give a site as it would be read now: with what fair share has charged by the last cycle.

    Parameters
    ----------
    core
        Which schedules as the site does.
    site, epoch, names
        As for `use_pbs_site`.
    """
    decayed_at, charged_at, usage, number = core.pbs_usage()
    places = _share_places(site)
    name_of = dict(enumerate(queue.name for queue in site.queues))
    if site.scheduler.fairshare_entity != "queue":
        name_of = names.by_code("p" if site.scheduler.fairshare_entity == "project" else "u")
    found = sorted((place, name_of.get(code)) for code, place in number.items())
    return replace(
        site,
        share_groups=(
            *(replace(group, usage=usage[places[group.name]]) for group in site.share_groups),
            *(
                ShareGroup(name, "unknown", 1, usage[place])
                for place, name in found
                if place >= len(places) and name is not None
            ),
        ),
        usage_at=charged_at + epoch,
        decayed_at=decayed_at + epoch,
    )


def core_formula(root: FormulaNode) -> list[tuple[str, float, str, list[int]]]:
    """Give a formula's nodes, each after those below it."""
    nodes: list[tuple[str, float, str, list[int]]] = []

    def add(node: FormulaNode) -> int:
        below = [add(each) for each in node.below]
        name = node.name if node.name in _FORMULA_NAMES else ""
        nodes.append((node.kind, node.number, name, below))
        return len(nodes) - 1

    add(root)
    return nodes
