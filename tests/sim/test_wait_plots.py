"""Curves of waits: each is seen, even where several coincide."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sim.plots import _plot_wait_curves
from foretime_sim.wait_curve import WAIT_CURVE_SHARES
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb


@pytest.mark.parametrize("curves", [1, 2, 3, 8])
def test_curves_that_coincide_are_all_seen(curves: int) -> None:
    wait = 10_000.0 * WAIT_CURVE_SHARES
    figure = _plot_wait_curves({f"policy {n}": [wait] for n in range(curves)}, 10_000, "same")
    axes = figure.axes[0]
    legend = axes.get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == curves
    legend.remove()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:, :, :3].astype(np.int64)
    for line in axes.get_lines():
        color = np.round(255 * np.array(to_rgb(line.get_color())))
        seen = (np.abs(pixels - color).max(axis=2) <= 12).sum()
        print(line.get_label(), seen)
        assert seen > 50, line.get_label()
