"""Curves of waits: each is seen, even where several coincide."""

from __future__ import annotations

import io

import numpy as np
import pytest
from foretime_sim.scores.plots import _plot_wait_curves
from foretime_sim.scores.wait_curve import WAIT_CURVE_SHARES
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
    drawn = io.BytesIO()
    figure.savefig(drawn, format="rgba", dpi=100)  # 8 by 5 inches
    pixels = np.frombuffer(drawn.getvalue(), dtype=np.uint8).reshape(500, 800, 4)[:, :, :3]
    pixels = pixels.astype(np.int64)
    for line in axes.get_lines():
        color = np.round(255 * np.array(to_rgb(line.get_color())))
        seen = (np.abs(pixels - color).max(axis=2) <= 12).sum()
        assert seen > 25, line.get_label()
