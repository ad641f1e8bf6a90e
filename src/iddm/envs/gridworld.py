"""The paper's Gridworld as a Gymnasium environment; its maze and counting are in `iddm.theory.maze`."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import register as register_with_gymnasium
from numpy.typing import NDArray

from iddm.errors import UserError
from iddm.theory.maze import CELLS, MAX_STEPS, MAZE, NEXT_STATE, START, TARGET, gridworld_rewards, moves_and_choices

ENV_ID = "iddm/Gridworld-v0"


class Gridworld(gym.Env[int, int]):
    """The maze with `num_choices` ways to make each move; the observation is the index of the agent's cell."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012  # Gymnasium's own form

    def __init__(self, num_choices: int = 1, render_mode: str | None = None) -> None:
        if render_mode not in (None, "rgb_array"):
            raise UserError(f'Gridworld cannot render "{render_mode}": use render_mode="rgb_array" or None.')
        self.num_choices = num_choices
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Discrete(len(CELLS))  # pyright: ignore[reportAttributeAccessIssue]
        self.action_space = gym.spaces.Discrete(len(moves_and_choices(num_choices)[0]))  # pyright: ignore[reportAttributeAccessIssue]
        self._rewards = gridworld_rewards(num_choices)
        self._visited = [START]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._visited = [START]
        return START, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise UserError(f"Gridworld has no action {action}: expected 0 to {4 * self.num_choices - 1}.")
        cell = self._visited[-1]
        if cell == TARGET:
            raise UserError("Gridworld's episode is over, the target is reached: call reset() before step().")
        s_next = int(NEXT_STATE[cell, action % 4])
        self._visited.append(s_next)
        return s_next, float(self._rewards[cell, action]), s_next == TARGET, False, {}

    def render(self) -> NDArray[np.uint8] | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.render_mode is None:
            gym.logger.warn('Gridworld was made without a render mode: use render_mode="rgb_array".')
            return None
        return draw_maze(self._visited)


COLOURS = {
    "wall": (150, 150, 150),
    "free": (0, 0, 0),
    "visited": (64, 64, 64),
    "agent": (220, 30, 30),
    "target": (0, 170, 0),
}


def draw_maze(visited: list[int] | None = None, cell_pixels: int = 32) -> NDArray[np.uint8]:
    """[height, width, 3]: walls grey, cells black, the target green, the agent red (at the start by default).

    Cells that the agent has left are dark grey, as in the paper's figure, where they are free cells.
    """
    visited = visited or [START]
    image = np.full((len(MAZE), len(MAZE[0]), 3), COLOURS["wall"], np.uint8)
    for i, cell in enumerate(CELLS):
        image[cell] = COLOURS["visited" if i in visited else "free"]
    image[CELLS[TARGET]] = COLOURS["target"]
    image[CELLS[visited[-1]]] = COLOURS["agent"]
    image = image.repeat(cell_pixels, axis=0).repeat(cell_pixels, axis=1)
    lines = np.arange(cell_pixels, max(image.shape[:2]), cell_pixels)  # thin lines, so that moves can be counted
    image[lines[lines < image.shape[0]]] = 90
    image[:, lines[lines < image.shape[1]]] = 90
    return image


def register() -> None:
    """Make `gymnasium.make("iddm/Gridworld-v0", num_choices=n)` work; a second call does nothing."""
    if ENV_ID not in gym.registry:
        register_with_gymnasium(ENV_ID, entry_point="iddm.envs.gridworld:Gridworld", max_episode_steps=MAX_STEPS)
