"""Episodes that start in a state of a demonstration: DeepMimic's reference state initialisation (Peng et al. 2018)."""

from typing import Any

import gymnasium as gym
import numpy as np

from iddm.errors import UserError


class ReferenceStarts(gym.Wrapper):
    """Puts the simulator into a row of a recorded episode, drawn uniformly, and says which in `info["start"]`.

    Works in Gymnasium's MuJoCo environments whose observations begin with positions and velocities. Leading positions that are
    not observed (where the robot is on its track) stay as the reset made them.
    """

    def __init__(self, env: gym.Env, rows: np.ndarray, env_id: str) -> None:
        super().__init__(env)
        self._rows = rows
        self._inner: Any = env.unwrapped
        obs, _ = env.reset(seed=0)
        self._unseen = self._count_unseen(obs, env_id)

    def _count_unseen(self, obs: np.ndarray, env_id: str) -> int:
        """How many leading positions an observation leaves out, read off a fresh state."""
        if hasattr(self._inner, "set_state") and hasattr(self._inner, "data"):
            qpos, qvel = self._inner.data.qpos, self._inner.data.qvel
            for unseen in (0, 1, 2):
                seen = np.concatenate([qpos[unseen:], qvel])
                if len(obs) >= len(seen) and np.allclose(obs[: len(seen)], seen, atol=1e-6):
                    return unseen
        raise UserError(f"{env_id}: episodes cannot start from demonstrated states, because the simulator cannot be set to them.")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        _, info = self.env.reset(seed=seed, options=options)
        time = int(self._inner.np_random.integers(len(self._rows) - 1))
        qpos, qvel = self._inner.data.qpos.copy(), self._inner.data.qvel.copy()
        num_seen = len(qpos) - self._unseen
        qpos[self._unseen :] = self._rows[time, :num_seen]
        qvel[:] = self._rows[time, num_seen : num_seen + len(qvel)]
        self._inner.set_state(qpos, qvel)
        return self._inner._get_obs(), info | {"start": time}
