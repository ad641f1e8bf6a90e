"""An environment whose episodes end at a goal, made by a function of this file; run these in the file's own directory.

python reach.py demos.csv                        # writes the demonstrations
iddm inspect demos.csv --env reach:make
iddm train reach:make --demos demos.csv --steps 2e4 --out runs/reach
iddm eval runs/reach --env reach:make            # as `train` printed it: no file can name code
"""

import sys

import gymnasium as gym
import numpy as np


class Reach(gym.Env):
    """Steer a puck, which slides, to the origin. The episode ends there; each step costs 1."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        angle = self.np_random.uniform(0, 2 * np.pi)
        self.place, self.speed = np.array([np.cos(angle), np.sin(angle)]), np.zeros(2)
        return self._observation(), {}

    def step(self, action):
        self.speed = 0.8 * self.speed + 0.02 * np.clip(action, -1, 1)
        self.place = self.place + self.speed
        return self._observation(), -1.0, bool(np.linalg.norm(self.place) < 0.1), False, {}

    def _observation(self):
        return np.concatenate([self.place, self.speed]).astype(np.float32)


def make() -> gym.Env:
    """What `reach:make` names."""
    return gym.wrappers.TimeLimit(Reach(), 100)


def record(path: str, episodes: int = 20) -> None:
    """The shortest way, as somebody would show it."""
    env = make()
    with open(path, "w") as file:
        file.write("trial,x,y,x_speed,y_speed\n")
        for episode in range(episodes):
            obs, _ = env.reset(seed=episode)
            done = False
            while True:
                file.write(f"T{episode:02},{','.join(map(str, obs))}\n")
                if done:
                    break
                obs, _, terminated, truncated, _ = env.step(-obs[:2] / np.linalg.norm(obs[:2]))
                done = terminated or truncated


if __name__ == "__main__":
    record(sys.argv[1])
