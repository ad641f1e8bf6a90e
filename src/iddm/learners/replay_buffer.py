"""The agent's past transitions: rows are only ever added at the end, so a checkpoint appends what is new."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iddm.envs.rollout import Rollout


class Columns(NamedTuple):
    """Where the parts of a transition lie in a row of the buffer."""

    obs: slice
    next_obs: slice
    action: slice
    env_reward: int
    terminated: int
    step: int
    past: slice
    width: int

    @staticmethod
    def of(obs_size: int, action_size: int, num_past: int) -> "Columns":
        """`num_past`: states that a discriminator compares before the successor, where that is not the one before it."""
        a = 2 * obs_size
        end = a + action_size
        past = slice(end + 3, end + 3 + num_past * obs_size)
        return Columns(slice(0, obs_size), slice(obs_size, a), slice(a, end), end, end + 1, end + 2, past, past.stop)


class Statistics(NamedTuple):
    """What is known of all rows ever added; a checkpoint keeps it to the bit."""

    num_rows: np.ndarray
    mean: Float[np.ndarray, " obs"]
    square: Float[np.ndarray, " obs"]
    """Sum of squared deviations from the mean."""
    num_terminated: np.ndarray
    terminated_steps: np.ndarray
    """Sum of the lengths of the episodes that terminated."""

    @staticmethod
    def start(obs_size: int) -> "Statistics":
        return Statistics(np.zeros(()), np.zeros(obs_size), np.zeros(obs_size), np.zeros(()), np.zeros(()))

    def with_rows(self, obs: np.ndarray, terminated: np.ndarray, step: np.ndarray) -> "Statistics":
        """Merge new rows (Chan et al.)."""
        obs = obs.astype(np.float64)
        mean = obs.mean(axis=0)
        total = self.num_rows + len(obs)
        gap = mean - self.mean
        return Statistics(
            num_rows=total,
            mean=self.mean + gap * len(obs) / total,
            square=self.square + ((obs - mean) ** 2).sum(axis=0) + gap**2 * self.num_rows * len(obs) / total,
            num_terminated=self.num_terminated + terminated.sum(),
            terminated_steps=self.terminated_steps + ((step + 1) * terminated).sum(),
        )


class ReplayBuffer:
    """The last `capacity` transitions in memory, in one array of rows; each row has a number that never changes."""

    def __init__(self, obs_size: int, action_size: int, num_past: int, capacity: int) -> None:
        self.columns = Columns.of(obs_size, action_size, num_past)
        self.capacity = capacity
        self.statistics = Statistics.start(obs_size)
        self.total = 0
        """Rows ever added."""
        self._rows = np.zeros((min(capacity, 4096), self.columns.width), np.float32)
        self._unsaved: list[np.ndarray] = []

    @property
    def size(self) -> int:
        return min(self.total, self.capacity)

    def add(self, rollout: Rollout) -> None:
        """Take in a rollout's valid rows: the row that an autoreset makes is no transition."""
        columns, valid = self.columns, rollout.valid
        rows = np.zeros((int(valid.sum()), columns.width), np.float32)
        rows[:, columns.obs], rows[:, columns.next_obs] = rollout.obs[valid], rollout.next_obs[valid]
        rows[:, columns.action] = rollout.action[valid]
        rows[:, columns.env_reward], rows[:, columns.terminated] = rollout.env_reward[valid], rollout.terminated[valid]
        rows[:, columns.step] = rollout.step[valid]
        if rollout.past is not None:
            rows[:, columns.past] = rollout.past[valid].reshape(len(rows), -1)
        if len(rows):
            self.append(rows)
            self._unsaved.append(rows)
            self.statistics = self.statistics.with_rows(
                rows[:, columns.obs], rows[:, columns.terminated].astype(np.float64), rows[:, columns.step].astype(np.float64)
            )

    def append(self, rows: Float[np.ndarray, "rows width"]) -> None:
        """Rows of the buffer's own form, at its end."""
        needed = min(self.total + len(rows), self.capacity)
        if needed > len(self._rows):
            grown = np.zeros((min(max(2 * len(self._rows), needed), self.capacity), self.columns.width), np.float32)
            grown[: len(self._rows)] = self._rows
            self._rows = grown
        self._rows[(self.total + np.arange(len(rows))) % self.capacity] = rows
        self.total += len(rows)

    def append_saved(self, rows: Float[np.ndarray, "rows width"], total: int) -> None:
        """The newest rows of a buffer that has had `total` of them, as they were saved."""
        self.total = total - len(rows)
        self.append(rows)

    def take_unsaved(self) -> Float[np.ndarray, "rows width"]:
        """The rows added since this was last called."""
        rows, self._unsaved = self._unsaved, []
        return np.concatenate(rows) if rows else np.zeros((0, self.columns.width), np.float32)

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, ...], newest: int | None = None
    ) -> Float[np.ndarray, "*shape width"]:
        """Rows drawn independently, from all that are kept or from the newest alone."""
        first = self.total - min(self.size, newest or self.size)
        return self._rows[rng.integers(first, self.total, shape) % self.capacity]

    def newest(self, n: int) -> Float[np.ndarray, "rows width"]:
        """The last `n` rows, or all there are."""
        numbers = np.arange(self.total - min(self.size, n), self.total)
        return self._rows[numbers % self.capacity]
