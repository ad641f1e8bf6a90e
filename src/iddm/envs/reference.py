"""A simulator in a recorded state, and episodes that start there: DeepMimic's reference states (Peng et al. 2018)."""

from typing import Any

import gymnasium as gym
import numpy as np

from iddm.errors import UserError


class Simulator:
    """Puts a Gymnasium MuJoCo environment, whose observations begin with positions and velocities, into a recorded state.

    Leading positions that are not observed (where the robot is on its track) stay as they are.
    """

    def __init__(self, env: gym.Env, env_id: str) -> None:
        self._inner: Any = env.unwrapped
        obs, _ = env.reset(seed=0)
        self.unseen = self._count_unseen(obs, env_id)

    def _count_unseen(self, obs: np.ndarray, env_id: str) -> int:
        """How many leading positions an observation leaves out, read off a fresh state."""
        if hasattr(self._inner, "set_state") and hasattr(self._inner, "data"):
            qpos, qvel = self._inner.data.qpos, self._inner.data.qvel
            for unseen in (0, 1, 2):
                seen = np.concatenate([qpos[unseen:], qvel])
                if len(obs) >= len(seen) and np.allclose(obs[: len(seen)], seen, atol=1e-6):
                    return unseen
        raise UserError(f"{env_id}: episodes cannot start from demonstrated states, because the simulator cannot be set to them.")

    def put(self, row: np.ndarray, seconds: float = 0.0) -> None:
        """Into the state of this row; positions that are not observed first move with their velocity for so many seconds."""
        qpos, qvel = self._inner.data.qpos.copy(), self._inner.data.qvel.copy()
        num_seen = len(qpos) - self.unseen
        qpos[: self.unseen] += seconds * qvel[: self.unseen]
        qpos[self.unseen :] = row[:num_seen]
        qvel[:] = row[num_seen : num_seen + len(qvel)]
        self._inner.set_state(qpos, qvel)


class ReferenceStarts(gym.Wrapper):
    """Starts episodes in a row of a recorded episode, drawn uniformly, and says which in `info["start"]`."""

    def __init__(self, env: gym.Env, rows: np.ndarray, env_id: str) -> None:
        super().__init__(env)
        self._rows = rows
        self._inner: Any = env.unwrapped
        self._simulator = Simulator(env, env_id)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        _, info = self.env.reset(seed=seed, options=options)
        time = int(self._inner.np_random.integers(len(self._rows) - 1))
        self._simulator.put(self._rows[time])
        return self._inner._get_obs(), info | {"start": time}
