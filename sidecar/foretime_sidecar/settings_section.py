"""What all sections of the settings have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Names = list[Annotated[str, Field(min_length=1)]]


class Section(BaseModel):
    """A section: no setting that is not known, nothing of another type, nothing changed later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
