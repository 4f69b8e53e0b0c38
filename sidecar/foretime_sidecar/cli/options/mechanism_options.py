"""Options of a replay that say how t_sched and the queue order reach the scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.errors import InputError
from foretime_sim.mocks.mechanism import Mechanism, mechanism_policy
from foretime_sim.policies.order import OrderName
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm

from foretime_sidecar.cli.frame.option_groups import OptionGroup
from foretime_sidecar.cli.frame.output_files import check_folder
from foretime_sidecar.settings.queue_order_settings import AUTO, START_NOW, QueueOrderSettings
from foretime_sidecar.settings.settings_file import read_settings
from foretime_sidecar.wording.durations import parse_duration


@dataclass(frozen=True)
class MechanismOptions(OptionGroup):
    """What stands between Foretime and the scheduler."""

    panel: ClassVar[str] = "The scheduler"
    rarely_needed: ClassVar[frozenset[str]] = frozenset(
        {
            "queue_order",
            "look_interval",
            "look_takes",
            "beside",
            "publish_interval",
            "lua",
            "state_dir",
        }
    )

    mechanism: Annotated[
        Mechanism | None,
        typer.Option(
            help="How t_sched reaches the scheduler. Sets correction and roles. Default: "
            "slurm-soft-limit, or pbs-soft-walltime under PBS."
        ),
    ] = None
    queue_order: Annotated[
        Literal["none", "start-now", OrderName, "dynp"] | None,
        typer.Option(
            help="start-now: raise jobs that should start at once, and plan none short; the "
            "default under Slurm, unless an option is of another way. Or let the sidecar keep the "
            "queue in this order through site factors (Slurm). none: do neither. The run without "
            "Foretime keeps --order."
        ),
    ] = None
    look_interval: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="With --queue-order: time between the sidecar's looks at the queue; 0: always.",
        ),
    ] = "1:00"
    look_takes: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="With --queue-order: how long after a look the queue is changed by it (Slurm); "
            "a daemon beside a small Slurm takes 1 to 2 s.",
        ),
    ] = "0"
    beside: Annotated[
        str | None,
        typer.Option(
            metavar="ESTIMATOR",
            help="Also score this estimator in the place of PBS's hook; recent-maximum is "
            "CESNET's.",
        ),
    ] = None
    publish_interval: Annotated[
        str, typer.Option(metavar="TIME", help="Shortest time between two tables.")
    ] = "1:00:00"
    lua: Annotated[
        Literal["5.1", "5.2", "5.3", "5.4", "luajit"],
        typer.Option(help="Lua that runs Slurm's hook. Debian's Slurm has 5.1."),
    ] = "5.1"
    state_dir: Annotated[
        Path | None,
        typer.Option(help="Keep the sidecar's store and table here, in new folders."),
    ] = None

    def chosen(self, policy: Policy | None = None) -> Mechanism:
        """Give the mechanism, by default that of the policy's scheduler."""
        if self.mechanism is not None:
            return self.mechanism
        of_pbs = policy is not None and policy.is_pbs
        return Mechanism.PBS_SOFT_WALLTIME if of_pbs else Mechanism.SLURM_SOFT_LIMIT

    def verify(self, policy: Policy) -> None:
        """Refuse what does not go together."""
        if self.beside is not None:
            if self.queue_order is not None:
                raise InputError(
                    "--beside is in the place of what --queue-order goes by: give one of them"
                )
            if self.chosen(policy) is not Mechanism.PBS_SOFT_WALLTIME:
                raise InputError(
                    f"--beside {self.beside}: estimators run in the place of PBS's hook; give "
                    f"--mechanism {Mechanism.PBS_SOFT_WALLTIME.value}, too"
                )
            parse_estimator(self.beside)
        self._check_looks(policy)
        if self.state_dir is not None:
            check_folder("--state-dir", self.state_dir)

    @property
    def look_interval_s(self) -> int:
        """Time between two looks, seconds."""
        return parse_duration(self.look_interval, "--look-interval", zero=True)

    @property
    def look_takes_s(self) -> int:
        """How long after a look the queue is changed by it, seconds."""
        return parse_duration(self.look_takes, "--look-takes", zero=True)

    def _check_looks(self, policy: Policy) -> None:
        takes_s, interval_s = self.look_takes_s, self.look_interval_s
        if takes_s and self.chosen(policy) is Mechanism.PBS_SOFT_WALLTIME:
            raise InputError("--look-takes is for Slurm: leave it out under PBS")
        if takes_s and takes_s >= interval_s:
            more = "" if interval_s else ", and --look-interval more than 0"
            raise InputError(
                f"--look-takes {self.look_takes}: the next look comes --look-interval "
                f"{self.look_interval} later; give less than that{more}"
            )

    @property
    def policy_values(self) -> dict[str, Any]:
        """What the mechanism says of a policy, by the keys of a policy file."""
        policy = mechanism_policy(self.chosen(), Policy())
        return {"correction": str(policy.correction), "roles": str(policy.roles)}

    def kept_order(
        self, settings: Path | None, policy: Policy, *, plans_short: bool
    ) -> QueueOrderSettings | None:
        """Give what the sidecar does to the queue; ``None``: nothing.

        Parameters
        ----------
        settings
            The settings file, if one is given: its section is taken.
        policy
            The scheduler's.
        plans_short
            Whether other options are of jobs that are planned short.
        """
        section = QueueOrderSettings() if settings is None else read_settings(settings).queue_order
        order: str | None = self.queue_order
        if order is None:
            own = plans_short or self.mechanism is not None or self.beside is not None
            order = section.order if isinstance(policy.backfill, Slurm) and not own else "none"
            order = START_NOW if order == AUTO else order
        if order == "none":
            if self.look_takes_s:
                raise InputError(
                    "--look-takes is for a queue that is changed by looks: give --queue-order "
                    "start-now, or leave it out"
                )
            return None
        return QueueOrderSettings.model_validate(section.model_dump() | {"order": order})
