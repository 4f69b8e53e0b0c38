"""Pure parsers of what Slurm's commands print as text: scontrol, sdiag, sprio, sinfo."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.client import (
    ControllerLoad,
    Reservation,
    SchedulerConfiguration,
)
from foretime_sidecar.clients.slurm.site import expand_nodes

logger = logging.getLogger("foretime")

_PAIR = re.compile(r"(\S+?)\s*=\s*(.*)")
_PROLOG = re.compile(r"PrologSlurmctld(\[\d+\])?", re.ASCII)  # newer ones number several


def configuration_values(text: str) -> dict[str, str]:
    """Read the text of ``scontrol show config``: every value by its name, "" for none.

    Raises
    ------
    SchedulerError
        If it names no version.
    """
    pairs = (_PAIR.fullmatch(line.strip()) for line in text.splitlines())
    values = {pair[1]: "" if pair[2] == "(null)" else pair[2] for pair in pairs if pair}
    if "SLURM_VERSION" not in values:
        raise SchedulerError(
            "scontrol show config did not name SLURM_VERSION; check that slurmctld answers"
        )
    return values


# Many a look finds what the last one found.
@lru_cache(maxsize=2)
def parse_configuration(text: str, federation: str = "") -> SchedulerConfiguration:
    """Read the text of ``scontrol show config`` (Slurm 22.05 has no JSON of it).

    ``federation`` is what `parse_federation` gave.

    Raises
    ------
    SchedulerError
        If it names no version.
    """
    values = configuration_values(text)
    prologs = [path for name, path in values.items() if path and _PROLOG.fullmatch(name)]
    return SchedulerConfiguration(
        scheduler="slurm",
        cluster=values.get("ClusterName", ""),
        version=values["SLURM_VERSION"],
        scheduler_type=values.get("SchedulerType", ""),
        parameters=parse_parameters(values.get("SchedulerParameters", "").split(",")),
        prolog_slurmctld=",".join(prologs),
        accounting_enforce=frozenset(
            values.get("AccountingStorageEnforce", "none").lower().split(",")
        )
        - {"none", ""},
        priority_type=values.get("PriorityType", ""),
        site_factor_plugin=values.get("PrioritySiteFactorPlugin", ""),
        qos_weight=int(weight) if (weight := values.get("PriorityWeightQOS", "")).isdigit() else 0,
        priority_flags=frozenset(values.get("PriorityFlags", "").upper().split(",")) - {""},
        preempt_type=values.get("PreemptType", "").lower(),
        federation=federation,
        private_data=frozenset(values.get("PrivateData", "none").lower().split(",")) - {"none", ""},
        digest=configuration_digest(values),
    )


def configuration_digest(values: Mapping[str, str]) -> str:
    """Give a text that is another one once anything is configured otherwise, or slurmctld anew."""
    lasting = sorted((name, value) for name, value in values.items() if name != "NEXT_JOB_ID")
    return hashlib.sha256(repr(lasting).encode()).hexdigest()


def parse_parameters(items: Iterable[str]) -> dict[str, str]:
    """Read the items of ``SchedulerParameters``; one without a value has the value ""."""
    found: dict[str, str] = {}
    for item in items:
        name, _, value = item.partition("=")
        if item:
            # Slurm goes by the first (xstrcasestr).
            found.setdefault(name.strip().lower(), value.strip())
    return found


def parse_federation(text: str) -> str:
    """Read ``scontrol show federation``: the federation's name, "" if the cluster is in none."""
    match = re.search(r"^\s*Federation:\s*(\S+)", text, re.MULTILINE)
    return match[1] if match else ""


_LOAD = {
    "Server thread count": "server_threads",
    "Agent queue size": "agent_queue",
    "DBD Agent queue size": "accounting_queue",
    "Last cycle": "last_cycle",  # the main scheduler's comes first
}


def parse_load(text: str) -> ControllerLoad:
    """Read the text of ``sdiag``, which is the same from 22.05 to 26.05.

    Raises
    ------
    SchedulerError
        If it does not say how many requests are served.
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.strip().partition(":")
        if name in _LOAD and value.strip().isdigit():
            found.setdefault(_LOAD[name], int(value))
    if "server_threads" not in found:
        raise SchedulerError("sdiag did not tell the server thread count; check slurmctld")
    return ControllerLoad(
        found["server_threads"],
        found.get("agent_queue", 0),
        found.get("accounting_queue", 0),
        found.get("last_cycle", 0) / 1e6,
    )


def parse_numbers(text: str, command: str) -> dict[str, int]:
    """Read lines of NAME|NUMBER, as ``sacctmgr -P`` prints them.

    Raises
    ------
    SchedulerError
        If a line is not of that form.
    """
    numbers = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        match = re.fullmatch(r"([^|]+)\|(-?\d{1,18})", line, re.ASCII)
        if match is None:
            raise SchedulerError(f"{command} answered {line[:120]!r}; expected NAME|NUMBER")
        numbers[match[1].strip()] = int(match[2])
    return numbers


SITE_FACTORS = "--format=%i|%S|%Y|%A %B %F %J %N %P %Q %T"
"""What `sprio` is to say: job, site factor, priority, and all else that a priority is made of."""
_ROUNDED_AWAY = 4  # eight parts that are shown as 0 make no more


def parse_site_factors(text: str) -> dict[str, int]:
    """Read what ``sprio`` says in the form `SITE_FACTORS`: the site factor of each weighed job.

    A job whose priority somebody has fixed is not weighed, and is left out. Slurm shows it as made
    of nothing at all, whatever its site factor is (seen on 22.05 and 26.05).

    Raises
    ------
    SchedulerError
        If a line is not of that form.
    """
    factors = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        match = re.fullmatch(r"([^|]+)\|(-?\d{1,18})\|(\d{1,18})\|([^|]*)", line, re.ASCII)
        if match is None:
            raise SchedulerError(
                f"sprio answered {line[:120]!r}; expected NAME|SITE|PRIORITY|PARTS"
            )
        factor = int(match[2])
        if factor or int(match[3]) <= _ROUNDED_AWAY or re.search("[1-9]", match[4]):
            factors[match[1].strip()] = factor
    return factors


def parse_reservations(text: str) -> list[Reservation]:
    """Read ``scontrol show reservation --oneliner``, times in epoch seconds.

    The times are such when the command runs with ``SLURM_TIME_FORMAT=%s`` (Slurm 22.05 has no JSON
    of it).

    Raises
    ------
    SchedulerError
        If a reservation lacks its times.
    """
    reservations = []
    for line in text.splitlines():
        if not line.startswith("ReservationName="):
            continue
        values = dict(part.split("=", 1) for part in line.split(" ") if "=" in part)
        try:
            start_time, end_time = int(values["StartTime"]), int(values["EndTime"])
        except (KeyError, ValueError) as error:
            raise SchedulerError(
                f"scontrol show reservation: can't read the times of {line[:120]!r}"
            ) from error
        partition = values.get("PartitionName", "(null)")
        nodes = values.get("Nodes", "(null)")
        processors = re.search(r"\bcpu=(\d+)", values.get("TRES", ""))
        reservations.append(
            Reservation(
                name=values["ReservationName"],
                start_time=start_time,
                end_time=end_time,
                processors=int(processors[1]) if processors else None,
                slurm_partition=None if partition == "(null)" else partition,
                flags=frozenset(filter(None, values.get("Flags", "").split(","))),
                nodes=None if nodes == "(null)" else expand_nodes(nodes),
            )
        )
    return reservations


def parse_processors(text: str) -> int:
    """Read ``sinfo -h -o %C`` (allocated/idle/other/total): processors allocated or idle.

    Raises
    ------
    SchedulerError
        If the text is not of that form.
    """
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})/\d{1,9}/\d{1,9}", text.strip(), re.ASCII)
    if match is None:
        raise SchedulerError(f"sinfo -h -o %C answered {text.strip()[:120]!r}; expected A/I/O/T")
    return int(match[1]) + int(match[2])
