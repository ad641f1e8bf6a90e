"""A theorem, evaluated: both of its sides as numbers, and whether they are as the theorem says."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Claim:
    """`left` `relation` `right`, as the paper states it at `source`."""

    name: str
    source: str
    formula: str
    left: float
    right: float
    relation: Literal["=", "≤"] = "="
    premise: bool = True
    """Whether the theorem's condition is met (injective dynamics, say). Without it the claim may fail."""
    terms: Mapping[str, float] = field(default_factory=dict)
    """Quantities inside the claim that deserve to be seen."""

    @property
    def error(self) -> float:
        """By how much it is missed: |left − right|, or left − right where positive. ∞ = ∞ is met; NaN: undefined."""
        if self.left == self.right:
            return 0.0  # both infinite
        gap = self.left - self.right
        return abs(gap) if self.relation == "=" else max(gap, 0.0) if not math.isnan(gap) else gap

    @property
    def holds(self) -> bool:
        scale = max([1.0, *(abs(side) for side in (self.left, self.right) if math.isfinite(side))])
        return self.error <= TOLERANCE * scale

    @property
    def verdict(self) -> Literal["holds", "fails", "undefined", "premise not met"]:
        if self.holds:
            return "holds"
        if math.isnan(self.error):
            return "undefined"
        return "fails" if self.premise else "premise not met"


def difference(left: float, right: float) -> float:
    """left − right, with ∞ − ∞ = NaN: undefined, and without a warning."""
    return math.nan if math.isinf(left) and math.isinf(right) else left - right
