"""Every setting of the daemon, with type, default and meaning.

`foretime_sidecar.settings.settings_file` reads and writes them, and prints their documentation.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any, Literal, Self, TypeAlias, get_args

from foretime_estimators.accuracy.accuracy import AccuracySettings, Scheme
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import DAY_S
from foretime_sim.policies.order import OrderName
from pydantic import Field, create_model, field_validator

from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.settings.beside_settings import BesideSettings
from foretime_sidecar.settings.estimator_settings import EstimatorsSettings
from foretime_sidecar.settings.learned_settings import LearnedSettings
from foretime_sidecar.settings.notify_settings import NotifySettings
from foretime_sidecar.settings.queue_order_settings import AUTO, QueueOrderSettings
from foretime_sidecar.settings.settings_section import FilePath, Names, Section, refused_as_value
from foretime_sidecar.table.name_kinds import ENFORCE_KINDS, KINDS, Scheduler
from foretime_sidecar.table.name_kinds import Names as NamesByKind

_PRODUCTION = AccuracySettings.production()


def _check_cluster(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_.-]*", name):
        raise InputError("give the name of one cluster, as sacctmgr show cluster has it")


class SchedulerSettings(Section):
    """How the scheduler is asked."""

    kind: Literal["slurm", "pbs"] = Field(
        default="slurm",
        description="Which scheduler: Slurm, or OpenPBS and PBS Professional.",
    )
    client: Literal["commands", "slurmrestd", "pyslurm", "demo"] = Field(
        default="commands",
        description=(
            "How Slurm is asked: by its commands; through slurmrestd; or with pyslurm, whose "
            "release must be Slurm's. The last two can't order the queue "
            "(docs/slurm_clients.md). demo: foretime demo's own, in whose daemon the Slurm is."
        ),
    )
    cluster: str = Field(
        default="",
        description=(
            "The Slurm cluster to ask, of those that slurmdbd knows (-M of Slurm's commands); "
            "empty: the one of slurm.conf."
        ),
    )
    slurmrestd: str = Field(
        default="unix:/run/slurmrestd/slurmrestd.socket",
        min_length=1,
        description=(
            "Where slurmrestd answers: unix:PATH, or http://HOST:PORT, which needs a token."
        ),
    )
    slurmrestd_token_file: FilePath = Field(
        default="",
        description=(
            "File with the JSON Web Token for slurmrestd, read anew for each question; empty: "
            "none, the unix socket's peer is known."
        ),
    )
    slurmrestd_user: str = Field(
        default="foretime", min_length=1, description="The Slurm user that the token is for."
    )
    commands_dir: FilePath = Field(
        default="",
        description=(
            "Folder of squeue, sacct, scontrol and sinfo, or of qstat, pbsnodes, pbs_rstat and "
            "qalter; empty: on the PATH."
        ),
    )
    pbs_accounting_dir: FilePath = Field(
        default="/var/spool/pbs/server_priv/accounting",
        description=(
            "PBS's accounting logs, which Foretime's user must be able to read; empty: ask "
            "qstat -x, for as long as the server remembers (job_history_enable)."
        ),
    )
    pbs_server_logs_dir: FilePath = Field(
        default="/var/spool/pbs/server_logs",
        description="PBS's server logs, where the hook's decisions stand; empty: do without them.",
    )
    pbs_dedicated_time_file: FilePath = Field(
        default="/var/spool/pbs/sched_priv/dedicated_time",
        description=(
            "The dedicated times of PBS's scheduler, which Foretime's user must be able to read; "
            "empty: there are none."
        ),
    )
    poll_interval_s: int = Field(
        default=60,
        ge=1,
        description="From the beginning of one look at the scheduler to that of the next.",
    )
    longest_poll_interval_s: int = Field(
        default=120,
        ge=1,
        description=(
            "The longest pause: while the scheduler is busy the pause doubles up to this, and it "
            "grows up to this where Foretime's requests would take more than 5% of the "
            "scheduler's time. At most half of table.watchdog_after_s; with hook.mode = "
            '"enforce" on Slurm two such pauses and a minute must also fit into '
            "accuracy.minimum_scheduled_time_s, so that limits are given back in time."
        ),
    )
    busy_server_threads: int = Field(
        default=64,
        ge=1,
        description="Slurm is busy while it serves so many requests at once (sdiag).",
    )
    busy_cycle_s: float = Field(
        default=5.0,
        gt=0,
        description="Slurm is busy while its main scheduling cycle takes this long (sdiag).",
    )
    command_timeout_s: int = Field(
        default=60, ge=1, description="Bound of one attempt of one command."
    )
    attempts: int = Field(
        default=4,
        ge=1,
        le=20,
        description="How often a command is tried before it counts as failed.",
    )
    overlap_s: int = Field(
        default=3600,
        ge=0,
        description=(
            "How far back finished jobs are read again at each poll, for those that "
            "accounting learns of late."
        ),
    )
    history_days: int = Field(
        default=365,
        ge=0,
        description="How far back finished jobs are read at the very first start.",
    )

    @field_validator("cluster")
    @classmethod
    def _is_cluster(cls, name: str) -> str:
        return refused_as_value(name, _check_cluster)

    @property
    def sets_site_factors(self) -> bool:
        """Whether it can order the queue: Slurm, asked by its commands, as a demo's is."""
        return self.kind == "slurm" and self.client in {"commands", "demo"}

    @property
    def can_end_jobs_as_planned(self) -> bool:
        """Whether a job's planned time can become its limit: Slurm's can, PBS's never does."""
        return self.kind == "slurm"


class StoreSettings(Section):
    """Where finished jobs are kept."""

    path: FilePath = Field(
        default="/var/lib/foretime/foretime.sqlite", min_length=1, description="The SQLite file."
    )
    durability: Literal["full", "normal"] = Field(
        default="full",
        description=(
            "full: each commit is synced to disk. normal: a power loss may undo the "
            "last polls as a whole, which are then read again."
        ),
    )
    retention_days: int = Field(
        default=730, ge=1, description="Finished jobs older than this are deleted."
    )


class AccuracySection(Section):
    """How past accuracy becomes a scheduled time (docs/estimators.md)."""

    scheme: Literal["user", "project", "combined", "learned"] = Field(
        default="combined",
        description=(
            "Whose history decides: the user's, the project's, or both combined; learned: an "
            "estimator of runtimes (learned.estimator)."
        ),
    )
    percentile: float = Field(
        default=_PRODUCTION.percentile,
        gt=0,
        le=1,
        description="Share of the weight of past accuracies that A must reach.",
    )
    threshold: int = Field(
        default=_PRODUCTION.threshold,
        ge=1,
        description=(
            "Finished submissions that a user or project needs in a class before jobs are adjusted."
        ),
    )
    minimum_adjustment: float = Field(
        default=_PRODUCTION.minimum_adjustment, ge=0, le=1, description="A is never below this."
    )
    minimum_scheduled_time_s: int = Field(
        default=_PRODUCTION.minimum_scheduled_time_s,
        ge=1,
        description="The scheduled time is never below this (nor above the requested time).",
    )
    rounding_s: int = Field(
        default=_PRODUCTION.rounding_s,
        ge=60,
        multiple_of=60,
        description="The scheduled time is rounded up to a multiple of this: whole minutes.",
    )
    class_bounds_s: list[int] = Field(
        default=list(_PRODUCTION.class_bounds_s),
        description=(
            "Ascending upper bounds of the requested-time classes, each judged apart;"
            " one more class lies above the last."
        ),
    )
    weigh_by_processor_time: bool = Field(
        default=_PRODUCTION.weigh_by_processor_time,
        description=(
            "History weighs by the processor-time really used; false: every job weighs the same."
        ),
    )
    full_weight_accuracy: float = Field(
        default=_PRODUCTION.full_weight_accuracy,
        gt=0,
        le=1,
        description="Processor-time counts as weight up to this share of what was requested.",
    )
    arrays_count_once: bool = Field(
        default=_PRODUCTION.arrays_count_once,
        description="All tasks of a job array count as one submission.",
    )
    imagined_job: bool = Field(
        default=_PRODUCTION.imagined_job,
        description=(
            "Each history holds one more job, as large as its largest, that ran to its limit."
        ),
    )
    within_largest_job: bool = Field(
        default=_PRODUCTION.within_largest_job,
        description="Only jobs no larger than the largest in the history are adjusted.",
    )
    literal_equation_5: bool = Field(
        default=_PRODUCTION.literal_equation_5,
        description="Combine user and project as the paper prints it, with A = 1 meaning no data.",
    )
    window_s: int = Field(
        default=_PRODUCTION.window_s or 0,
        ge=0,
        description="Jobs that ended longer ago are forgotten; 0 keeps all.",
    )
    half_life_s: int = Field(
        default=_PRODUCTION.half_life_s or 0,
        ge=0,
        description=(
            "Evidence loses half its weight in this time, at least a day; 0: it does "
            "not age. Not together with window_s."
        ),
    )

    def to_model(self) -> AccuracySettings:
        """Give the same for the accuracy model; raises `InputError` if it refuses them."""
        values = self.model_dump(exclude={"scheme"})
        values["class_bounds_s"] = tuple(self.class_bounds_s)
        values["window_s"] = self.window_s or None
        values["half_life_s"] = self.half_life_s or None
        return AccuracySettings(**values)

    @classmethod
    def of_model(cls, model: AccuracySettings) -> AccuracySection:
        """Give the settings that lead to a rule of the accuracy model."""
        values = asdict(model)
        values["class_bounds_s"] = list(model.class_bounds_s)
        values["window_s"] = model.window_s or 0
        values["half_life_s"] = model.half_life_s or 0
        return cls(**values)

    def to_scheme(self) -> Scheme:
        """Give the model's scheme: under ``learned`` what it falls back on."""
        return Scheme.COMBINED if self.scheme == "learned" else Scheme(self.scheme)


class TableSettings(Section):
    """The file that the hook reads."""

    path: FilePath = Field(
        default="/var/lib/foretime/table/foretime.table",
        min_length=1,
        description=(
            "The table; slurmctld must be able to read it, and only foretime to write its folder."
        ),
    )
    publish_interval_s: int = Field(
        default=300, ge=1, description="A new table is written this often if anything was learned."
    )
    valid_for_s: int = Field(
        default=21_600,
        ge=60,
        description=(
            "The hook leaves jobs alone when the table is older: so the daemon's "
            "death returns the cluster to its own plans."
        ),
    )
    watchdog_after_s: int = Field(
        default=900,
        ge=10,
        description=(
            "When the daemon has not looked at the queue for so long, foretime watchdog withdraws "
            "the table and gives jobs back what their users asked for (Slurm), or takes away their "
            "ranks (PBS with queue_order.order = start-now)."
        ),
    )


def _with_names(hook: type[HookSettings]) -> type[HookSettings]:
    """Add a setting for each kind of names."""
    settings: dict[str, Any] = {
        f"leave_{kind.plural}": (Names, Field(default=[], description=kind.meaning))
        for kind in KINDS.values()
    }
    return create_model(
        hook.__name__, __base__=hook, __module__=hook.__module__, __doc__=hook.__doc__, **settings
    )


@_with_names
class HookSettings(Section):
    """What the hook does with the table: it reads these from it."""

    mode: Literal["observe", "advise", "enforce"] = Field(
        default="observe",
        description=(
            "observe: nothing of a job is changed, and the hook only logs; advise: nor is it then, "
            "but the hook tells users at submission, at most once a day, what such jobs use "
            "(Slurm); enforce, a deliberate act: on Slurm jobs that should start at once are "
            "raised (queue_order.order), or else, and on PBS, jobs are planned short (mechanism). "
            "Back at observe, jobs lose what Foretime gave them."
        ),
    )
    disable_file: FilePath = Field(
        default="/etc/foretime/foretime.off",
        min_length=1,
        description=(
            "While this file exists no job is planned: foretime disable makes it, foretime enable "
            "removes it."
        ),
    )
    enforce_share_percent: int = Field(
        default=100,
        ge=0,
        le=100,
        description=(
            "Under enforce, the share of users whose jobs are changed, always the same ones; the "
            "others' are observed."
        ),
    )
    enforce_only_accounts: Names = Field(
        default=[],
        description=(
            "Under enforce, only jobs of these accounts are changed, the others' are observed; "
            "empty: of any."
        ),
    )
    enforce_only_slurm_partitions: Names = Field(
        default=[],
        description=(
            "Under enforce, only jobs all of whose partitions are among these are changed; "
            "empty: in any."
        ),
    )
    enforce_only_queues: Names = Field(
        default=[],
        description="Under enforce, only jobs in these PBS queues are changed; empty: in any.",
    )
    mechanism: Literal["slurm-soft-limit", "rewrite-limit", "pbs-soft-walltime"] = Field(
        default="slurm-soft-limit",
        description=(
            "slurm-soft-limit needs Slurm 23.11 or newer with "
            "SchedulerParameters=time_min_as_soft_limit; rewrite-limit is for older "
            "Slurm and needs PrologSlurmctld to be Foretime's prolog_slurmctld; "
            "pbs-soft-walltime is PBS's."
        ),
    )
    planned_at: Literal["look", "submission"] = Field(
        default="look",
        description=(
            "When a job gets its time_min, or under rewrite-limit its lowered limit (Slurm). look: "
            "at the daemon's next look, which sees the whole job. submission: from the hook, which "
            "can't see a --deadline on the command line: Slurm then accepts a job that it would "
            "have rejected."
        ),
    )
    reservation_lead_time_s: int = Field(
        default=0,
        ge=0,
        description=(
            "Reservations are made at least so long before they begin: jobs that ask for more are "
            "left alone, and none that was started on its time_min can meet one. 0: no such "
            "promise (Slurm)."
        ),
    )
    starvation_guard_s: int = Field(
        default=21_600,
        ge=0,
        description=(
            "When the queue's head waits longer than this over its plan on requested times, all "
            "jobs are planned with their own limits until it starts; 0: never (Slurm)."
        ),
    )
    user_time_min: Literal["raise", "keep", "clear"] = Field(
        default="raise",
        description=(
            "A user's own --time-min is raised to the scheduled time, kept (the job "
            "is left alone), or cleared."
        ),
    )
    # And leave_... of each kind of names.

    @property
    def scheduler(self) -> Scheduler:
        """Whose hook it is."""
        return "pbs" if self.mechanism == "pbs-soft-walltime" else "slurm"

    @property
    def left_alone(self) -> NamesByKind:
        """Give all names of ``leave_...``."""
        return frozenset(
            (kind.word, name)
            for kind in KINDS.values()
            for name in getattr(self, f"leave_{kind.plural}")
        )

    @property
    def enforced_only(self) -> NamesByKind:
        """Give all names of ``enforce_only_...``."""
        return frozenset(
            (kind.word, name)
            for kind in ENFORCE_KINDS
            for name in getattr(self, f"enforce_only_{kind.plural}")
        )


class BreakerSettings(Section):
    """When enforce is given up for observe, until an administrator says foretime enable."""

    window_s: int = Field(
        default=7 * DAY_S, ge=3600, description="Jobs that ended in this time are judged."
    )
    least_jobs: int = Field(
        default=200,
        ge=1,
        description="With fewer planned jobs that ended, neither their share nor wait is judged.",
    )
    most_outliving_percent: float = Field(
        default=50,
        gt=0,
        le=100,
        description="Planned jobs that may run longer than their scheduled time; 100: no limit.",
    )
    most_head_slip_s: int = Field(
        default=DAY_S,
        ge=0,
        description=(
            "How much later than first planned a head job's start may be, while it heads the "
            "queue; 0: no limit."
        ),
    )
    most_wait_p99_s: int = Field(
        default=14 * DAY_S,
        ge=0,
        description="99th percentile of the waits of all jobs that ended; 0: no limit.",
    )


ForwardBackfill: TypeAlias = Literal[
    "none", "easy", "easy-sjbf", "conservative", "planning", "first-fit"
]
"""What forecasts can run the queue forward under."""


class ForecastSettings(Section):
    """How the queue is run forward; let them be what the scheduler does."""

    run_as: Literal["site", "policy"] = Field(
        default="site",
        description=(
            "site: as this site's own Slurm or PBS schedules, which the daemon reads from it "
            "(docs/site.md); where that can't be read or modelled, as order and backfill say. "
            "policy: always as these say."
        ),
    )
    site_file: FilePath = Field(
        default="",
        description=(
            "A site.toml that says how the scheduler is set up, in the place of what it tells. "
            "Nodes and partitions are always those that Slurm tells; of PBS's hosts those take no "
            "part that PBS has as down or offline. Empty: the scheduler is asked."
        ),
    )
    site_interval_s: int = Field(
        default=900,
        ge=60,
        description=(
            "Pause between two readings of the site; it is read sooner once the daemon sees that "
            "the scheduler was configured anew."
        ),
    )
    order: Literal["priority", OrderName] = Field(
        default="priority",
        description=(
            "Order of the queue; priority: by the scheduler's own priorities as they are (PBS "
            "tells none), ties as submitted; xf is the largest expansion factor first."
        ),
    )
    backfill: ForwardBackfill = Field(
        default="easy",
        description="Kind of backfilling; conservative makes its promises anew, in queue order.",
    )
    most_jobs: int = Field(
        default=20_000, ge=1, description="A longer queue is not run forward: the forecast says so."
    )
    cpu_percent: float = Field(
        default=50,
        gt=0,
        le=100,
        description="Of one processor: what keeping forecasts up to date may use.",
    )
    keep_days: int = Field(
        default=90,
        ge=1,
        description="Served forecasts, and what came of them, are deleted after so many days.",
    )
    slack_factor: float = Field(
        default=3,
        ge=0,
        le=1000,
        description=(
            "How much later than planned on requests the bound lies that a job starts no later "
            "than, in average waits of the last 30 days (docs/api.md)."
        ),
    )

    @classmethod
    def of_policy(cls, order: str, backfill: str) -> Self:
        """Give those that do what a scheduler with this queue order and backfilling does.

        Raises
        ------
        InputError
            If forecasts can't run its queue forward.
        """
        kinds = get_args(cls.model_fields["backfill"].annotation)
        if backfill not in kinds:
            raise InputError(
                f"backfilling is {backfill}: forecasts can't run the queue forward under it; take "
                f"one of {', '.join(kinds)}"
            )
        return cls.model_validate({"order": order, "backfill": backfill})


class Settings(Section):
    """All of them.

    Examples
    --------
    >>> from foretime_sidecar import Settings
    >>> Settings().scheduler.kind
    'slurm'
    """

    scheduler: SchedulerSettings = SchedulerSettings()
    store: StoreSettings = StoreSettings()
    accuracy: AccuracySection = AccuracySection()
    learned: LearnedSettings = LearnedSettings()
    table: TableSettings = TableSettings()
    hook: HookSettings = HookSettings()
    breaker: BreakerSettings = BreakerSettings()
    queue_order: QueueOrderSettings = QueueOrderSettings()
    forecast: ForecastSettings = ForecastSettings()
    estimators: EstimatorsSettings = EstimatorsSettings()
    beside: BesideSettings = BesideSettings()
    api: ApiSettings = ApiSettings()
    notify: NotifySettings = NotifySettings()

    @property
    def starts_now(self) -> bool:
        """Whether enforce raises jobs that should start at once, and the hook then changes none."""
        sets = self.scheduler.sets_site_factors
        return self.queue_order.starts_now or (self.queue_order.order == AUTO and sets)

    @property
    def starts_jobs(self) -> bool:
        """Whether jobs are raised to start at once: `starts_now`, under enforce."""
        return self.starts_now and self.hook.mode == "enforce"
