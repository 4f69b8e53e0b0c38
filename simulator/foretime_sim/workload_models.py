"""Workload models by the names that people write: what ``--generate`` takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from foretime_estimators.errors import InputError

from foretime_sim.workload import Workload

WorkloadModel: TypeAlias = Literal["lublin2003", "downey1997", "intrepid-like", "pc2"]


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

    Raises
    ------
    InputError
        If an argument is out of range.
    """
    defaults = DEFAULTS[model]
    jobs = defaults.jobs if jobs is None else jobs
    load = defaults.load if load is None else load
    if model in ("lublin2003", "downey1997"):
        from foretime_sim import downey1997, lublin2003

        chosen = lublin2003.generate if model == "lublin2003" else downey1997.generate
        processors = defaults.processors if processors is None else processors
        return chosen(jobs, processors=processors, seed=seed, load=load)
    if processors not in (None, defaults.processors):
        raise InputError(
            f"--processors {processors}: {model} is for a machine of {defaults.processors:,}; "
            "leave the option out"
        )
    if model == "pc2":
        from foretime_sim import pc2

        return pc2.generate(jobs, seed=seed, load=load)
    from foretime_sim import intrepid_like

    return intrepid_like.generate(jobs, seed=seed, load=load, overruns=overruns)
