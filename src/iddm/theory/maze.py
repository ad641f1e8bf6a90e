"""The paper's Gridworld (IDDM, Sec. 5.1 and App. B.2) as a finite MDP: the maze, its dynamics and rewards, exactly.

Four moves, each of which can be made in n functionally equal ways ("choices"). The state shows where the
agent went, not which choice it made; the reward is where the choices differ. Counting:

    action = 4 · choice + move     move: 0 left, 1 right, 2 up, 3 down     choice: 0 (the original) … n−1

so actions 0–3 are the original moves for every n. A move costs 1 when original and 5 otherwise, also when it
bumps into a wall (and stays) and also when it arrives; arriving gives 100 and ends the episode. The paper
draws its maze without printing it; this one is ours, made to its return: the best is 100 − 13 = 87 for any n.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from iddm.errors import UserError
from iddm.theory.mdp import FiniteMDP

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
    moves, choices = moves_and_choices(num_choices)
    reward = -np.where(choices == 0, ORIGINAL_COST, OTHER_COST) + TARGET_REWARD * (NEXT_STATE[:, moves] == TARGET)
    reward[TARGET] = 0.0
    return reward


def gridworld_mdp(num_choices: int = 1, discount: float = 0.99) -> FiniteMDP:
    """The maze as arrays: T [S, 4n, S], μ at the start, the target as the terminal state. No time limit."""
    moves, _ = moves_and_choices(num_choices)
    num_states = len(CELLS)
    transitions = np.eye(num_states)[NEXT_STATE[:, moves]]
    transitions[TARGET] = np.eye(num_states)[TARGET]
    return FiniteMDP(transitions, np.eye(num_states)[START], discount, np.arange(num_states) == TARGET)


def moves_and_choices(num_choices: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The move and the choice of every action."""
    if not isinstance(num_choices, int | np.integer) or num_choices < 1:
        raise UserError(f"num_choices is {num_choices}: expected a whole number of at least 1.")
    choices, moves = np.divmod(np.arange(4 * num_choices), 4)
    return moves, choices
