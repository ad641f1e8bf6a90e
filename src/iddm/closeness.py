"""Closeness: how near an agent's episodes are to held-out demonstrations. It needs no reward and no training.

Of every column of the transitions (s, s' − s), in units of its deviation in the demonstrations, and with the time beside it:
the square root of the energy distance between the agent's and the held-out demonstrations', in units of the same between
demonstrations and held-out ones (the floor). Closeness is 1 over the columns' mean: 1 for an agent that is as near as other
demonstrations are, 0.5 for one twice as far away.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from iddm.demos.align import View
from iddm.demos.types import Demos

SHARE = 0.2
"""Part of the demonstrations that is held out."""
FEWEST = 5
"""From fewer episodes than this, blocks of each are held out instead of whole ones."""
NUM_BLOCKS = 10
HELD_BLOCKS = (2, 7)
MOST_ROWS = 500
"""Rows of a sample that are compared, evenly spaced; the distance takes their square."""
CLIP = 10.0
LEAST_FLOOR = 0.01
"""Of a column in which demonstrations are all the same."""
HIGHEST = 2.0
"""Closeness of an agent that is at most half as far away as other demonstrations: nearer cannot be told."""
OVERTIME = 1.5
"""Where demonstrations end by themselves, this many times the longest one is compared: an agent that goes on is far away."""


@dataclass(frozen=True)
class Split:
    """Demonstrations in two parts."""

    rest: Demos
    held_out: Demos
    by_blocks: bool
    """Whether blocks of episodes are held out, for want of episodes."""


def split(demos: Demos) -> Split | None:
    """Hold out a fifth: whole episodes from the end, or blocks of each episode; None where there is too little for that."""
    if demos.num_episodes >= FEWEST:
        num_rest = demos.num_episodes - round(demos.num_episodes * SHARE)
        return Split(
            demos.take_episodes(num_rest), demos.choose_episodes(np.arange(num_rest, demos.num_episodes)), by_blocks=False
        )
    if demos.lengths.min() < 2 * NUM_BLOCKS:
        return None
    rest, held_out = [], []
    for episode in range(demos.num_episodes):
        edges = np.linspace(0, demos.lengths[episode], NUM_BLOCKS + 1).astype(int)
        first, second = ((edges[i], edges[i + 1]) for i in HELD_BLOCKS)
        held_out += [(episode, *first), (episode, *second)]
        rest += [(episode, 0, first[0]), (episode, first[1], second[0]), (episode, second[1], edges[-1])]
    return Split(_pieces(demos, rest), _pieces(demos, held_out), by_blocks=True)


def _pieces(demos: Demos, cuts: list[tuple[int, int, int]]) -> Demos:
    """Transitions `start` to `stop` of an episode, for each cut; a piece ends by itself only where its episode did."""
    ended = demos.terminated
    return Demos(
        observations=tuple(demos.observations[i][start : stop + 1] for i, start, stop in cuts),
        actions=None if demos.actions is None else tuple(demos.actions[i][start:stop] for i, start, stop in cuts),
        terminated=np.array([ended is not None and ended[i] and stop == demos.lengths[i] for i, _, stop in cuts]),
        metadata=demos.metadata,
    )


@dataclass(frozen=True)
class Yardstick:
    """Held-out demonstrations, and how far other demonstrations are from them."""

    held_out: "Sample"
    floor: Float[np.ndarray, " features"]
    """Mean distance from demonstrations to held-out ones, by column."""
    group: int | None
    """Number of the agent's episodes that are compared at once, as many as of the demonstrations; None for all."""
    length: int | None
    """Environment steps of the longest demonstration; None where they are single transitions."""
    horizon: int | None
    """Environment steps of an episode that count; None where all do."""
    timed: bool
    """Whether it matters when a transition happens: not where demonstrations are parts of episodes."""
    view: View
    scale: "Scale"

    @staticmethod
    def of(demos: Demos, view: View | None = None, whole: bool = True) -> "Yardstick | None":
        """Made from demonstrations that have only the columns to compare; None from too few.

        They are `whole` unless they are single transitions. Their ends are known only where `terminated` says so.
        """
        parts, view = split(demos), view or View()
        if parts is None or demos.lengths.max() < view.expert_lag:
            return None
        scale = Scale.of(demos, view.expert_lag)
        timed = whole and not parts.by_blocks

        def ended(part: Demos) -> np.ndarray:
            return part.terminated if part.terminated is not None and timed else np.zeros(part.num_episodes, bool)

        longest = int(demos.lengths.max()) if whole else None
        horizon = ceil(longest * OVERTIME) if longest is not None and ended(demos).any() else longest

        def sample(part: Demos, first: int, count: int) -> Sample:
            chosen = slice(first, first + count)
            return Sample.of(part.observations[chosen], ended(part)[chosen], view.expert_lag, scale, horizon, timed)

        def in_steps(rows: int | None) -> int | None:
            return None if rows is None else rows * view.agent_lag // view.expert_lag

        num_held, num_rest = parts.held_out.num_episodes, parts.rest.num_episodes
        held_out = sample(parts.held_out, 0, num_held)
        size = num_held if timed else num_rest
        starts = range(0, num_rest - size + 1, size)
        floor = np.mean([sample(parts.rest, start, size).distance(held_out) for start in starts], axis=0)
        group = (demos.num_episodes if parts.by_blocks else num_held) if whole else None
        return Yardstick(
            held_out, np.maximum(floor, LEAST_FLOOR), group, in_steps(longest), in_steps(horizon), timed, view, scale
        )

    def distance(self, episodes: Sequence[np.ndarray], terminated: Sequence[bool]) -> float:
        """How far the agent's episodes (their observations) are from the held-out demonstrations, in units of the floor.

        The mean over columns, and over groups of episodes.
        """
        size = min(self.group or len(episodes), len(episodes))
        distances = []
        for start in range(0, len(episodes) - size + 1, size):
            chosen = slice(start, start + size)
            rows = [self._compared(rows) for rows in episodes[chosen]]
            ended = np.asarray(terminated[chosen])
            sample = Sample.of(rows, ended, self.view.agent_lag, self.scale, self.horizon, self.timed)
            distances.append(sample.distance(self.held_out) / self.floor)
        return float(np.mean(distances))

    def motion(self, episodes: Sequence[np.ndarray]) -> float:
        """How much the agent's state changes per step, in units of the demonstrations': 0 for one that stands still."""
        rows = [self._compared(rows) for rows in episodes]
        return self.scale.change(rows, self.view.agent_lag) / max(self.scale.demonstrated_change, 1e-12)

    def closeness(self, episodes: Sequence[np.ndarray], terminated: Sequence[bool]) -> float:
        """1 over the distance: towards 0 far away, 1 as near as other demonstrations, at most 2."""
        return 1 / max(self.distance(episodes, terminated), 1 / HIGHEST)

    def _compared(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.view.columns is None else rows[:, list(self.view.columns)]


@dataclass(frozen=True)
class Scale:
    """Units of the states' columns and of their changes."""

    mean: np.ndarray
    std: np.ndarray
    change_std: np.ndarray
    demonstrated_change: float = 1.0
    """Root mean square of the demonstrations' changes."""

    @staticmethod
    def of(demos: Demos, lag: int) -> "Scale":
        rows, changes = np.concatenate(demos.observations), [_changes(rows, lag) for rows in demos.observations]
        scale = Scale(rows.mean(axis=0), _deviation(rows), _deviation(np.concatenate(changes)))
        return replace(scale, demonstrated_change=scale.change(demos.observations, lag))

    def change(self, episodes: Sequence[np.ndarray], lag: int) -> float:
        """Root mean square of the changes."""
        changes = np.concatenate([_changes(rows, lag) for rows in episodes]) / self.change_std
        return float(np.sqrt((changes**2).mean())) if len(changes) else 0.0

    def points(self, rows: np.ndarray, lag: int) -> np.ndarray:
        """The transitions of an episode, each column with a mean square of about 1."""
        x = np.concatenate(
            [(rows[: max(len(rows) - lag, 0)] - self.mean) / self.std, _changes(rows, lag) / self.change_std], axis=1
        )
        return np.clip(x, -CLIP, CLIP)


@dataclass(frozen=True)
class Sample:
    """Transitions, when they happened, and how much of the episodes' time was left when they ended: a point of its own."""

    points: Float[np.ndarray, "rows features"]
    time: Float[np.ndarray, " rows"]
    """Since the episode's start, with a deviation of 1 over the horizon; 0 where it does not matter."""
    absorbed: float
    """Share of the time."""

    @staticmethod
    def of(
        episodes: Sequence[np.ndarray], terminated: np.ndarray, lag: int, scale: Scale, horizon: int | None, timed: bool
    ) -> "Sample":
        points, times, left, steps = [], [], 0, 0
        for rows, ended in zip(episodes, terminated, strict=True):
            rows = rows if horizon is None else rows[: horizon + 1]
            points.append(scale.points(rows, lag))
            times.append(np.arange(len(points[-1])) * (np.sqrt(12) / horizon if horizon and timed else 0.0))
            missing = horizon + 1 - len(rows) if horizon is not None and ended else 0
            left, steps = left + missing, steps + missing + len(rows) - 1
        every = np.concatenate(points)
        chosen = np.linspace(0, len(every) - 1, min(len(every), MOST_ROWS)).astype(int)
        return Sample(every[chosen], np.concatenate(times)[chosen], left / steps)

    def distance(self, other: "Sample") -> Float[np.ndarray, " features"]:
        """√(2 E|x − y| − E|x − x'| − E|y − y'|) by column: the square root of the energy distance (Székely & Rizzo 2013)."""
        squared = 2 * self._mean_gap(other) - self._own_gap - other._own_gap
        return np.sqrt(np.maximum(squared, 0.0))

    @cached_property
    def _own_gap(self) -> Float[np.ndarray, " features"]:
        return self._mean_gap(self)

    def _mean_gap(self, other: "Sample") -> Float[np.ndarray, " features"]:
        """E|x − y|. What comes after an episode's end is a point at 1 from the demonstrations' mean, in its own direction."""
        p, q = self.absorbed, other.absorbed
        pairs = zip(self._with_time, other._with_time, strict=True)
        gap = (1 - p) * (1 - q) * np.array([cdist(x, y).mean() for x, y in pairs])
        to_end = [np.sqrt(1 + (sample._with_time**2).sum(axis=2)).mean(axis=1) for sample in (self, other)]
        return gap + (1 - p) * q * to_end[0] + p * (1 - q) * to_end[1]

    @property
    def _with_time(self) -> Float[np.ndarray, "features rows 2"]:
        """Each column, with the time beside it."""
        columns = self.points.T
        return np.stack([columns, np.broadcast_to(self.time, columns.shape)], axis=2)


def _changes(rows: np.ndarray, lag: int) -> np.ndarray:
    return rows[lag:] - rows[: max(len(rows) - lag, 0)]


def _deviation(x: np.ndarray) -> np.ndarray:
    """Standard deviation by column; a constant one counts in its own unit."""
    std = x.std(axis=0)
    return np.where(std > 1e-6, std, 1.0)
