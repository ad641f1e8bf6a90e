"""Columns in other units than the environment's: degrees for radians, millimetres for metres."""

import math
import re
from dataclasses import replace

import numpy as np
from jaxtyping import Float64

from iddm.demos.align import parse_columns
from iddm.demos.types import Demos
from iddm.errors import UserError

UNITS = {"rad": 1.0, "deg": math.pi / 180, "rpm": math.pi / 30, "m": 1.0, "cm": 0.01, "mm": 0.001}
"""What a unit is in radians or metres; `/s` may follow."""
SAYS_DEGREES = re.compile(r"(.*[\W_])?deg(rees?)?([\W_]*s)?[)\]]?", re.IGNORECASE)


def scale_columns(demos: Demos, scale: str | None, whose: str) -> Demos:
    """The demonstrations with the columns that `scale` names in the environment's units: radians and metres.

    Columns whose names say degrees and that stay as they are get a warning.
    """
    factors = np.ones(demos.obs_size) if scale is None else parse_scale(scale, demos.obs_size, demos.columns, whose)
    metadata = {key: value for key, value in demos.metadata.items() if key != "warning_units"}
    if degrees := [
        name for name, factor in zip(demos.columns, factors, strict=False) if factor == 1 and SAYS_DEGREES.fullmatch(name)
    ]:
        metadata["warning_units"] = (
            f"Degrees, by their names: {', '.join(degrees)}; most environments have radians: --scale '{','.join(degrees)}=deg'."
        )
    rows = demos.observations if scale is None else tuple((rows * factors).astype(np.float32) for rows in demos.observations)
    return replace(demos, observations=rows, metadata=metadata)


def parse_scale(text: str, size: int, names: tuple[str, ...], whose: str) -> Float64[np.ndarray, " obs"]:
    """Each column's factor: "2:8=deg" and "rootz=mm,rooty,bthigh=deg", where a unit counts for the columns before it."""
    factors, waiting = np.ones(size), []
    for part in text.split(","):
        column, given, unit = part.rpartition("=")
        waiting.append(column if given else part)
        if given:
            factors[list(parse_columns(",".join(waiting), size, names, whose))] *= _factor(unit.strip(), text)
            waiting = []
    if waiting:
        raise UserError(f"--scale {text}: say the unit of {','.join(waiting)} after an =, as in {','.join(waiting)}=deg.")
    return factors


def _factor(unit: str, text: str) -> float:
    known = UNITS.get(unit.removesuffix("/s"))
    if known is not None:
        return known
    try:
        factor = float(unit)
    except ValueError:
        factor = math.nan
    if not math.isfinite(factor) or factor == 0:
        raise UserError(f"--scale {text}: '{unit}' is neither a unit ({', '.join(UNITS)}) nor a number to multiply with.")
    return factor
