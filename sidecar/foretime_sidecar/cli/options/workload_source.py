"""The workload that a command runs: a log, read and filtered, or one that is generated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.filters import Filters, MissingRequest, Occupied, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.machine import Machine
from foretime_sim.models.workload_models import WorkloadModel, generate, with_estimates
from foretime_sim.policies.site_machine import assumptions, that_fit_on_all
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.job_log import JobLog, count_jobs
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.cli.options.workload_options import WorkloadOptions
from foretime_sidecar.wording.durations import parse_duration


@dataclass(frozen=True, slots=True)
class WorkloadSource:
    """Where a command's workload comes from, as its options say.

    Attributes
    ----------
    options
        As given on the command line.
    seed
        Of what is generated, and of requested times that are drawn.
    processors_per_node
        On a Blue Gene, how many of the log's processors are a node.
    history
        Another log, read by the same options.
    sites
        Of the policies that run: each has a machine of its own.
    """

    options: WorkloadOptions
    seed: int = 1
    processors_per_node: int | None = None
    history: Path | None = None
    sites: Sequence[SlurmSite | PbsSite] = ()

    def __post_init__(self) -> None:
        if self.options.longest_estimate is not None and self.options.estimates is None:
            raise InputError("--longest-estimate is for --estimates: give both")
        if self.options.generate is not None and self.options.log is None and self.history is None:
            self._refuse_log_options(self.options.generate)

    def _refuse_log_options(self, model: WorkloadModel) -> None:
        """Refuse what says how a log is read, where none is."""
        for option, given in (
            ("--format", self.options.log_format is not None),
            ("--columns", self.options.columns is not None),
            ("--time-zone", self.options.time_zone is not None),
            ("--lenient", self.options.lenient),
            ("--missing-request", self.options.missing_request != "drop"),
        ):
            if given:
                raise InputError(
                    f"{option} says how a log is read, and {model} reads none; leave it out"
                )

    @property
    def longest_estimate_s(self) -> int | None:
        """The longest estimate, seconds."""
        if self.options.longest_estimate is None:
            return None
        try:
            return parse_duration(self.options.longest_estimate)
        except InputError as error:
            raise InputError(
                f"--longest-estimate {self.options.longest_estimate}: use a time like 18:00:00"
            ) from error

    def read(self) -> tuple[Workload, tuple[str, ...]]:
        """Give the workload, and notes on what was done to it.

        Raises
        ------
        InputError
            If the options don't go together, or the log can't be read or used.
        """
        described = None
        if self.sites:
            return self._read_for_sites()
        if self.options.machine is not None:
            from foretime_sim.machines.load import read_any_machine  # most runs are on a flat pool

            if self.options.processors is not None:
                raise InputError("--machine says how large the machine is: leave --processors out")
            described = read_any_machine(self.options.machine)
        if not isinstance(described, Machine | None):
            return self._read_for_blue_gene(described)
        if self.processors_per_node is not None:
            raise InputError("--processors-per-node is for a Blue Gene: give its --machine, too")
        if described is None:
            return self._read()
        from foretime_sim.workloads.resource_requests import with_machine

        workload, notes = self._sized(described.cpus)._read()
        placed = with_machine(workload, described, leave_out=True)
        return placed, (*notes, *placed.notes[len(workload.notes) :])

    def _read_for_sites(self) -> tuple[Workload, tuple[str, ...]]:
        """Jobs that could not run on one of the sites are left out; notes tell what is assumed."""
        if self.options.machine is not None or self.options.processors is not None:
            raise InputError("--site has a machine: leave --machine and --processors out")
        workload, notes = self._sized(max(site.machine.cpus for site in self.sites))._read()
        fitting = that_fit_on_all(self.sites, workload)
        said = dict.fromkeys(sentence for site in self.sites for sentence in assumptions(site))
        return fitting, (*notes, *fitting.notes[len(workload.notes) :], *said)

    def _sized(self, processors: int) -> WorkloadSource:
        return replace(self, options=replace(self.options, processors=processors))

    def _read_for_blue_gene(self, machine: BgpMachine) -> tuple[Workload, tuple[str, ...]]:
        """Jobs have the nodes that they were given; models count in nodes."""
        from foretime_sim.workloads.bgp_jobs import processors_per_node, with_bgp_machine

        given = self.processors_per_node
        if given is not None and given < 1:
            raise InputError(f"--processors-per-node {given}: give at least 1")
        if self.options.log is None:
            per_node = 1 if given is None else given
            source = self._sized(machine.nodes * per_node)
            workload, notes = source._read()
        else:
            job_log = self._job_log(self.options.log)
            per_node = processors_per_node(job_log, machine) if given is None else given
            source = self._sized(machine.nodes * per_node)
            logged, text = source._workload_of(job_log, occupied="allocated")
            workload = self.with_estimates(logged)
            notes = (text, *workload.notes[len(logged.notes) :])
        placed = with_bgp_machine(workload, machine, processors_per_node=per_node, leave_out=True)
        counted = f"{per_node} of the log's processors are a node of {machine.name}."
        added = placed.notes[len(workload.notes) :]
        return placed, (*notes, *([counted] if per_node > 1 else []), *added)

    def _read(self) -> tuple[Workload, tuple[str, ...]]:
        if self.options.log is None and self.options.generate is None:
            raise InputError("give a log, or --generate MODEL")
        if self.options.log is not None and self.options.generate is not None:
            raise InputError("a log and --generate are both given: leave one out")
        if self.options.log is not None:
            if self.options.jobs is not None:
                raise InputError(
                    "--jobs is for --generate; to replay a log's first jobs give --head"
                )
            if self.options.load is not None:
                raise InputError("--load is for --generate; a log has the load that it has")
            workload, text = self.read_log(self.options.log)
            drawn = self.with_estimates(workload)
            return drawn, (text, *drawn.notes[len(workload.notes) :])
        workload = generate(
            self.options.generate or "lublin2003",
            jobs=self.options.jobs,
            processors=self.options.processors,
            seed=self.seed,
            load=self.options.load,
            overruns="keep" if self.options.keep_overruns else "cut",
            estimates=self.options.estimates,
            longest_estimate_s=self.longest_estimate_s,
        )
        return workload, workload.notes

    def read_log(self, path: Path) -> tuple[Workload, str]:
        """Read a log as the options say: its workload, and a sentence on what was done to it.

        With a model of estimates no job is left out, or cut, for its requested time; `read` draws.
        """
        return self._workload_of(self._job_log(path))

    def _job_log(self, path: Path) -> JobLog:
        return read_log(
            path,
            lenient=self.options.lenient,
            format=self.options.log_format,
            columns=self.options.columns,
            time_zone=self.options.time_zone,
        )

    def _workload_of(
        self, job_log: JobLog, occupied: Occupied = "requested"
    ) -> tuple[Workload, str]:
        filters = Filters(
            overruns="keep" if self.options.keep_overruns else "cut",
            missing_request=parse_missing_request(self.options.missing_request),
            occupied=occupied,
        )
        if self.options.estimates is not None:
            filters = filters.without_requests()
        workload, report = workload_of_log(
            job_log, processors=self.options.processors, filters=filters
        )
        return workload, report.text

    def with_estimates(self, workload: Workload) -> Workload:
        """Draw a log's requested times by the model of estimates that the options name, if any."""
        longest_s = self.longest_estimate_s
        if self.options.estimates is None:
            return workload
        return with_estimates(workload, self.options.estimates, longest_s=longest_s, seed=self.seed)

    def first(self, workload: Workload, notes: tuple[str, ...]) -> tuple[Workload, tuple[str, ...]]:
        """Give the first jobs, as many as ``--head`` says, and notes that say so."""
        head = self.options.head
        if head is None:
            return workload, notes
        jobs = len(workload)
        note = f"--head {head}: the first {min(head, jobs):,} of {count_jobs(jobs)} run."
        return workload.head(head), (*notes, note)


def parse_missing_request(word: str) -> MissingRequest:
    """Read the option of that name: ``drop``, ``runtime``, or a time as for ``sbatch``."""
    if word == "drop":
        return "drop"
    if word == "runtime":
        return "runtime"
    try:
        return parse_duration(word)
    except InputError as error:
        raise InputError(
            f"--missing-request {word}: use drop, runtime, or a time like 12:00:00"
        ) from error
