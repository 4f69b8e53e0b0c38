"""The resource and the formula by which jobs of a PBS are raised: put in, and given back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foretime_estimators.jobs.errors import SchedulerError
from foretime_sim.sites.pbs.formula import RANK

from foretime_sidecar.clients.pbs.server import CommandFailedError, PbsServer
from foretime_sidecar.clients.pbs.start_rank import (
    FORMULA_DIRECTIVE,
    RESOURCE_DIRECTIVE,
    TYPE_DIRECTIVE,
)
from foretime_sidecar.install.steps import Outcome

UNSET_FORMULA = "unset server job_sort_formula"
DELETE_RESOURCE = f"delete resource {RANK}"
_RANKED = ("-s", "QHWTB", "-l", f"{RANK}.gt.0")
_MOST_NAMED = 5


def formula_of(server: PbsServer) -> str | None:
    """Give the server's job_sort_formula; ``None`` if it has none.

    Raises
    ------
    SchedulerError
        If PBS did not answer.
    """
    for attributes in server.status("-B", "-f").get("Server", {}).values():
        if formula := attributes.get("job_sort_formula"):
            return str(formula)
    return None


def resource_type(server: PbsServer) -> str:
    """Give the type of the resource, which must be long; "" if there is none."""
    try:
        listed = server.qmgr(f"list resource {RANK}")
    except SchedulerError:
        return ""
    found = re.search(r"^\s*type\s*=\s*(\S+)", listed, flags=re.MULTILINE)
    return found[1] if found else ""


def rank_directives(server: PbsServer) -> list[str]:
    """Give what is left to do so that jobs can be raised; nothing where the site's formula stands.

    A resource of another type is mended, too; PBS refuses that while it remembers jobs that had it.

    Raises
    ------
    SchedulerError
        If PBS did not answer.
    """
    formula, found = formula_of(server), resource_type(server)
    if formula not in (None, RANK):
        return []
    directives = [] if formula else [FORMULA_DIRECTIVE]
    if found == "long":
        return directives
    return [TYPE_DIRECTIVE if found else RESOURCE_DIRECTIVE, *directives]


def install_ranks(server: PbsServer, outcome: Outcome) -> None:
    """Make the resource, and the formula of it; a formula of the site's own stays.

    Raises
    ------
    SchedulerError
        If PBS refuses; a resource that was made stays, and does nothing.
    """
    for directive in rank_directives(server):
        server.qmgr(directive)
        outcome.done.append(f"qmgr -c '{directive}'")
    if (formula := formula_of(server)) != RANK:
        outcome.notes.append(
            f"job_sort_formula is the site's own ({formula}) and stays: no job is started at once, "
            f"which needs {RANK} there"
        )


def uninstall_ranks(server: PbsServer, outcome: Outcome) -> None:
    """Take the formula out, if it is ours, then what jobs have of the resource, and that itself.

    PBS deletes no resource that a job has, were it one that has ended and is remembered still. It
    then stays, and does nothing.

    Raises
    ------
    SchedulerError
        If PBS refuses to take the formula out, or a rank.
    """
    if formula_of(server) == RANK:
        server.qmgr(UNSET_FORMULA)
        outcome.done.append(f"qmgr -c '{UNSET_FORMULA}'")
    if not resource_type(server):
        return
    for job_id in _ranked(server):
        try:
            server.run("qalter", "-l", f"{RANK}=", job_id)
        except CommandFailedError:
            continue  # it may have started or ended meanwhile
        outcome.done.append(f"qalter -l {RANK}= {job_id}")
    if left := _ranked(server):
        raise SchedulerError(
            f"{len(left)} waiting jobs keep their {RANK}: {', '.join(left[:_MOST_NAMED])}; without "
            "the formula it does nothing; run this again"
        )
    try:
        server.qmgr(DELETE_RESOURCE)
    except SchedulerError:
        outcome.notes.append(
            f"the resource {RANK} stays while PBS remembers jobs that had it, and does nothing: "
            f"later qmgr -c '{DELETE_RESOURCE}'"
        )
    else:
        outcome.done.append(f"qmgr -c '{DELETE_RESOURCE}'")


def _ranked(server: PbsServer) -> list[str]:
    return server.run("qselect", *_RANKED).split()


def uninstall_lines(server: PbsServer) -> Iterator[str]:
    """Give the commands that do the same; nothing where there is no resource.

    Raises
    ------
    SchedulerError
        If PBS did not answer.
    """
    if formula_of(server) == RANK:
        yield f"qmgr -c '{UNSET_FORMULA}'"
    if resource_type(server):
        yield f"qselect {' '.join(_RANKED)} | xargs -r -n 1 qalter -l {RANK}="
        yield f"qmgr -c '{DELETE_RESOURCE}'  # once PBS remembers no job that had it"
