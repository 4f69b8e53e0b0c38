"""The resource and the formula by which jobs of a PBS are raised: put in, and given back."""

from __future__ import annotations

from collections.abc import Iterator

from foretime_estimators.jobs.errors import SchedulerError
from foretime_sim.sites.pbs.formula import RANK

from foretime_sidecar.clients.pbs.server import PbsServer
from foretime_sidecar.clients.pbs.start_rank import FORMULA_DIRECTIVE, RESOURCE_DIRECTIVE
from foretime_sidecar.install.pbs_scheduler import Outcome

UNSET_FORMULA = "unset server job_sort_formula"
DELETE_RESOURCE = f"delete resource {RANK}"
_RANKED = ("-s", "QHWT", "-l", f"{RANK}.gt.0")


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


def has_resource(server: PbsServer) -> bool:
    """Say whether the resource is there."""
    try:
        return RANK in server.qmgr(f"list resource {RANK}")
    except SchedulerError:
        return False


def rank_directives(server: PbsServer) -> list[str]:
    """Give what is left to do so that jobs can be raised; nothing where the site's formula stands.

    Raises
    ------
    SchedulerError
        If PBS did not answer.
    """
    if formula_of(server) is not None:
        return []
    return [*([] if has_resource(server) else [RESOURCE_DIRECTIVE]), FORMULA_DIRECTIVE]


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
        If PBS refuses to take the formula out.
    """
    if formula_of(server) == RANK:
        server.qmgr(UNSET_FORMULA)
        outcome.done.append(f"qmgr -c '{UNSET_FORMULA}'")
    if not has_resource(server):
        return
    for job_id in server.run("qselect", *_RANKED).split():
        server.run("qalter", "-l", f"{RANK}=", job_id)
        outcome.done.append(f"qalter -l {RANK}= {job_id}")
    try:
        server.qmgr(DELETE_RESOURCE)
    except SchedulerError:
        outcome.notes.append(
            f"the resource {RANK} stays while PBS remembers jobs that had it, and does nothing: "
            f"later qmgr -c '{DELETE_RESOURCE}'"
        )
    else:
        outcome.done.append(f"qmgr -c '{DELETE_RESOURCE}'")


def uninstall_lines(server: PbsServer) -> Iterator[str]:
    """Give the commands that do the same; nothing where there is no resource.

    Raises
    ------
    SchedulerError
        If PBS did not answer.
    """
    if formula_of(server) == RANK:
        yield f"qmgr -c '{UNSET_FORMULA}'"
    if has_resource(server):
        yield f"qselect {' '.join(_RANKED)} | xargs -r -n 1 qalter -l {RANK}="
        yield f"qmgr -c '{DELETE_RESOURCE}'  # once PBS remembers no job that had it"
