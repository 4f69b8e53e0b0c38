"""Options that choose policies: by name or file, their queue orders and their backfilling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.policies.families import FAMILIES, Compression
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import parse_order
from foretime_sim.policies.policy_file import known_policies, read_policy
from foretime_sim.policies.policy_switching import DYNP, Decider
from foretime_sim.policies.python_policy import PythonOrder
from foretime_sim.policies.slack import InsertionOrder, SlackSettings

from foretime_sidecar.cli.frame.option_groups import OptionGroup

ORDERS = tuple(order.value for order in Order if order is not Order.PRIORITY)
"""The queue orders for logs, which have no priorities."""
BACKFILLS = tuple(FAMILIES)
_SLACK = SlackSettings()
_PANEL = "The scheduler"
_SEVERAL = "Several are separated by commas."
_POLICY = (
    f"Policy from a TOML file, or a known one: {', '.join(known_policies())} (foretime config "
    "policy). Other options take precedence over its keys."
)
_ORDER = f"Queue order: {', '.join(ORDERS)}, or your own in Python, module:attribute."
_SWITCHED_ORDER = (
    f"Queue order: {', '.join(ORDERS)}, or your own in Python, module:attribute. {DYNP} switches "
    f"between orders under --backfill planning ({DYNP}-DECIDER-QUALITY/setting=value)."
)
_BACKFILL = f"Backfilling: {', '.join(BACKFILLS)}, or your own in Python, module:attribute."
_SITE = (
    "Schedule as the site in this file does, on its nodes (foretime site import); in the place of "
    "order, backfilling and --machine."
)
_UNKNOWN_USERS = (
    "Jobs of users whom the associations of --site do not name, where they are enforced. error: "
    "stop, and name them. refuse: as its Slurm does; they never run. account:NAME: take them in, "
    "as users of this account. Default: error."
)
_DEPTH = "Number of jobs that hold a reservation at once under the kinds of easy."
_COMPRESSION = (
    "How conservative backfilling moves reservations forward: "
    f"{', '.join(compression.value for compression in Compression)}."
)
_SLACK_FACTOR = (
    "For --backfill slack: how many average waits a job of priority 0 may be delayed for others."
)
_INSERTION_ORDER = (
    "For slack: order in which the jobs that made room are planned again: "
    f"{', '.join(order.value for order in InsertionOrder)}."
)


def order_of_log(text: str) -> Order | PythonOrder:
    """Read the queue order of a run of a log.

    Raises
    ------
    InputError
        As `parse_order`; and for ``priority``, as a log has none.
    """
    order = parse_order(text)
    if order is Order.PRIORITY:
        raise InputError(
            f"--order priority: a log has no priorities; take {', '.join(ORDERS)}, or an order of"
            " your own in Python, module:attribute, that works them out"
        )
    return order


def _complete_policy(incomplete: str) -> list[str]:
    """Give what a word may become: known policies, and TOML files of this folder."""
    names = (*known_policies(), *(path.name for path in sorted(Path().glob("*.toml"))))
    return [name for name in names if name.startswith(incomplete)]


def _completing(names: tuple[str, ...], incomplete: str) -> list[str]:
    modules = (f"{path.stem}:" for path in sorted(Path().glob("*.py")))
    return [word for word in (*names, *modules) if word.startswith(incomplete)]


def _complete_order(incomplete: str) -> list[str]:
    """Give what a word may become: built-in orders, and modules of this folder."""
    return _completing(ORDERS, incomplete)


def _complete_switched_order(incomplete: str) -> list[str]:
    """Give what a word may become: built-in orders, deciders, and modules of this folder."""
    deciders = (f"{DYNP}-{decider}" for decider in Decider)
    return _completing((*ORDERS, DYNP, *deciders), incomplete)


def _complete_backfill(incomplete: str) -> list[str]:
    """Give what a word may become: built-in backfilling, and modules of this folder."""
    return _completing(BACKFILLS, incomplete)


OrderOption = Annotated[
    str, typer.Option(autocompletion=_complete_order, metavar="ORDER", help=_ORDER)
]
BackfillOption = Annotated[
    str, typer.Option(autocompletion=_complete_backfill, metavar="BACKFILL", help=_BACKFILL)
]
UnknownUsersOption = Annotated[str, typer.Option(metavar="WHAT", help=_UNKNOWN_USERS)]
_Several: TypeAlias = list[str] | None


@dataclass(frozen=True)
class OnePolicyOptions(OptionGroup):
    """The policy of a replay."""

    panel: ClassVar[str] = _PANEL
    rarely_needed: ClassVar[frozenset[str]] = frozenset(
        {"unknown_users", "depth", "compression", "slack_factor", "insertion_order"}
    )

    policy: Annotated[
        str | None,
        typer.Option(autocompletion=_complete_policy, metavar="POLICY", help=_POLICY),
    ] = None
    order: Annotated[
        str | None,
        typer.Option(
            autocompletion=_complete_switched_order,
            metavar="ORDER",
            help=f"{_SWITCHED_ORDER} Default of --scheduler policy: fcfs.",
        ),
    ] = None
    backfill: Annotated[
        str | None,
        typer.Option(
            autocompletion=_complete_backfill,
            metavar="BACKFILL",
            help=f"{_BACKFILL} Default of --scheduler policy: easy.",
        ),
    ] = None
    site: Annotated[str | None, typer.Option(metavar="FILE", help=_SITE)] = None
    unknown_users: UnknownUsersOption = "error"
    depth: Annotated[int | None, typer.Option(metavar="K", help=f"{_DEPTH} Default: 1.")] = None
    compression: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"{_COMPRESSION} Default: reservation-order."),
    ] = None
    slack_factor: Annotated[
        float | None,
        typer.Option(metavar="SF", help=f"{_SLACK_FACTOR} Default: {_SLACK.slack_factor:g}."),
    ] = None
    insertion_order: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"{_INSERTION_ORDER} Default: {_SLACK.insertion_order}."),
    ] = None

    scheduler: Annotated[
        Literal["slurm", "pbs", "policy"] | None,
        typer.Option(
            help="slurm, pbs: the scheduler's own rules, as --site says or at their defaults on "
            "one pool of processors. policy: what --policy, --order and --backfill say, for "
            "research. Default: the one that other options are of, or slurm."
        ),
    ] = None

    @property
    def inputs(self) -> dict[str, Path | None]:
        """The files that are read, by what messages call them."""
        named = {"--policy": self.policy, "--site": self.site}
        if self.policy is not None:
            named[f"the site of --policy {self.policy}"] = read_policy(self.policy).get("site")
        return {option: Path(name) for option, name in named.items() if name is not None}

    @property
    def values(self) -> dict[str, Any]:
        """What is given, by the keys of a policy file."""
        given = {key: getattr(self, key) for key in _AXES}
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True)
class SeveralPoliciesOptions(OptionGroup):
    """The policies of a simulation: every one that is named, crossed with all the rest."""

    panel: ClassVar[str] = _PANEL
    rarely_needed: ClassVar[frozenset[str]] = OnePolicyOptions.rarely_needed

    policy: Annotated[
        _Several,
        typer.Option(
            autocompletion=_complete_policy, metavar="POLICY", help=f"{_POLICY} {_SEVERAL}"
        ),
    ] = None
    order: Annotated[
        _Several,
        typer.Option(
            autocompletion=_complete_switched_order,
            metavar="ORDER",
            help=f"{_SWITCHED_ORDER} {_SEVERAL} Default: fcfs.",
        ),
    ] = None
    backfill: Annotated[
        _Several,
        typer.Option(
            autocompletion=_complete_backfill,
            metavar="BACKFILL",
            help=f"{_BACKFILL} {_SEVERAL} Default: easy.",
        ),
    ] = None
    site: Annotated[_Several, typer.Option(metavar="FILE", help=f"{_SITE} {_SEVERAL}")] = None
    unknown_users: UnknownUsersOption = "error"
    depth: Annotated[
        _Several, typer.Option(metavar="K", help=f"{_DEPTH} {_SEVERAL} Default: 1.")
    ] = None
    compression: Annotated[
        _Several,
        typer.Option(metavar="NAME", help=f"{_COMPRESSION} {_SEVERAL} Default: reservation-order."),
    ] = None
    slack_factor: Annotated[
        _Several,
        typer.Option(
            metavar="SF", help=f"{_SLACK_FACTOR} {_SEVERAL} Default: {_SLACK.slack_factor:g}."
        ),
    ] = None
    insertion_order: Annotated[
        _Several,
        typer.Option(
            metavar="NAME",
            help=f"{_INSERTION_ORDER} {_SEVERAL} Default: {_SLACK.insertion_order}.",
        ),
    ] = None

    @property
    def inputs(self) -> dict[str, Path | None]:
        """The files that are read, by what messages call them."""
        policies = several("--policy", self.policy)
        sites = {
            f"the site of --policy {name}": Path(site)
            for name in policies
            if (site := read_policy(name).get("site")) is not None
        }
        return {
            **{f"--policy {name}": Path(name) for name in policies},
            **{f"--site {name}": Path(name) for name in several("--site", self.site)},
            **sites,
        }

    @property
    def axes(self) -> dict[str, list[Any]]:
        """What is given, by the keys of a policy file: the values of each."""
        found = {}
        for key, read in _AXES.items():
            if texts := several(f"--{key.replace('_', '-')}", getattr(self, key)):
                found[key] = [read(text) for text in texts]
        return found


def several(option: str, given: Sequence[str] | None) -> list[str]:
    """Split values given several times or comma-separated, in the order given."""
    if not given:
        return []
    names = [name.strip() for text in given for name in text.split(",")]
    shown = f"{option} {','.join(given)}"
    if "" in names:
        raise InputError(f"{shown}: there is an empty name; leave it out, or write it in full")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"{shown}: {twice[0]} is given twice; once is enough")
    return names


def _depth(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--depth {text}: give a whole number of at least 1") from None


def _slack_factor(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--slack-factor {text}: give a number of average waits") from None


_AXES: Mapping[str, Callable[[str], Any]] = {
    "order": str,
    "backfill": str,
    "site": str,
    "depth": _depth,
    "compression": str,
    "slack_factor": _slack_factor,
    "insertion_order": str,
}
"""Keys of a policy that a simulation may try several values of, and how each is read."""
