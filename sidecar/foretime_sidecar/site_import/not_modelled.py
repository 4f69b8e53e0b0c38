"""What of a site nothing in the simulator knows, a sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from foretime_sidecar.site_import.columns import nothing
from foretime_sidecar.site_import.scheduler_settings import Settings

_COUNTED_OTHERWISE = {
    "CR_LLN": "the least loaded nodes are not given out first",
    "CR_PACK_NODES": "tasks are not packed on the fewest nodes",
    "CR_ONE_TASK_PER_CORE": "a task may have one thread of a core",
    "LL_SHARED_GRES": "shared GRES are not placed on the least loaded device",
    "CR_SOCKET": "sockets are not given out whole",
    "CR_SOCKET_MEMORY": "sockets are not given out whole",
}
_COUNTED = (
    "", "NONE", "CR_CPU", "CR_CPU_MEMORY", "CR_CORE", "CR_CORE_MEMORY", "CR_MEMORY",
    "OTHER_CONS_TRES", "OTHER_CONS_RES", "CR_CORE_DEFAULT_DIST_BLOCK", "MULTIPLE_SHARING_GRES_PJ",
    "ENFORCE_BINDING_GRES", "ONE_TASK_PER_SHARING_GRES",
)  # fmt: skip
_NO_SETTING = ("", "none", "mcs/none", "0", "00:00:00")


def note_settings(settings: Settings) -> None:
    """Note the settings of slurm.conf that are not modelled."""
    for name, sentence in (
        ("JobSubmitPlugins", "job_submit plug-ins ({}): what they change in jobs or refuse."),
        ("BurstBufferType", "Burst buffers ({}): no job waits for one."),
        ("MCSPlugin", "MCS labels ({}): jobs of different labels may share nodes."),
        ("NodeFeaturesPlugins", "NodeFeaturesPlugins ({}): nodes keep their features."),
        ("JobDefaults", "JobDefaults = {}."),
        ("FederationParameters", "Federations ({}): this cluster is alone."),
    ):
        value = settings.text(name)
        if value.lower() not in _NO_SETTING:
            settings.note(sentence.format(value))
    select = settings.text("SelectType", "select/cons_tres")
    if select.endswith("linear"):
        settings.note("select/linear: every job gets whole nodes; their choice is cons_tres's.")
    elif select not in ("select/cons_tres", "select/cons_res"):
        settings.note(f"SelectType is {select}: taken as select/cons_tres.")
    for word in settings.text("SelectTypeParameters").upper().split(","):
        if word in _COUNTED_OTHERWISE:
            settings.note(f"SelectTypeParameters {word}: {_COUNTED_OTHERWISE[word]}.")
        elif word not in _COUNTED:
            settings.note(f"SelectTypeParameters {word} is not known.")
    mode = settings.text("PreemptMode").upper()
    if "GANG" in mode:
        settings.note("Gang scheduling (PreemptMode GANG): jobs do not take turns on nodes.")
    if settings.text("SuspendProgram") and settings.text("SuspendTime") not in ("-1", "INFINITE"):
        settings.note("Power saving (SuspendProgram): nodes are always on, and start jobs at once.")
    if "bf_hetjob" in settings.text("SchedulerParameters"):
        settings.note("Heterogeneous jobs: their components start for themselves.")


def note_partitions(settings: Settings, partitions: Iterable[Mapping[str, str]]) -> None:
    """Note what slurm_partitions have that is not modelled."""
    for values in partitions:
        odd = [
            f"{name}={values[name]}"
            for name in ("AllowGroups", "AllocNodes", "MaxCPUsPerSocket", "JobDefaults")
            if not nothing(values.get(name, ""))
        ]
        odd += [
            f"{name}=YES"
            for name in ("LLN", "RootOnly", "ReqResv", "ExclusiveUser", "ExclusiveTopo")
            if values.get(name) == "YES"
        ]
        if values.get("Exclusive") in ("USER", "TOPO"):
            odd.append(f"Exclusive={values['Exclusive']}")
        if not nothing(values.get("SelectTypeParameters", "")):
            odd.append(f"SelectTypeParameters={values['SelectTypeParameters']}")
        if values.get("OverSubscribe", "NO").startswith(("YES", "FORCE")):
            odd.append(f"OverSubscribe={values['OverSubscribe']}")
        if odd:
            settings.note(f"Partition {values['PartitionName']}: {', '.join(odd)}.")


def note_nodes(settings: Settings, nodes: Iterable[Mapping[str, str]]) -> None:
    """Note what nodes have that is not modelled."""
    kinds: set[str] = set()
    threaded = False
    for values in nodes:
        for part in values.get("Gres", "").split(","):
            kind = part.partition(":")[0]
            if not nothing(kind) and kind != "gpu" and ")" not in kind:
                kinds.add(kind)
        threaded |= values.get("ThreadsPerCore", "1") not in ("", "1")
    if kinds:
        settings.note(f"GRES besides gpu ({', '.join(sorted(kinds))}): there is always enough.")
    if threaded and "CORE" in settings.text("SelectTypeParameters").upper():
        settings.note("Nodes have several threads a core: cores are not given out whole here.")
