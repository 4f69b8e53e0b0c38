"""Server and queues of a PBS site, of what ``qmgr`` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.pbs.site import PbsQueue, PbsServer

from foretime_sidecar.clients.pbs.amounts import (
    is_amount,
    parse_amount,
    parse_whole_number,
    parse_yes,
)
from foretime_sidecar.clients.pbs.qmgr_text import QmgrObject
from foretime_sidecar.clients.pbs.site_limits import parse_limits

RESOURCES = tuple(f"resources_{kind}" for kind in ("available", "min", "max", "default"))


def server_of(server: QmgrObject, sched: Mapping[str, str], default_queue: str) -> PbsServer:
    """Read the server.

    Parameters
    ----------
    server
        As qmgr has it.
    sched
        Attributes of the default scheduler.
    default_queue
        See `where_unnamed_jobs_go`.

    Raises
    ------
    InputError
        Naming the attribute that can't be read.
    """
    # The formula has moved from the server to the scheduler.
    formula = {name: value for name, value in sched.items() if name.startswith("job_sort_formula")}
    found = {**formula, **server.attributes}
    values: dict[str, Any] = dict(_resources(found, "server"))
    if "backfill_depth" in found:
        values["backfill_depth"] = parse_amount(found["backfill_depth"], "server: backfill_depth")
    if "job_sort_formula" in found:
        values["job_sort_formula"] = found["job_sort_formula"]
    if "job_sort_formula_threshold" in found:
        values["job_sort_formula_threshold"] = _threshold(found["job_sort_formula_threshold"])
    if "scheduler_iteration" in found:
        where = "server: scheduler_iteration"
        values["scheduler_iteration_s"] = max(1, parse_amount(found["scheduler_iteration"], where))
    return PbsServer(
        default_queue=default_queue,
        limits=parse_limits(found, "server"),
        eligible_time_enable=parse_yes(found, "eligible_time_enable", "server"),
        **values,
    )


def _threshold(word: str) -> float:
    try:
        threshold = float(word)
    except ValueError:
        threshold = float("nan")
    if abs(threshold) < float("inf"):
        return threshold
    raise InputError(f"job_sort_formula_threshold: {word!r} is no number")


def queue_of(queue: QmgrObject) -> PbsQueue:
    """Read an execution queue; InputError names the attribute that can't be read."""
    found, where = queue.attributes, f"queue {queue.name}"
    depth = found.get("backfill_depth")
    return PbsQueue(
        queue.name,
        priority=parse_whole_number(found.get("Priority", "0"), f"{where}: Priority"),
        enabled=parse_yes(found, "enabled", where),
        started=parse_yes(found, "started", where),
        limits=parse_limits(found, where),
        backfill_depth=None if depth is None else parse_amount(depth, f"{where}: backfill_depth"),
        **_resources(found, where),
    )


def _resources(attributes: Mapping[str, str], where: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {kind: {} for kind in RESOURCES}
    for name, value in attributes.items():
        kind, _, resource = name.partition(".")
        if kind in found and is_amount(value):
            found[kind][resource] = parse_amount(value, f"{where}: {name}")
    return found


def is_execution(queue: QmgrObject) -> bool:
    """Whether jobs run out of a queue, or it passes them on; InputError if it does neither."""
    kind = queue.attributes.get("queue_type", "Execution")
    if kind[:1].lower() not in ("e", "r"):
        raise InputError(f"queue {queue.name}: queue_type is {kind!r}: neither Execution nor Route")
    return kind[:1].lower() == "e"


def where_unnamed_jobs_go(
    server: QmgrObject, queues: Sequence[QmgrObject]
) -> tuple[str, str | None]:
    """Give the execution queue of jobs that name none, and a sentence where it is not told so.

    Where they go to a routing queue, it is the first execution queue that this passes them to.
    """
    known = {queue.name: queue for queue in queues}
    execution = [queue.name for queue in queues if is_execution(queue)]
    if not execution:
        raise InputError("there is no execution queue: nothing can run")
    told = name = server.attributes.get("default_queue", "")
    seen: set[str] = set()
    while name in known and name not in execution and name not in seen:
        seen.add(name)
        to = known[name].attributes.get("route_destinations", "").split(",")
        name = next((each.strip() for each in to if each.strip() in known), "")
    if name in execution:
        if name == told:
            return name, None
        return name, f"Jobs that name no queue go to {told}, a routing queue; here to {name}."
    why = f"Jobs that name no queue go to {told}" if told else "There is no default_queue"
    return execution[0], f"{why}; here they go to {execution[0]}."
