"""The paper's Gridworld (IDDM, Sec. 5.1 and App. B.2): one maze, as an environment and as a finite MDP.

Four moves, each of which can be made in n functionally equal ways ("choices"). The state shows where the
agent went, not which choice it made; the reward is where the choices differ. Counting:

    action = 4 · choice + move     move: 0 left, 1 right, 2 up, 3 down     choice: 0 (the original) … n−1

so actions 0–3 are the original moves for every n. A move costs 1 when original and 5 otherwise, also when it
bumps into a wall (and stays) and also when it arrives; arriving pays 100 and ends the episode. The paper
draws its maze without printing it; this one is ours, made to its return: the best is 100 − 13 = 87 for any n.
"""

from collections import deque
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import register as register_with_gymnasium
from numpy.typing import NDArray

from iddm.errors import UserError
from iddm.theory.mdp import FiniteMDP

ENV_ID = "iddm/Gridworld-v0"
MAX_STEPS = 200
"""The time limit of the registered environment. A `Gridworld` made by hand has none (Gymnasium's custom)."""

MAZE = """
##########
#S..#....#
#.#...##.#
#...#....#
##.##.#.##
#....#...#
#.##...#.#
#...#...T#
##########
""".strip().splitlines()
"""# wall, S start, T target, . free"""

MOVES = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}
TARGET_REWARD, ORIGINAL_COST, OTHER_COST = 100.0, 1.0, 5.0

CELLS = [(row, col) for row, line in enumerate(MAZE) for col, mark in enumerate(line) if mark != "#"]
"""(row, column) of each state, in reading order: state i is the cell CELLS[i]."""
START, TARGET = (next(i for i, (row, col) in enumerate(CELLS) if MAZE[row][col] == mark) for mark in "ST")


def _next_states() -> NDArray[np.int64]:
    index = {cell: i for i, cell in enumerate(CELLS)}
    return np.array([[index.get((r + dr, c + dc), i) for dr, dc in MOVES.values()] for i, (r, c) in enumerate(CELLS)])


NEXT_STATE = _next_states()
"""[S, 4]: the cell that a move leads to, the same cell where a wall is in the way: the one table of dynamics."""


def distances() -> NDArray[np.int64]:
    """[S]: the number of moves from each cell to the target, by the shortest way."""
    found, queue = {TARGET: 0}, deque([TARGET])
    while queue:
        cell = queue.popleft()
        for neighbour in NEXT_STATE[cell]:  # moves can be undone, so ways to the target are ways from it
            if int(neighbour) not in found:
                found[int(neighbour)] = found[cell] + 1
                queue.append(int(neighbour))
    return np.array([found[i] for i in range(len(CELLS))])


def gridworld_rewards(num_choices: int = 1) -> NDArray[np.float64]:
    """r(s,a) [S, 4n]: minus the cost of the choice, plus 100 for the move that arrives; 0 at the target."""
    moves, choices = _split(num_choices)
    reward = -np.where(choices == 0, ORIGINAL_COST, OTHER_COST) + TARGET_REWARD * (NEXT_STATE[:, moves] == TARGET)
    reward[TARGET] = 0.0
    return reward


def gridworld_mdp(num_choices: int = 1, discount: float = 0.99) -> FiniteMDP:
    """The maze as arrays: T [S, 4n, S], μ at the start, the target as the terminal state. No time limit."""
    moves, _ = _split(num_choices)
    num_states = len(CELLS)
    transitions = np.eye(num_states)[NEXT_STATE[:, moves]]
    transitions[TARGET] = np.eye(num_states)[TARGET]
    return FiniteMDP(transitions, np.eye(num_states)[START], discount, np.arange(num_states) == TARGET)


class Gridworld(gym.Env[int, int]):
    """The maze with `num_choices` ways to make each move; the observation is the index of the agent's cell."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012  # Gymnasium's own form

    def __init__(self, num_choices: int = 1, render_mode: str | None = None) -> None:
        if render_mode not in (None, "rgb_array"):
            raise UserError(f'Gridworld cannot render "{render_mode}": use render_mode="rgb_array" or None.')
        self.num_choices = num_choices
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Discrete(len(CELLS))  # pyright: ignore[reportAttributeAccessIssue]
        self.action_space = gym.spaces.Discrete(len(_split(num_choices)[0]))  # pyright: ignore[reportAttributeAccessIssue]
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

    Cells that the agent has left are dark grey; the paper's figure has such cells too, as free to pass.
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


def _split(num_choices: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The move and the choice of every action."""
    if not isinstance(num_choices, int | np.integer) or num_choices < 1:
        raise UserError(f"num_choices is {num_choices}: expected a whole number of at least 1.")
    choices, moves = np.divmod(np.arange(4 * num_choices), 4)
    return moves, choices
