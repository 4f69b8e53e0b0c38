"""A site under Slurm written as ``site.toml``, with what a person needs to know to change it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.toml_keys import Key, lines_of, table_name
from foretime_sim.machines.machine import SlurmPartition
from foretime_sim.machines.machine_file import group_lines
from foretime_sim.sites.site_parts import (
    NOTHING,
    not_modelled_lines,
    tables_below,
    text_of,
)
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.scheduler_words import word_lines
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.sites.slurm.site_checks import ROOT, check_site
from foretime_sim.sites.slurm.site_tables import (
    ACCOUNT_KEYS,
    ASSOCIATION_LIMITS,
    CONF_KEYS,
    FIRST_KEYS,
    PARTITION_WORDS,
    PRIORITY_ALWAYS,
    PRIORITY_KEYS,
    QOS_KEYS,
    QOS_LIMITS,
    RESERVATION_KEYS,
    RULES_KEYS,
    SWITCH_KEYS,
    TIMING_KEYS,
    USER_KEYS,
)
from foretime_sim.sites.slurm.switches import Switch

_HEAD = """\
# A site and what its scheduler goes by, for `foretime replay` and `simulate` (--site).
# Change it to ask "what if"; `foretime site check` says whether it holds together. What is left out
# has Slurm's default. Times are texts, [D-]HH:MM:SS, memory is in MiB."""
_SLURM = """\
# Settings of slurm.conf. OverTimeLimit is in minutes, KillWait and CompleteWait are in seconds.
# AccountingStorageEnforce decides whether associations, limits and QOS count. Epilog: whether
# jobs leave something to do on their nodes, an Epilog or PrologFlags=Contain."""
_WORDS = """\
# SchedulerParameters, in Slurm's units; true for words without a value. bf_max_time is bf_interval
# where it is left out. Every other word that is left out has Slurm's default."""
_PRIORITY = """\
# How jobs are weighed. Without NO_FAIR_TREE in PriorityFlags fair share is by Fair Tree."""
_LICENSES = "# How many there are of each."
_GROUPS = """\
# Nodes that are alike: how many, and what each of them has. For more nodes raise `nodes`."""
_PARTITIONS = """\
# Partitions: the groups whose nodes they may use, and rules. OverTimeLimit is in minutes, GraceTime
# in seconds. Exclusive: jobs get whole nodes (OverSubscribe=EXCLUSIVE)."""
_QOS = """\
# QOS: priority, and limits by Slurm's names. TRES are texts such as "cpu=512,mem=4T,gres/gpu=8".
# RawTRES and RawWall: what was used so far, in TRES-seconds (mem: MiB) and seconds, which
# GrpTRESMins and GrpWall count."""
_ACCOUNTS = """\
# Accounts: the account above (root if left out), shares, usage so far with all that is below
# (RawUsage in billing seconds, RawTRES and RawWall as of QOS) and limits."""
_USERS = """\
# Users in accounts. Default: where the user's jobs go that name no account."""
_RESERVATIONS = """\
# Nodes that are set aside for jobs that name the reservation."""
_SWITCHES = """\
# Switches of topology/tree, in their order: groups whose nodes hang on them, or switches below.
# Without them nodes are chosen by their order."""


def format_slurm_site(site: SlurmSite, remarks: Mapping[str, str] | None = None) -> str:
    """Write a site under Slurm as the TOML that `parse_slurm_site` reads.

    Accounts come before users; otherwise everything is in the site's own order.

    Parameters
    ----------
    site
        The site.
    remarks
        What is said above the groups of nodes, by their names.

    Raises
    ------
    InputError
        If the site contradicts itself, or has what no file can say: an account after a user, or a
        bf_window that is no whole number of minutes.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.site_file import format_site, parse_site
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> site = SlurmSite(Machine.flat(64))
    >>> parse_site(format_site(site), source="made") == site
    True
    """
    check_site(site)
    try:
        blocks = [
            [_HEAD, 'scheduler = "slurm"', *_first(site)],
            [_SLURM, "[slurm]", *_conf(site)],
            [_WORDS, "[slurm.SchedulerParameters]", *word_lines(site.parameters)],
            [_PRIORITY, "[priority]", *_priority(site.priority)],
            *_licenses(site.licenses),
            *tables_below(
                _GROUPS,
                site.machine.node_groups,
                lambda group: [*_remark((remarks or {}).get(group.name)), *group_lines(group)],
            ),
            *_partitions(site),
            *tables_below(_QOS, site.qos.values(), _qos),
            *_associations(site.associations),
            *tables_below(
                _RESERVATIONS,
                site.reservations,
                lambda each: [
                    f"[{table_name('reservations', each.name)}]",
                    *lines_of(each, RESERVATION_KEYS, NOTHING),
                ],
            ),
            *tables_below(
                _SWITCHES,
                site.switches,
                lambda each: [
                    f"[{table_name('switches', each.name)}]",
                    *lines_of(each, SWITCH_KEYS, Switch(each.name)),
                ],
            ),
        ]
    except ValueError as error:
        raise InputError(f"the site can't be written: {error}") from None
    return text_of(blocks)


def _remark(text: str | None) -> list[str]:
    lines = (text or "").splitlines()
    return textwrap.wrap(
        " ".join(lines), 96, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )


def _first(site: SlurmSite) -> list[str]:
    lines = lines_of(site, FIRST_KEYS, NOTHING)
    lines.append(f'selection = "{site.machine.selection.value}"')
    return [*lines, *not_modelled_lines(site.not_modelled)]


def _conf(site: SlurmSite) -> list[str]:
    always = {"SchedulerType": TIMING_KEYS["SchedulerType"]}
    timing = {name: key for name, key in TIMING_KEYS.items() if name not in always}
    return [
        *lines_of(site.parameters, always, NOTHING),
        *lines_of(site, CONF_KEYS, SlurmSite(site.machine)),
        *lines_of(site.parameters, timing, SlurmParameters()),
    ]


def _priority(priority: SlurmPriority) -> list[str]:
    always = PRIORITY_ALWAYS if priority.multifactor else ()
    lines = []
    for name, key in PRIORITY_KEYS.items():
        told = name == "PriorityType" or name in always
        lines += lines_of(priority, {name: key}, NOTHING if told else SlurmPriority())
    return lines


def _licenses(licenses: Mapping[str, int]) -> list[list[str]]:
    if not licenses:
        return []
    lines = [f"{table_name(name)} = {count}" for name, count in licenses.items()]
    return [[_LICENSES, "[licenses]", *lines]]


def _partitions(site: SlurmSite) -> list[list[str]]:
    blocks = []
    for part in site.machine.slurm_partitions:
        lines = [f"[{table_name('partitions', part.name)}]"]
        lines += lines_of(part, PARTITION_WORDS, SlurmPartition(part.name, ("",)))
        lines += lines_of(site.rules_of(part.name), RULES_KEYS, PartitionRules())
        blocks.append(lines)
    return [[_PARTITIONS, *blocks[0]], *blocks[1:]]


def _qos(qos: Qos) -> list[str]:
    return [
        f"[{table_name('qos', qos.name)}]",
        *lines_of(qos, QOS_KEYS, Qos(qos.name)),
        *lines_of(qos.limits, QOS_LIMITS, _NO_LIMITS),
    ]


def _associations(associations: Sequence[Association]) -> list[list[str]]:
    accounts = [each for each in associations if each.user is None]
    users = [each for each in associations if each.user is not None]
    return [*tables_below(_ACCOUNTS, accounts, _account), *tables_below(_USERS, users, _user)]


def _account(account: Association) -> list[str]:
    unsaid = Association(account.account, parent=ROOT)
    return [f"[{table_name('accounts', account.account)}]", *_held(account, ACCOUNT_KEYS, unsaid)]


def _user(user: Association) -> list[str]:
    return ["[[associations]]", *_held(user, USER_KEYS, Association(""))]


def _held(each: Association, keys: Mapping[str, Key], unsaid: Association) -> list[str]:
    lines = []
    for name, key in keys.items():
        # Shares are told in any case; those of the parent are None.
        if name == "Fairshare":
            lines.append(f"{name} = {key.kind.write(each.shares)}")
        else:
            lines += lines_of(each, {name: key}, unsaid)
    return [*lines, *lines_of(each.limits, ASSOCIATION_LIMITS, _NO_LIMITS)]


_NO_LIMITS = Limits()
