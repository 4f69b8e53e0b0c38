"""Table 8 of Gaussier 2015, and figures 4 and 5 as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array

from foretime_studies.frame.tables import Cell, Column, StudyTable
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
_SHARE = ".1%"


def prediction_tables(predicted: Sequence[Predicted]) -> list[StudyTable]:
    """Give all of them."""
    return [table_8(predicted), figure_4(predicted), figure_5(predicted)]


def drawn(predicted: Sequence[Predicted]) -> dict[str, Predicted]:
    """Give the predictions on Curie, or else on the last log, by their names."""
    names = [one.log for one in predicted]
    log = DRAWN_LOG if DRAWN_LOG in names else names[-1]
    shown = {one.prediction: one for one in predicted if one.log == log}
    return {name: shown[name] for name in COMPARED}


def table_8(predicted: Sequence[Predicted]) -> StudyTable:
    """Errors of predictions on each log; the paper does not say of which log its table is."""
    printed = {"AVE_2": "last-two", "E-loss": "e-loss"}
    rows: list[tuple[Cell, ...]] = [
        (
            one.log,
            one.prediction,
            one.avebsld,
            one.mae_s,
            f"{one.mean_e_loss:.3g}",
            one.under,
            one.ratio,
        )
        for one in predicted
    ]
    rows += [
        ("paper", name, None, paper.MAE_S[key], f"{paper.MEAN_E_LOSS[key]:.3g}", None, None)
        for name, key in printed.items()
    ]
    columns = (
        Column("log"),
        Column("prediction"),
        Column("AVEbsld", ",.1f"),
        Column("MAE, s", ",.0f"),
        Column("mean E-loss"),
        Column("under-predicted", _SHARE),
        Column("mean min/max ratio", ".2f"),
    )
    return StudyTable(
        "table8",
        "Table 8. Errors of predictions",
        columns,
        tuple(rows),
        "In runs with incremental correction and EASY-SJBF, so AVE_2's are of EASY++.",
    )


def figure_4(predicted: Sequence[Predicted]) -> StudyTable:
    """How prediction errors are distributed."""
    places = (np.array(_TOLD_ERRORS_H) * 3_600).astype(np.int64)
    rows: list[tuple[Cell, ...]] = [
        (f"{hours:+g} h" if hours else "0", *values)
        for hours, values in zip(
            _TOLD_ERRORS_H, _told(predicted, "errors", ERRORS_S, places), strict=True
        )
    ]
    return _ecdf("figure4", "Figure 4. Prediction less runtime", "at most", predicted, rows)


def figure_5(predicted: Sequence[Predicted]) -> StudyTable:
    """How predictions are distributed."""
    places = np.array(_TOLD_PREDICTED_S)
    rows: list[tuple[Cell, ...]] = [
        (f"{place / 60:g} min" if place < 3_600 else f"{place / 3_600:g} h", *values)
        for place, values in zip(
            _TOLD_PREDICTED_S, _told(predicted, "predictions", PREDICTED_S, places), strict=True
        )
    ]
    return _ecdf("figure5", "Figure 5. Predicted values", "at most", predicted, rows)


def _told(
    predicted: Sequence[Predicted], what: str, given: Int64Array, places: Int64Array
) -> list[list[float]]:
    """Give shares at some places, one row a place, one column a prediction."""
    at = np.searchsorted(given, places, side="right") - 1
    columns: list[Float64Array] = [getattr(one, what)[at] for one in drawn(predicted).values()]
    return [list(map(float, row)) for row in np.array(columns).T]


def _ecdf(
    key: str,
    title: str,
    heading: str,
    predicted: Sequence[Predicted],
    rows: Sequence[tuple[Cell, ...]],
) -> StudyTable:
    log = next(iter(drawn(predicted).values())).log
    columns = (Column(heading), *(Column(name, _SHARE) for name in COMPARED))
    return StudyTable(key, f"{title}: share of {log}'s jobs", columns, tuple(rows))
