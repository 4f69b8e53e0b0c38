"""Names for the types of arrays."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Float64Array: TypeAlias = npt.NDArray[np.float64]
Int64Array: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Int32Array: TypeAlias = npt.NDArray[np.int32]
Float32Array: TypeAlias = npt.NDArray[np.float32]
Int8Array: TypeAlias = npt.NDArray[np.int8]
IntpArray: TypeAlias = npt.NDArray[np.intp]
StringArray: TypeAlias = npt.NDArray[np.str_]
MaskedInt64Array: TypeAlias = np.ma.MaskedArray[tuple[int], np.dtype[np.int64]]
MaskedFloat64Array: TypeAlias = np.ma.MaskedArray[tuple[int], np.dtype[np.float64]]
Selection: TypeAlias = BoolArray | Int64Array
"""Which rows: whether each, or their numbers."""
