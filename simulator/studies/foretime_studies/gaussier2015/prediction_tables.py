"""Table 8 of Gaussier 2015, and figures 4 and 5 as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array

from foretime_studies.frame.tables import Row, StudyTable
from foretime_studies.gaussier2015 import paper
from foretime_studies.gaussier2015.predictions import (
    COMPARED,
    ERRORS_S,
    PREDICTED_S,
    Predicted,
)

DRAWN_LOG = "Curie"
"""Whose predictions figures 4 and 5 show."""
_TOLD_ERRORS_H = (-12, -6, -3, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 3, 6, 12)
_TOLD_PREDICTED_S = (60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400)


def prediction_tables(predicted: Sequence[Predicted]) -> list[StudyTable]:
    """Give all of them."""
    shown = drawn(predicted)
    hours = {int(h * 3_600): f"{h:+g} h" if h else "0" for h in _TOLD_ERRORS_H}
    times = {s: f"{s / 60:g} min" if s < 3_600 else f"{s / 3_600:g} h" for s in _TOLD_PREDICTED_S}
    errors = {name: one.errors for name, one in shown.items()}
    values = {name: one.predictions for name, one in shown.items()}
    log = next(iter(shown.values())).log
    of = f"share of {log}'s jobs"
    figure_4 = _distributions(hours, ERRORS_S, errors)
    figure_5 = _distributions(times, PREDICTED_S, values)
    return [
        _table_8(predicted),
        StudyTable.of("figure4", f"Figure 4. Prediction less runtime: {of}", figure_4),
        StudyTable.of("figure5", f"Figure 5. Predicted values: {of}", figure_5),
    ]


def drawn(predicted: Sequence[Predicted]) -> dict[str, Predicted]:
    """Give the predictions on Curie, or else on the last log, by their names."""
    names = [one.log for one in predicted]
    log = DRAWN_LOG if DRAWN_LOG in names else names[-1]
    shown = {one.prediction: one for one in predicted if one.log == log}
    return {name: shown[name] for name in COMPARED}


def _table_8(predicted: Sequence[Predicted]) -> StudyTable:
    """Errors of predictions on each log; the paper does not say of which log its table is."""
    ours = [
        (p.log, p.prediction, p.avebsld, p.mae_s, p.mean_e_loss, p.under, p.ratio)
        for p in predicted
    ]
    printed = [
        ("paper", name, None, paper.MAE_S[key], paper.MEAN_E_LOSS[key], None, None)
        for name, key in {"AVE_2": "last-two", "E-loss": "e-loss"}.items()
    ]
    rows: list[Row] = [
        [
            ("log", log),
            ("prediction", prediction),
            ("AVEbsld", avebsld, ",.1f"),
            ("MAE, s", mae_s, ",.0f"),
            ("mean E-loss", f"{mean_e_loss:.3g}"),
            ("under-predicted", under, ".1%"),
            ("mean min/max ratio", ratio, ".2f"),
        ]
        for log, prediction, avebsld, mae_s, mean_e_loss, under, ratio in (*ours, *printed)
    ]
    note = "In runs with incremental correction and EASY-SJBF, so AVE_2's are of EASY++."
    return StudyTable.of("table8", "Table 8. Errors of predictions", rows, note)


def _distributions(
    told: dict[int, str], given: Int64Array, shares: dict[str, Float64Array]
) -> Iterable[Row]:
    """Give the shares at some places, by how these are told."""
    for place, words in told.items():
        at = int(np.searchsorted(given, place, side="right")) - 1
        yield [
            ("at most", words),
            *((name, float(values[at]), ".1%") for name, values in shares.items()),
        ]
