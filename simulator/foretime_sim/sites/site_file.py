"""A site as one TOML file that people read and change: ``site.toml``.

It is where one asks "what if": 200 more nodes, a bf_window of a week, another weight. Settings have
the scheduler's own names and units; what is left out has the scheduler's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.compressed_files import read_text
from foretime_sim.files.toml_text import parse_toml
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.pbs.site_file import PBS_TABLES, pbs_site_of
from foretime_sim.sites.pbs.site_text import format_pbs_site
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.sites.slurm.site_file import slurm_site_of
from foretime_sim.sites.slurm.site_text import format_slurm_site

Site: TypeAlias = SlurmSite | PbsSite
"""A site under either scheduler."""


def read_site(path: Path | str) -> Site:
    """Read a site's file.

    Raises
    ------
    InputError
        If the file can't be read, says something impossible or contradicts itself; names file,
        table, key and value.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim.sites.site_file import read_site
    >>> text = '''
    ... [slurm.SchedulerParameters]
    ... bf_window = 10080  # minutes
    ... [node_groups.cpu]
    ... nodes = 24
    ... cpus = 32
    ... [partitions.main]
    ... node_groups = ["cpu"]
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "site.toml"
    ...     _ = path.write_text(text)
    ...     site = read_site(path)
    >>> site.machine.cpus, site.parameters.bf_window
    (768, 604800)
    """
    return parse_site(read_text(Path(path), what="site.toml"), source=str(path))


def parse_site(text: str, *, source: str) -> Site:
    """Make a site of the text of a TOML file; see `read_site`.

    Examples
    --------
    >>> from foretime_sim.sites.site_file import parse_site
    >>> text = '''
    ... scheduler = "pbs"
    ... [queues.workq]
    ... [[hosts]]
    ... name = "n001"
    ... last = "n240"
    ... resources_available = { ncpus = 64, mem = "256gb" }
    ... '''
    >>> parse_site(text, source="made").machine.cpus
    15360
    """
    tables = parse_toml(text, source)
    try:
        return _SITES[_scheduler(tables)](tables)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


_SITES: Mapping[str, Callable[[Mapping[str, Any]], Site]] = {
    "slurm": slurm_site_of,
    "pbs": pbs_site_of,
}


def _scheduler(tables: Mapping[str, Any]) -> str:
    if "scheduler" not in tables and PBS_TABLES & tables.keys():
        raise InputError('scheduler is missing: a site under PBS begins with scheduler = "pbs"')
    scheduler = tables.get("scheduler", "slurm")
    if not isinstance(scheduler, str) or scheduler not in _SITES:
        raise InputError(f"scheduler is {scheduler!r}: give slurm or pbs")
    return scheduler


def format_site(site: Site, remarks: Mapping[str, str] | None = None) -> str:
    """Write a site as the TOML that `parse_site` reads.

    Parameters
    ----------
    site
        The site.
    remarks
        What is said above the groups of nodes of a site under Slurm, by their names.

    Raises
    ------
    InputError
        If the site contradicts itself, or has what no file can say.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.site_file import format_site, parse_site
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> site = SlurmSite(Machine.flat(64))
    >>> parse_site(format_site(site), source="made") == site
    True
    """
    if isinstance(site, PbsSite):
        return format_pbs_site(site)
    return format_slurm_site(site, remarks)
