"""What of a site under PBS nothing in the simulator knows, a sentence each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from foretime_sidecar.clients.pbs.amounts import is_amount
from foretime_sidecar.clients.pbs.dedicated_time import unread_lines
from foretime_sidecar.clients.pbs.qmgr_text import QmgrObject
from foretime_sidecar.clients.pbs.server import HOOK, parse_hooks
from foretime_sidecar.clients.pbs.site_limits import SOFT
from foretime_sidecar.site_import.pbs_hosts import DEFAULT_PARTITION
from foretime_sidecar.site_import.pbs_output_kinds import says_nothing
from foretime_sidecar.site_import.pbs_queues import RESOURCES, is_execution
from foretime_sidecar.site_import.site_output import SiteOutput

_ACCESS = ("acl_users", "acl_user", "acl_groups", "acl_group", "acl_hosts", "acl_host")
_PREEMPT_PRIO = "express_queue, normal_jobs"
_NOT_AS_INSTALLED = ("by_queue", "node_sort_key", "preemptive_sched", "resources")
"""Options that pbs_sched takes otherwise where the file says nothing of them."""
_DAYS = ("weekday", "saturday", "sunday", "monday", "tuesday", "wednesday", "thursday", "friday")


def of_objects(
    server: QmgrObject, queues: Sequence[QmgrObject], sched: Mapping[str, str]
) -> Iterator[str]:
    """Name what server, queues and scheduler have that is not modelled."""
    for owner in (server, *queues):
        yield from _of_owner(owner)
    if server.attributes.get("node_group_enable", "False") == "True":
        yield "Server: placement sets (node_group_enable)."
    for queue in queues:
        if not is_execution(queue):
            yield f"Queue {queue.name} is a routing queue; jobs must name the one they end in."
        if "node_group_key" in queue.attributes:
            yield f"Queue {queue.name}: placement sets (node_group_key)."
        if is_of_another(queue):
            yield (
                f"Queue {queue.name} is left out: its partition {queue.attributes['partition']} is"
                " another scheduler's."
            )
    if sched.get("preempt_prio", _PREEMPT_PRIO) != _PREEMPT_PRIO:
        yield f"Scheduler: preempt_prio = {sched['preempt_prio']}."
    for name in ("do_not_span_psets", "only_explicit_psets"):
        if sched.get(name, "False") == "True":
            yield f"Scheduler: {name} = True."


def _of_owner(owner: QmgrObject) -> Iterator[str]:
    whose = " ".join(filter(None, (owner.kind.capitalize(), owner.name)))
    for name, value in owner.attributes.items():
        kind, _, resource = name.partition(".")
        if kind in SOFT:
            yield f"{whose}: the soft limit {name}, by which jobs may be preempted."
        elif kind in RESOURCES and not is_amount(value):
            yield f"{whose}: {name} = {value}."
        elif kind == "default_chunk" and (resource, value) != ("ncpus", "1"):
            yield f"{whose}: {name} = {value}; jobs ask for what they ask for."
        elif kind.removesuffix("_enable") in _ACCESS and value == "True":
            yield f"{whose}: {name}: nobody is refused."


def is_of_another(queue: QmgrObject) -> bool:
    """Whether a queue is of another scheduler than the default one."""
    return queue.attributes.get("partition", DEFAULT_PARTITION) != DEFAULT_PARTITION


def of_fair_share(resource_group: str, usage: str) -> Iterator[str]:
    """Say which of the outputs that fair share needs is not given."""
    if says_nothing(resource_group):
        yield "Fair share: there is no resource_group, so all have the unknown shares."
    elif not usage:
        yield "Fair share: no output of pbsfs -p was given, so nobody has used anything."


def of_files(output: SiteOutput) -> Iterator[str]:
    """Name files that were not read, and what is amiss in the scheduler's."""
    if output.unread:
        yield f"Files that were not read: {', '.join(output.unread)}."
    untold = [
        option
        for option in _NOT_AS_INSTALLED
        if not re.search(rf"^\s*{option}\s*:", output.text("sched_config"), re.MULTILINE)
    ]
    if untold:
        said = ", ".join(untold)
        yield f"sched_config: it says nothing of {said}: PBS's own values count."
    for number, line in unread_lines(output.text("dedicated_time")):
        yield f"dedicated_time: line {number} is no time, and passed over: {line[:60]!r}."


def of_hooks(text: str) -> Iterator[str]:
    """Name the site's own hooks that are enabled, of ``qmgr -c "list hook"``."""
    for name, hook in parse_hooks(text).items():
        if hook.enabled and name != HOOK:
            events = ", ".join(sorted(hook.events))
            yield f"Hook {name} ({events}): what it changes in jobs or refuses."


def of_holidays(text: str) -> Iterator[str]:
    """Name primetime where there is any."""
    for line in text.splitlines():
        words = line.lower().split()
        always = words[1:3] == ["all", "none"]
        if words and words[0] in _DAYS and not always:
            yield "Primetime (holidays): what holds in primetime is taken for all times."
            return
