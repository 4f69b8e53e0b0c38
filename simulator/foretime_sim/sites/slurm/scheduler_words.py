"""The words of SchedulerParameters that are modelled, in Slurm's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foretime_sim.files.toml_keys import YES_OR_NO, Key, Kind, whole_number
from foretime_sim.sites.slurm.parameters import SlurmParameters

ALWAYS_WRITTEN = (
    "bf_interval", "bf_window", "bf_resolution", "bf_max_job_test", "bf_max_job_user",
    "bf_continue", "default_queue_depth",
)  # fmt: skip
"""What a site's file says in any case, as it matters most."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of SchedulerParameters that has a number.

    Attributes
    ----------
    attribute
        Of `SlurmParameters`.
    least, most
        What Slurm takes; it goes by its default, and says so in its log, where there is another.
    unit
        What it counts, for people; "" for jobs and other things.
    seconds
        How many of the attribute's units one is.
    """

    attribute: str
    least: int
    most: int
    unit: str = ""
    seconds: int = 1

    @property
    def kind(self) -> Kind:
        """How its value is read and written."""
        numbers = whole_number(self.least, self.most)

        def write(value: int) -> str:
            if value % self.seconds:
                raise ValueError(f"{value} s are no whole {self.unit}")
            return str(value // self.seconds)

        return Kind(lambda value: numbers.read(value) * self.seconds, write)


_MANY = 2**31 - 1
_MOST_TESTED = 1_000_000

NUMBERS = {
    "batch_sched_delay": Word("batch_sched_delay", 0, _MANY, "seconds"),
    "sched_interval": Word("sched_interval", 0, _MANY, "seconds"),
    "sched_min_interval": Word("sched_min_interval_us", 0, _MANY, "microseconds"),
    "default_queue_depth": Word("default_queue_depth", 0, _MANY),
    "partition_job_depth": Word("partition_job_depth", 0, _MANY),
    "max_sched_time": Word("max_sched_time", 1, _MANY, "seconds"),
    "sched_max_job_start": Word("sched_max_job_start", 0, _MANY),
    "max_rpc_cnt": Word("max_rpc_cnt", 0, _MANY),
    "bf_interval": Word("bf_interval", 1, 10_800, "seconds"),
    "bf_resolution": Word("bf_resolution", 1, 3_600, "seconds"),
    "bf_window": Word("bf_window", 1, 43_200, "minutes", 60),
    "bf_max_time": Word("bf_max_time", 1, 3_600, "seconds"),
    "bf_yield_interval": Word("bf_yield_interval_us", 1, 10_000_000, "microseconds"),
    "bf_yield_sleep": Word("bf_yield_sleep_us", 1, 10_000_000, "microseconds"),
    "bf_max_job_test": Word("bf_max_job_test", 1, _MOST_TESTED),
    "bf_max_job_user": Word("bf_max_job_user", 0, _MANY),
    "bf_max_job_part": Word("bf_max_job_part", 0, _MANY),
    "bf_max_job_user_part": Word("bf_max_job_user_part", 0, _MANY),
    "bf_max_job_assoc": Word("bf_max_job_assoc", 0, _MANY),
    "bf_max_job_start": Word("bf_max_job_start", 0, 10_000),
    "bf_max_job_array_resv": Word("bf_max_job_array_resv", 0, 1_000),
    "bf_job_part_count_reserve": Word("bf_job_part_count_reserve", 0, 100_000),
    "bf_min_prio_reserve": Word("bf_min_prio_reserve", 0, 2**32 - 1),
    "bf_min_age_reserve": Word("bf_min_age_reserve", 0, 2_592_000, "seconds"),
}
"""As read by ``schedule`` (job_scheduler.c) and ``_load_config`` (backfill.c), 22.05 and 25.11."""

FLAGS = (
    "defer", "assoc_limit_stop", "bf_continue", "bf_one_resv_per_job", "bf_running_job_reserve",
    "bf_licenses", "time_min_as_soft_limit",
)  # fmt: skip
"""Words that are set or not; attributes have the same names."""

KEYS = {
    **{
        name: Key(word.attribute, word.kind, word.unit or "a number")
        for name, word in NUMBERS.items()
    },
    **{name: Key(name, YES_OR_NO, "set or not") for name in FLAGS},
}
"""Keys of ``[slurm.SchedulerParameters]``."""


def with_defaults(values: dict[str, Any]) -> dict[str, Any]:
    """Add what Slurm's defaults make of other words: bf_max_time is bf_interval (backfill.c)."""
    if "bf_interval" in values and "bf_max_time" not in values:
        return {**values, "bf_max_time": min(values["bf_interval"], NUMBERS["bf_max_time"].most)}
    return values


def word_lines(parameters: SlurmParameters) -> list[str]:
    """Write the words that differ from Slurm's defaults, and those that matter most."""
    lines = []
    for name, text in _words_that_matter(parameters):
        unit = NUMBERS[name].unit if name in NUMBERS else ""
        lines.append(f"{name} = {text}" + (f"  # {unit}" if unit else ""))
    return lines


def scheduler_parameters(parameters: SlurmParameters) -> str:
    """Write the same words for people to read; flags are named only if they are set.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.parameters import SlurmParameters
    >>> from foretime_sim.sites.slurm.scheduler_words import scheduler_parameters
    >>> scheduler_parameters(SlurmParameters(bf_max_job_user=10, bf_continue=True)).split(", ")[-2:]
    ['bf_max_job_user=10', 'bf_continue']
    """
    return ", ".join(
        name if name in FLAGS else f"{name}={text}"
        for name, text in _words_that_matter(parameters)
        if name not in FLAGS or getattr(parameters, name)
    )


def _words_that_matter(parameters: SlurmParameters) -> list[tuple[str, str]]:
    unsaid = SlurmParameters(**with_defaults({"bf_interval": parameters.bf_interval}))
    return [
        (name, key.kind.write(getattr(parameters, key.attribute)))
        for name, key in KEYS.items()
        if name in ALWAYS_WRITTEN
        or getattr(parameters, key.attribute) != getattr(unsaid, key.attribute)
    ]
