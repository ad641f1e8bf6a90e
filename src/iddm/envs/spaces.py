"""What an environment takes and gives, reduced to what a policy needs. NumPy only: saved policies use it too."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from iddm.errors import UserError

MAX_ACTION_SIZE = 100_000
"""Choices of a discrete action, or components of a continuous one: the width of a policy's last layer."""


@dataclass(frozen=True)
class ActionSpace:
    """A Box of any limits or a finite set.

    Policies act in units where a bounded Box is [-1, 1]; `to_env` and `from_env` translate. `size` is the number of
    components of a continuous action, or the number of choices of a discrete one.
    """

    size: int
    discrete: bool
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    start: int = 0
    shape: tuple[int, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether the parts fit each other: a file may say anything."""
        if not 1 <= self.size <= MAX_ACTION_SIZE or abs(self.start) > 2**31:
            return False
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        fits = low.shape == high.shape == (self.size,) and math.prod(self.shape) == self.size and min(self.shape, default=1) > 0
        return self.discrete or (fits and bool((low <= high).all()))

    @property
    def bounded(self) -> bool:
        """Whether actions are continuous and every component has limits."""
        return not self.discrete and bool(np.isfinite([self.low, self.high]).all())

    @property
    def centre_and_scale(self) -> tuple[np.ndarray, np.ndarray]:
        """What turns the policy's action into the environment's: centre + scale · action."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        bounded = np.isfinite(low) & np.isfinite(high)
        with np.errstate(invalid="ignore"):
            centre = np.where(bounded, (low + high) / 2, 0.0)
            scale = np.where(bounded & (high > low), (high - low) / 2, 1.0)
        return centre, scale

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The Box's limits in the policy's units: -1 and 1 where it is bounded."""
        centre, scale = self.centre_and_scale
        low, high = np.asarray(self.low), np.asarray(self.high)
        return ((low - centre) / scale).astype(np.float32), ((high - centre) / scale).astype(np.float32)

    def uniform(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Uniformly random actions, in the policy's units; a component without limits is normal, as in Gymnasium."""
        if self.discrete:
            return rng.integers(self.size, size=shape)
        low, high = self.limits
        bounded = np.isfinite(low) & np.isfinite(high)
        even, normal = rng.uniform(-1.0, 1.0, (*shape, self.size)), rng.standard_normal((*shape, self.size))
        return np.where(bounded, even, np.clip(normal, low, high)).astype(np.float32)

    def to_env(self, action: np.ndarray) -> np.ndarray:
        """The policy's action as the environment takes it, clipped to the Box."""
        if self.discrete:
            return np.asarray(action) + self.start
        centre, scale = self.centre_and_scale
        clipped = np.clip(centre + scale * np.asarray(action, np.float64), self.low, self.high)
        return clipped.astype(np.float32).reshape(*np.shape(action)[:-1], *self.shape)

    def from_env(self, action: np.ndarray) -> np.ndarray:
        """A recorded action in the policy's units."""
        if self.discrete:
            return np.asarray(action) - self.start
        centre, scale = self.centre_and_scale
        return ((np.asarray(action, np.float64) - centre) / scale).astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "discrete": self.discrete,
            "low": [repr(x) for x in self.low],
            "high": [repr(x) for x in self.high],
            "start": self.start,
            "shape": list(self.shape),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> "ActionSpace":
        return ActionSpace(
            int(data["size"]),
            bool(data["discrete"]),
            tuple(map(float, data["low"])),
            tuple(map(float, data["high"])),
            int(data["start"]),
            tuple(map(int, data["shape"])),
        )


@dataclass(frozen=True)
class EnvSizes:
    """What demonstrations are compared with."""

    env_id: str
    obs_size: int
    max_episode_steps: int | None = None
    action_size: int | None = None
    """Width of a continuous action; None where actions are discrete or the width does not matter."""
    columns: tuple[str, ...] = ()
    """Names of the columns of an observation, where they are known."""
    step_seconds: float | None = None
    """Simulated seconds per step, where the environment says."""


def action_space_of(space: Any, env: str) -> ActionSpace:
    """Read a Gymnasium action space."""
    from gymnasium import spaces

    size = int(space.n) if isinstance(space, spaces.Discrete) else int(np.prod(space.shape or ()))
    if not 1 <= size <= MAX_ACTION_SIZE:
        raise UserError(f"{env}: actions are {space}; a policy needs between 1 and {MAX_ACTION_SIZE:,} choices or components.")
    if isinstance(space, spaces.Discrete):
        return ActionSpace(size=int(space.n), discrete=True, start=int(space.start))
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
        low, high = space.low.ravel().astype(float), space.high.ravel().astype(float)
        return ActionSpace(low.size, False, tuple(low.tolist()), tuple(high.tolist()), shape=tuple(space.shape))
    raise UserError(f"{env}: actions are {space}, and only a Box of floats or a Discrete space is supported.")
