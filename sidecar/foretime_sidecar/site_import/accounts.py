"""Accounts and users as ``sacctmgr show assoc -P`` and ``sshare -a -l -P`` tell of them.

``show assoc`` tells the account above only where it is asked for (``format=ParentName``);
``sshare`` tells it by indenting, and ``sacctmgr dump`` by its order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.site_checks import ROOT

from foretime_sidecar.site_import.columns import header_of, rows_of
from foretime_sidecar.site_import.quality_of_service import (
    count_of,
    limits_of,
    names_of,
    note_limits,
)
from foretime_sidecar.site_import.scheduler_settings import Settings
from foretime_sidecar.site_import.site_output import SiteOutput

Who = tuple[str, str, str]
"""Account, user and slurm_partition; "" where there is none."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of ``show assoc``: its line, its columns, and whose it is."""

    line: int
    values: Mapping[str, str]
    who: Who


def associations_of(output: SiteOutput, settings: Settings) -> tuple[Association, ...]:
    """Read accounts and users, the accounts first; none where the output is not there.

    Raises
    ------
    InputError
        If an output is cut off or can't be read, or the account above some account is not told.
    """
    rows = _rows(output, settings.text("ClusterName"))
    if not rows:
        return ()
    parents = _parents(output, rows)
    usage = _usage(output, rows, settings)
    defaults = _default_accounts(output, rows, settings)
    accounts: list[Association] = []
    users: list[Association] = []
    for row in rows:
        account, user, slurm_partition = row.who
        names = names_of(row.values.get("qos", ""))
        default_qos = row.values.get("defqos", "") or None
        if default_qos is not None and default_qos not in names:
            names = (*names, default_qos)
        try:
            made = Association(
                account,
                user=user or None,
                slurm_partition=slurm_partition or None,
                parent=None if user or account == ROOT else parents[account],
                # 2147483647 stands for parent (SLURMDB_FS_USE_PARENT).
                shares=None
                if row.values.get("share") in ("parent", "2147483647")
                else count_of(row.values, "share", 1),
                raw_usage=usage.get(row.who, 0.0),
                limits=limits_of(row.values, qos=False),
                qos=names,
                default_qos=default_qos,
                default=bool(user) and defaults.get(user) == account,
                priority=count_of(row.values, "priority"),
            )
        except (ValueError, InputError) as error:
            raise output.fault("assoc", f"line {row.line}: {error}") from None
        note_limits(row.values, f"User {user}" if user else f"Account {account}", settings)
        (users if user else accounts).append(made)
    return (*accounts, *users)


def _rows(output: SiteOutput, cluster: str) -> list[Row]:
    rows = []
    clusters = set()
    for line, values in rows_of(output, "assoc"):
        clusters.add(values.get("cluster", cluster))
        if values.get("cluster", cluster) == cluster:
            who = (values["account"], values["user"], values.get("partition", ""))
            rows.append(Row(line, values, who))
    if clusters and not rows:
        raise output.fault(
            "assoc",
            f"it has associations of {', '.join(sorted(clusters))}, and none of cluster {cluster}",
        )
    for who, count in Counter(row.who for row in rows).items():
        if count > 1:
            raise output.fault("assoc", f"account {who[0]}, user {who[1]!r} is there {count} times")
    return rows


def _parents(output: SiteOutput, rows: list[Row]) -> dict[str, str]:
    """Give the account above each."""
    accounts = [row for row in rows if not row.who[1]]
    columns = header_of(output.text("assoc").partition("\n")[0])
    if "parentname" in columns:
        parents = {row.who[0]: row.values["parentname"] for row in accounts}
    elif output.text("sshare"):
        parents = _parents_by_indent(output)
    elif output.text("dump"):
        parents = _parents_of_dump(output.text("dump"))
    else:
        raise output.fault(
            "assoc",
            "it does not tell which account is above which: save the output of 'sshare -a -l -P'"
            " beside it",
        )
    known = {row.who[0] for row in accounts}
    for row in rows:
        account, user, _ = row.who
        if user and account not in known:
            raise output.fault(
                "assoc", f"line {row.line}: account {account} has no line of its own"
            )
        if not user and account != ROOT and parents.get(account) not in known:
            raise output.fault(
                "assoc",
                f"line {row.line}: which account is above {account} is not told; are all outputs"
                " whole, and of one time?",
            )
    return parents


def _parents_by_indent(output: SiteOutput) -> dict[str, str]:
    parents: dict[str, str] = {}
    above: list[str] = []
    for _, row in rows_of(output, "sshare"):
        if row["user"]:
            continue
        name = row["account"].strip()
        depth = len(row["account"]) - len(row["account"].lstrip())
        del above[depth:]
        if above:
            parents[name] = above[-1]
        above.append(name)
    return parents


def _parents_of_dump(text: str) -> dict[str, str]:
    parents: dict[str, str] = {}
    above = ROOT
    for line in text.splitlines():
        if found := re.match(r"Parent - '(.*?)'", line):
            above = found[1]
        elif found := re.match(r"Account - '(.*?)'", line):
            parents[found[1]] = above
    return parents


def _usage(output: SiteOutput, rows: list[Row], settings: Settings) -> dict[Who, float]:
    """Give the raw usage of each association."""
    if not output.text("sshare"):
        settings.note(
            "Usage so far: no output of sshare -a -l -P was given, so nobody has used anything."
        )
        return {}
    known = {row.who[:2] for row in rows}
    with_partition: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        with_partition.setdefault(row.who[:2], []).append(row.who[2])
    usage: dict[Who, float] = {}
    for line, values in rows_of(output, "sshare"):
        account, user = values["account"].strip(), values["user"].strip()
        text = values["rawusage"].strip()
        if not re.fullmatch(r"\d+(?:\.\d+)?(?:e\+?\d{1,2})?", text, re.ASCII):
            raise output.fault("sshare", f"line {line}: RawUsage is {text!r}, which is no number")
        if (account, user) not in known:
            raise output.fault(
                "assoc",
                f"{user or 'account'} in {account}, of whom sshare tells, is not there: the"
                " output is cut off, or older",
            )
        where = values.get("partition", "").strip()
        if not where:
            # Without -m it tells no partition; those of a user come in the order of show assoc.
            left = with_partition.get((account, user), [])
            where = left.pop(0) if left else ""
        usage[account, user, where] = float(text)
    missing = [row.who for row in rows if row.who not in usage]
    users = sum(1 for row in rows if row.who[1])
    if missing and users and all(not user for _, user, _ in usage):
        raise output.fault("sshare", "it tells of no users: run it with -a, as root")
    if missing:
        account, user, _ = missing[0]
        settings.note(
            f"Usage so far: sshare tells none of {len(missing)} of {len(rows)} associations, such"
            f" as {user or 'the account itself'} in {account}; they have used nothing here."
        )
    return usage


def _default_accounts(output: SiteOutput, rows: list[Row], settings: Settings) -> dict[str, str]:
    """Give the account of each user's jobs that name none."""
    of_user: dict[str, set[str]] = {}
    for row in rows:
        if row.who[1]:
            of_user.setdefault(row.who[1], set()).add(row.who[0])
    told = {row["user"]: row["defacct"] for _, row in rows_of(output, "users")}
    told |= dict(
        re.findall(r"^User - '(.*?)'.*?:DefaultAccount='(.*?)'", output.text("dump"), re.MULTILINE)
    )
    defaults = {
        user: told[user] if told.get(user) in accounts else min(accounts)
        for user, accounts in of_user.items()
        if told.get(user) in accounts or len(accounts) == 1
    }
    for user, account in told.items():
        if account and account not in of_user.get(user, {account}):
            settings.note(
                f"Default accounts: that of {user} is {account}, where {user} has no association."
            )
    unknown = sorted(of_user.keys() - defaults.keys())
    if unknown:
        settings.note(
            f"Default accounts: which one is not told of {len(unknown)} users with several, such as"
            f" {unknown[0]}; save the output of 'sacctmgr show user -P' as well."
        )
    return defaults
