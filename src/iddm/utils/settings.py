"""Checks of settings: a dataclass of settings calls `check` in its `__post_init__`, wherever the values came from."""

import math
from dataclasses import dataclass
from typing import Any

from iddm.errors import UserError


@dataclass(frozen=True)
class Range:
    """The numbers that a setting may have: whole ones or any, from `low` to `high`, both included unless `above` or `below`."""

    low: float
    high: float
    whole: bool = False
    above: bool = False
    """The lowest number itself is not allowed."""
    below: bool = False
    """The highest number itself is not allowed."""

    def holds(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return False
        if self.whole and value != int(value):
            return False
        above = value > self.low if self.above else value >= self.low
        return above and (value < self.high if self.below else value <= self.high)

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        low = f"above {self.low:,g}" if self.above else f"from {self.low:,g}"
        return f"{kind} {low} {'to below' if self.below else 'to'} {self.high:,.12g}"


COUNT = Range(1, 1_000_000_000, whole=True)
"""Steps, epochs, rounds."""
BATCH = Range(1, 1_000_000, whole=True)
"""Rows in one gradient step, which must fit into memory."""
ROLLOUT = Range(1, 10_000_000, whole=True)
"""Rows of a rollout, which must fit into memory."""
WIDTH = Range(1, 16_384, whole=True)
"""Units of a hidden layer."""
RATE = Range(0, 3.4e38, above=True)
"""A learning rate."""
WEIGHT = Range(0, 1e6)
"""The weight of a term or a loss."""
SHARE = Range(0, 1)
DISCOUNT = Range(0, 1, below=True)


def check(settings: Any, owner: str = "", **ranges: Range) -> None:
    """Raise one sentence for the first setting that is out of its range; None and the parts of a tuple are looked into."""
    for name, allowed in ranges.items():
        value = getattr(settings, name)
        if value is None:
            continue
        if not all(allowed.holds(part) for part in (value if isinstance(value, tuple) else (value,))):
            label = f"{owner}.{name}" if owner else name
            each = "each must be" if isinstance(value, tuple) else "it must be"
            raise UserError(f"Setting {label} is {value}: {each} {allowed}.")


def check_rollout(num_envs: int, rollout_length: int) -> None:
    """Raise where a rollout would have too many rows, though each number alone is allowed."""
    if num_envs * rollout_length > ROLLOUT.high:
        raise UserError(f"A rollout of {num_envs} × {rollout_length} steps does not fit into memory: lower one of them.")
