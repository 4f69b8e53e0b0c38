"""Options of what `foretime replay` and `foretime simulate` write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.cli.frame.option_groups import OptionGroup
from foretime_sidecar.cli.frame.output_files import check_outputs
from foretime_sidecar.cli.options.json_option import JsonTablesOption


@dataclass(frozen=True)
class OutputOptions(OptionGroup):
    """What is printed, and which files are written."""

    panel: ClassVar[str] = "Output"

    as_json: JsonTablesOption = False
    csv_out: Annotated[Path | None, typer.Option("--csv", help="Write every metric as CSV.")] = None
    swf_out: Annotated[
        Path | None,
        typer.Option(
            help="Write the schedule as SWF: of one policy and one run; in a replay the one with "
            "Foretime."
        ),
    ] = None
    plot: Annotated[Path | None, typer.Option(help="Draw the waits (PNG or SVG).")] = None

    def verify(self, inputs: Mapping[str, Path | None], schedules: int, one: str) -> None:
        """Refuse at once what can't be written.

        Parameters
        ----------
        inputs
            Files read, by what messages call them.
        schedules
            How many there will be.
        one
            What to give, for there to be one.
        """
        outputs = {"--csv": self.csv_out, "--swf-out": self.swf_out, "--plot": self.plot}
        check_outputs(outputs, inputs)
        if self.swf_out is not None and schedules != 1:
            raise InputError(f"--swf-out writes one schedule, not {schedules}: give {one}")
