"""What of a good file a simulation takes otherwise: its release, and TRES that no job has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from foretime_sim.files.toml_keys import table_name
from foretime_sim.sites.slurm.limits import Limits
from foretime_sim.sites.slurm.releases import other_release_note
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.sites.slurm.site_checks import where_of

_COUNTED = ("cpu", "mem", "node", "billing", "gres/gpu")


def notes_on(site: SlurmSite) -> tuple[str, ...]:
    """Say what of a good file a simulation takes otherwise, a sentence each.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.slurm.limits import Limits, Qos
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> from foretime_sim.sites.slurm.uncounted import notes_on
    >>> qos = Qos("normal", limits=Limits(grp_tres={"cpu": 8, "gres/fpga": 2}))
    >>> notes_on(SlurmSite(Machine.flat(64), qos={"normal": qos}))
    ('gres/fpga is not counted, as no job here has any: [qos.normal].',)
    """
    named: dict[str, list[str]] = {}
    for where, kinds in _kinds(site):
        for kind in kinds:
            if kind not in _COUNTED and kind.removeprefix("license/") not in site.licenses:
                named.setdefault(kind, []).append(where)
    said = [
        f"{kind} is not counted, as no job here has any: {_some(list(dict.fromkeys(where)))}."
        for kind, where in sorted(named.items())
    ]
    release = other_release_note(site.version)
    return (*((release,) if release is not None else ()), *said)


def _some(where: list[str]) -> str:
    return where[0] if len(where) == 1 else f"{where[0]} and {len(where) - 1} more"


def _kinds(site: SlurmSite) -> Iterator[tuple[str, Mapping[str, float]]]:
    yield "PriorityWeightTRES", site.priority.weight_tres
    for name, rules in site.rules.items():
        yield f"TRESBillingWeights of [{table_name('partitions', name)}]", rules.billing_weights
    for name, qos in site.qos.items():
        yield from ((f"[{table_name('qos', name)}]", each) for each in _of_limits(qos.limits))
    for each in site.associations:
        yield from ((where_of(each), kinds) for kinds in _of_limits(each.limits))


def _of_limits(limits: Limits) -> Iterator[Mapping[str, float]]:
    for each in fields(limits):
        value = getattr(limits, each.name)
        if isinstance(value, Mapping):
            yield value
