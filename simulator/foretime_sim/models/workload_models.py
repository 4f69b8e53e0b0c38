"""Workload models by the names that people write: what ``--generate`` takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from foretime_estimators.jobs.errors import InputError

from foretime_sim.workloads.workload import Workload

WorkloadModel: TypeAlias = Literal["lublin2003", "downey1997", "intrepid-like", "pc2"]
EstimateModel: TypeAlias = Literal["tsafrir"]


@dataclass(frozen=True, slots=True)
class ModelDefaults:
    """What a model generates where nothing else is asked for; ``load`` ``None``: its own."""

    jobs: int
    processors: int
    load: float | None


DEFAULTS: dict[WorkloadModel, ModelDefaults] = {
    "lublin2003": ModelDefaults(5_000, 256, 0.7),
    "downey1997": ModelDefaults(5_000, 256, 0.7),
    "intrepid-like": ModelDefaults(58_535, 40_960, None),
    "pc2": ModelDefaults(10_000, 96, None),
}


def generate(
    model: WorkloadModel,
    *,
    jobs: int | None = None,
    processors: int | None = None,
    seed: int = 1,
    load: float | None = None,
    overruns: Literal["keep", "cut"] = "cut",
    estimates: EstimateModel | None = None,
    longest_estimate_s: int | None = None,
) -> Workload:
    """Generate a workload; ``None`` stands for a model's own default.

    Parameters
    ----------
    model
        Its name.
    jobs, processors, seed, load
        How many jobs, on how large a machine, from which seed, at which offered load. An
        Intrepid-like workload is always for 40,960 nodes, a PC2-like one for 96.
    overruns
        Whether runtimes are cut to the requested time, where the model has longer ones.
    estimates, longest_estimate_s
        What requested times come from in place of the model's own: see `with_estimates`.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> workload = generate("lublin2003", jobs=100, processors=64, load=0.9, seed=1)
    >>> len(workload), workload.machine_processors
    (100, 64)
    """
    if estimates is not None:
        made = _generate(model, jobs, processors, seed, load, overruns="keep", too_short=0.0)
        return with_estimates(made, estimates, longest_s=longest_estimate_s, seed=seed)
    if longest_estimate_s is not None:
        raise InputError(f"a longest estimate of {longest_estimate_s} s: name a model of estimates")
    return _generate(model, jobs, processors, seed, load, overruns=overruns)


def _generate(
    model: WorkloadModel,
    jobs: int | None,
    processors: int | None,
    seed: int,
    load: float | None,
    *,
    overruns: Literal["keep", "cut"],
    too_short: float | None = None,
) -> Workload:
    """Generate with the model's own requests; ``too_short``: see `RequestModel`."""
    defaults = DEFAULTS[model]
    jobs = defaults.jobs if jobs is None else jobs
    load = defaults.load if load is None else load
    if model in ("lublin2003", "downey1997"):
        from foretime_sim.models import downey1997, lublin2003
        from foretime_sim.models.request_model import RequestModel

        requests = None if too_short is None else RequestModel(too_short=too_short)
        chosen = lublin2003.generate if model == "lublin2003" else downey1997.generate
        processors = defaults.processors if processors is None else processors
        return chosen(jobs, processors=processors, seed=seed, load=load, request_model=requests)
    if processors not in (None, defaults.processors):
        raise InputError(
            f"--processors {processors}: {model} is for a machine of {defaults.processors:,}; "
            "leave the option out"
        )
    if model == "pc2":
        from foretime_sim.models import pc2

        return pc2.generate(jobs, seed=seed, load=load)
    from foretime_sim.models import intrepid_like

    return intrepid_like.generate(jobs, seed=seed, load=load, overruns=overruns)


def with_estimates(
    workload: Workload, estimates: EstimateModel, *, longest_s: int | None = None, seed: int = 1
) -> Workload:
    """Draw a workload's requested times by a model of user estimates.

    Parameters
    ----------
    workload
        A generated one, or a log's.
    estimates
        The model's name; there is one.
    longest_s
        Longest estimate, seconds; if not given, the shortest usual limit that will do.
    seed
        Of the random numbers.

    Raises
    ------
    InputError
        If an argument is out of range, or the model can't give all jobs an estimate.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.models.workload_models import with_estimates
    >>> workload = generate("lublin2003", jobs=100, seed=1)
    >>> estimated = with_estimates(workload, "tsafrir2005")
    >>> bool((estimated.requested_time >= workload.actual_runtime).all())
    True
    """
    from foretime_sim.models import tsafrir2005

    model = None if longest_s is None else tsafrir2005.Tsafrir2005(longest_s)
    return tsafrir2005.with_estimates(workload, model, seed=seed)
