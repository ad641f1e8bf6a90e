"""An environment of your own, and demonstrations of it that show only positions.

python examples/own_environment.py demos.csv        # writes the demonstrations
iddm inspect demos.csv --import examples/own_environment.py --env Cart-v0 --columns place
iddm train Cart-v0 --import examples/own_environment.py --demos demos.csv --columns place --steps 100000 --out runs/cart
iddm eval runs/cart --import examples/own_environment.py
"""

import sys

import gymnasium as gym
import numpy as np


class Cart(gym.Env):
    """Drive a cart along a line, with friction. The observation is a dictionary; its columns are named place and speed."""

    observation_space = gym.spaces.Dict(
        {"place": gym.spaces.Box(-np.inf, np.inf, (1,), np.float32), "speed": gym.spaces.Box(-np.inf, np.inf, (1,), np.float32)}
    )
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.speed = self.np_random.uniform(-0.1, 0.1), 0.0
        return self._observation(), {}

    def step(self, action):
        self.speed = 0.9 * self.speed + 0.1 * float(np.clip(action[0], -1, 1))
        self.place += 0.1 * self.speed
        return self._observation(), self.speed, False, False, {}

    def _observation(self):
        return {"place": np.float32([self.place]), "speed": np.float32([self.speed])}


gym.register("Cart-v0", entry_point=Cart, max_episode_steps=100)


def record(path: str, episodes: int = 10) -> None:
    """What a camera would see of a steady driver: where the cart is, and nothing else."""
    env = gym.make("Cart-v0")
    with open(path, "w") as file:
        file.write("episode,place\n")
        for episode in range(episodes):
            obs, _ = env.reset(seed=episode)
            done = False
            while not done:
                file.write(f"{episode},{obs['place'][0]}\n")
                obs, _, terminated, truncated, _ = env.step(np.float32([0.8]))
                done = terminated or truncated
            file.write(f"{episode},{obs['place'][0]}\n")


if __name__ == "__main__":
    record(sys.argv[1])
