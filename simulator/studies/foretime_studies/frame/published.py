"""The numbers that a paper prints, as CSV in its study's folder."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd


def published(study: str, name: str) -> pd.DataFrame:
    """Read a study's table NAME.csv.

    Parameters
    ----------
    study
        The package, such as ``foretime_studies.talby1999`` (``__package__`` there).
    name
        Of the file, without its ending. Lines from ``#`` on are remarks.
    """
    with (files(study) / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#", skipinitialspace=True)
