"""The study of Tang 2010 again: which workloads, and which runs.

W. Tang, N. Desai, D. Buettner and Z. Lan, "Analyzing and Adjusting User Runtime Estimates to
Improve Job Scheduling on the Blue Gene/P", IPDPS 2010. The paper does not say what a job
that outlives t_sched is planned with: here the request, at which it would be killed
(`Correction.REQUESTED`), and the other rules beside it.
"""

from __future__ import annotations

import datetime
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from foretime_estimators.jobs.errors import InputError
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.models import intrepid_like
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy, Roles
from foretime_sim.scores.job_classes import JobClasses
from foretime_sim.workloads.bgp_jobs import with_bgp_machine
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.progress import Begin
from foretime_studies.frame.runs import StudyCase, StudyInput, StudyRuns, run_cases, runs_in_all

MAIN, WITH_PROJECTS = "main", "with-projects"
"""Names of the study's input, and of the one on which projects matter (mostly the same)."""
BLENDS = tuple(f"a={a:g}" for a in (0.25, 0.5, 0.75, 1.0))
"""Synthetic accuracy, up to perfect knowledge (section IV, figures 4 and 5)."""
SELECTIVE = ("S001", "S010", "S100", "S110", "S111")
"""Table II: where t_act is used, for queuing, backfilling, draining; S000 is the baseline."""
SCHEMES = ("user", "project", "combined", "selective")
"""Section V; selective is combined in the roles of S110."""
OLD_BASELINES = ("doubled", "randomised")
"""Section III's controversy."""
ORDERS = (Order.FCFS, Order.WFP)
MONTHS = 8
"""Generated months, of other seeds, on which the schemes are run besides."""
CLASSES = JobClasses(length_s=(1_800, 3_600, 7_200))
"""Figure 2's bounds can't be read: these give every class of WL-II its share of the jobs."""
HISTORY_SHARE = intrepid_like.HISTORY_JOBS / intrepid_like.JOBS
"""Of a log that has not the paper's months: so many jobs are the history."""
_JULY, _AUGUST = (datetime.datetime(2009, month, 1, tzinfo=datetime.UTC) for month in (7, 8))
INTREPID_LOG = "ANL-Intrepid-2009-1"


@dataclass(frozen=True, slots=True)
class Tang2010:
    """What the study found."""

    # By name; `MAIN`, `WITH_PROJECTS` if any, and the further generated months.
    inputs: dict[str, StudyInput]
    runs: StudyRuns  # every case's, by `case_name`
    schemes: tuple[str, ...]  # those of `SCHEMES` that the workload allows
    months: tuple[str, ...]
    repeats: int  # jittered copies
    seed: int
    generated: bool
    notes: tuple[str, ...]  # what the reader has to know of the workloads

    @property
    def main(self) -> StudyInput:
        """The workload of tables I and III and figures 2 to 7."""
        return self.inputs[MAIN]

    @property
    def on_projects(self) -> str:
        """Name of the input of figures 8 to 10."""
        return _on_projects(self.inputs)


def case_name(on: str, order: Order, treatment: str, correction: str = "requested") -> str:
    """Key of a run: input, queue order, treatment of the estimates, correction rule."""
    return f"{on}/{order}/{treatment}/{correction}"


def study(
    # The workload, its processors being nodes on a Blue Gene; ``None`` for a generated one.
    log: Workload | None,
    machine: BgpMachine | None,  # the Blue Gene that everything runs on; ``None`` for a flat pool
    *,
    seed: int = 1,  # of the generated workload, the jittered copies and randomised estimates
    repeats: int = 10,  # jittered copies of each workload
    months: int = MONTHS,  # further generated workloads on which the schemes run; not with a log
    workers: int = 2,
    notes: Sequence[str] = (),  # what was done to the log
    begin: Begin | None = None,
) -> Tang2010:
    """Run the whole study.

    InputError if the log is too short to be split into a history and a test.
    """
    inputs, notes = _inputs(log, machine, seed, months, tuple(notes))
    on_projects = _on_projects(inputs)
    projects = inputs[on_projects].test.projects is not None
    schemes = tuple(name for name in SCHEMES if projects or name == "user")
    further = tuple(name for name in inputs if name not in (MAIN, WITH_PROJECTS))
    listed = cases(schemes, on_projects, further)
    progress = None if begin is None else begin(runs_in_all(listed, repeats))
    runs = run_cases(
        inputs,
        listed,
        repeats=repeats,
        seed=seed,
        workers=workers,
        classes=CLASSES,
        progress=progress,
    )
    return Tang2010(inputs, runs, schemes, further, repeats, seed, log is None, notes)


def cases(schemes: Sequence[str], on_projects: str, months: Sequence[str]) -> list[StudyCase]:
    """List every run: sections IV.C and V, the old baselines, corrections, further months."""
    listed: dict[str, StudyCase] = {}

    def add(
        on: str,
        order: Order,
        treatment: str,
        correction: Correction = Correction.REQUESTED,
        *,
        repeated: bool = True,
    ) -> None:
        name = case_name(on, order, treatment, str(correction))
        estimate, roles = estimate_of(treatment)
        policy = Policy(order=order, roles=roles, correction=correction)
        # What is listed first is repeated; the same run below is not another one.
        listed.setdefault(name, StudyCase(name, on, policy, estimate, repeated))

    for order in ORDERS:
        for treatment in ("requested", *BLENDS, *OLD_BASELINES):
            add(MAIN, order, treatment)
        for treatment in ("requested", *schemes):
            add(on_projects, order, treatment)
    for treatment in SELECTIVE:
        add(MAIN, Order.WFP, treatment)
    for correction in Correction:
        for scheme in schemes:
            add(on_projects, Order.WFP, scheme, correction, repeated=False)
        add(MAIN, Order.WFP, "randomised", correction, repeated=False)
    for month in months:
        for treatment in ("requested", "S111", *schemes):
            add(month, Order.WFP, treatment, repeated=False)
        for treatment in ("requested", "S111"):
            add(month, Order.FCFS, treatment, repeated=False)
    return list(listed.values())


def estimate_of(treatment: str) -> tuple[str, Roles]:
    """Give the estimator's name, and the roles in which it is used."""
    if treatment.startswith("a="):
        return f"blend:{treatment[2:]}", Roles()
    if treatment in SELECTIVE:
        return "actual", Roles.parse(treatment)
    if treatment == "selective":
        return "combined", Roles.parse("S110")
    return treatment, Roles()


def _inputs(
    log: Workload | None, machine: BgpMachine | None, seed: int, months: int, notes: tuple[str, ...]
) -> tuple[dict[str, StudyInput], tuple[str, ...]]:
    """Give the study's workloads by name, and what has to be said of them."""
    if log is None:
        made = [_generated(seed + number, machine) for number in range(months + 1)]
        notes = (
            *notes,
            *made[0].test.notes,
            "Everything here is of a generated workload, not of the paper's trace.",
        )
        inputs = {MAIN: made[0]}
        inputs.update({f"seed {seed + number}": made[number] for number in range(1, months + 1)})
        return inputs, notes
    inputs = {MAIN: _split(log)}
    said: list[str] = []
    if log.projects is None and machine is not None:
        inputs[WITH_PROJECTS] = _generated(seed, machine)
        said.append(
            "The log names no projects: figures 8 to 10 and the corrections of schemes are of a "
            f"generated workload ({inputs[WITH_PROJECTS].test.name}), not of the log."
        )
    elif log.projects is None:
        said.append(
            "The log names no projects: of the schemes only the user-based one can be shown. "
            "Without --log the study runs all of them on a generated workload."
        )
    if log.users is None:
        said.append("The log names no users: schemes that learn from them change nothing.")
    return inputs, (*notes, *said)


def _on_projects(inputs: Container[str]) -> str:
    return WITH_PROJECTS if WITH_PROJECTS in inputs else MAIN


def _generated(seed: int, machine: BgpMachine | None) -> StudyInput:
    made = intrepid_like.generate(seed=seed)
    if machine is not None:
        made = with_bgp_machine(made, machine)
    history, test = made.split(intrepid_like.SPLIT_S)
    return StudyInput(f"generated, seed {seed}", test, history)


def _split(log: Workload) -> StudyInput:
    """Split a log where the paper does: in July 2009, or where it leaves as many to the history."""
    if log.name.startswith(INTREPID_LOG) and log.unix_start_time is not None:
        july, august = log.seconds_at(_JULY), log.seconds_at(_AUGUST)
        if log.submit_time[0] < july <= log.submit_time[-1]:
            history, rest = log.split(july)
            return StudyInput(log.name, rest.take(rest.submit_time < august), history)
    if len(log) < 100:
        raise InputError(f"{log.name}: {len(log)} jobs are too few to learn from and test on")
    history, test = log.split(int(log.submit_time[round(HISTORY_SHARE * len(log))]))
    return StudyInput(log.name, replace(test, notes=()), history)
