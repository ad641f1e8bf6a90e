"""A point mass in the plane that has to come to a place and stay there: a small task of resting at a target."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import register as register_with_gymnasium

ENV_ID = "iddm/PointMass-v0"
MAX_STEPS = 100
START, WALL = 1.5, 2.0
"""Half the width of the square of starts, and of the room."""
DRAG, FORCE = 0.9, 0.02
TOP_SPEED = FORCE / (1 - DRAG)
"""Along each axis, where the force never changes."""
LIMIT = np.array([WALL, WALL, TOP_SPEED, TOP_SPEED], np.float32)


class PointMass(gym.Env[np.ndarray, np.ndarray]):
    """A force pushes a mass, which slides, in a room whose target is the origin. Observations are p and v, actions a ∈ [−1, 1]².

        v' = 0.9 v + 0.02 a,   p' = p + v'        a wall (|p| = 2 along an axis) stops the motion along its axis
        r  = −‖p'‖ − ‖v'‖                         0 at rest on the target, negative everywhere else

    It starts at rest, uniformly in [−1.5, 1.5]². No state ends an episode; as registered, it has 100 steps.
    """

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-LIMIT, LIMIT, dtype=np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self._place = self._velocity = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._place, self._velocity = self.np_random.uniform(-START, START, 2), np.zeros(2)
        return self._observation(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        velocity = DRAG * self._velocity + FORCE * np.clip(action, -1.0, 1.0)
        reached = self._place + velocity
        self._place = np.clip(reached, -WALL, WALL)
        self._velocity = np.where(np.abs(reached) > WALL, 0.0, velocity)
        reward = -np.linalg.norm(self._place) - np.linalg.norm(self._velocity)
        return self._observation(), float(reward), False, False, {}

    def _observation(self) -> np.ndarray:
        state = np.concatenate([self._place, self._velocity]).astype(np.float32)
        return np.clip(state, -LIMIT, LIMIT)  # rounding may pass a limit


def register() -> None:
    """Make `gymnasium.make("iddm/PointMass-v0")` work; a second call does nothing."""
    if ENV_ID not in gym.registry:
        register_with_gymnasium(ENV_ID, entry_point="iddm.envs.point_mass:PointMass", max_episode_steps=MAX_STEPS)
