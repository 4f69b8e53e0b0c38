"""Pictures of workloads: runtimes asked for and taken, gaps, hours of the week, widths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foretime_sim.models.week_profile import WEEK_HOURS, WeekProfile
from foretime_sim.models.weibull import fit_moments, fit_shape
from foretime_sim.scores.plots import TICKS_S
from foretime_sim.workloads.site_clock import SiteClock
from foretime_sim.workloads.workload import Workload

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def plot_workloads(workloads: Sequence[Workload], clocks: Sequence[SiteClock]) -> Figure:
    """Draw each workload in a row of four panels.

    From the left: figure 1 of Streit 2002, the distributions of requested times and of runtimes;
    the time between submissions, with Weibull distributions fitted to it; submissions by hour of
    the week, on each workload's clock; widths.
    """
    figure = Figure(figsize=(17, 3.6 * len(workloads)), layout="constrained")
    rows = figure.subplots(len(workloads), 4, squeeze=False)
    for panels, workload, clock in zip(rows, workloads, clocks, strict=True):
        _plot_times(panels[0], workload)
        _plot_gaps(panels[1], workload)
        _plot_week(panels[2], workload, clock)
        _plot_widths(panels[3], workload)
        panels[0].set_ylabel(f"{workload.name}\nshare of jobs")
    return figure


def _plot_times(axes: Axes, workload: Workload) -> None:
    for label, seconds in (
        ("requested time", workload.requested_time),
        ("runtime", workload.actual_runtime),
    ):
        axes.step(*_cdf(seconds), where="post", label=label)
    longest = int(max(workload.requested_time.max(), workload.actual_runtime.max()))
    _time_axis(axes, longest, "requested time, runtime")


def _plot_gaps(axes: Axes, workload: Workload) -> None:
    gaps = np.diff(workload.submit_time)
    if gaps.any():
        seconds, reached = _cdf(gaps + 1)  # a gap of 0 s is less than one
        axes.step(seconds, reached, where="post", label="log")
        grid = np.geomspace(1, float(seconds[-1]), 200)
        for label, fitted in (("shape and mean", fit_shape(gaps)), ("moments", fit_moments(gaps))):
            text = f"Weibull, {label}: {fitted.alpha:.2f}, {fitted.beta_s:.0f} s"
            axes.plot(grid, fitted.cdf(grid), label=text, linewidth=1)
    _time_axis(axes, int(gaps.max(initial=1)), "time between submissions")


def _plot_week(axes: Axes, workload: Workload, clock: SiteClock) -> None:
    rates = WeekProfile.of(workload, clock).rates
    axes.step(np.arange(WEEK_HOURS + 1), [*rates, rates[-1]], where="post")
    axes.set_xticks(range(0, WEEK_HOURS, 24), _DAYS, ha="left")
    known = workload.unix_start_time is not None
    axes.set_xlabel(f"hour of the week ({clock.name if known else 'from an unknown one on'})")
    axes.set_ylabel("submissions, over the mean")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)


def _plot_widths(axes: Axes, workload: Workload) -> None:
    work = workload.processors.astype(np.float64) * workload.actual_runtime
    axes.step(*_cdf(workload.processors), where="post", label="jobs")
    axes.step(*_cdf(workload.processors, work), where="post", label="processor-seconds")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda processors, _: f"{processors:g}")
    axes.set_xlabel("processors")
    axes.set_ylabel("share")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def _cdf(
    values: Int64Array, weights: Float64Array | None = None
) -> tuple[Int64Array, Float64Array]:
    """Give each value and the share, of jobs or of weights, that is at most this."""
    found, place = np.unique(values, return_inverse=True)
    share = np.bincount(place, weights=weights)
    return found, np.asarray(np.cumsum(share) / share.sum())


def _time_axis(axes: Axes, longest_s: int, label: str) -> None:
    axes.set_xscale("log")
    ticks = [s for s in TICKS_S if s <= longest_s * 2]
    axes.set_xticks(ticks, [TICKS_S[s] for s in ticks], rotation=30, fontsize=8)
    axes.minorticks_off()
    axes.set_xlabel(label)
    axes.set_ylim(0, 1.02)
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(fontsize=7)
