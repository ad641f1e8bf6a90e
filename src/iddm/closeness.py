"""Closeness: how near an agent's episodes are to held-out demonstrations. It needs no reward and no training.

The distance is the square root of the energy distance between transitions (s, s' − s), each column in units of its
deviation in the demonstrations. Closeness is the distance between demonstrations and held-out demonstrations (the floor)
divided by the agent's distance to the same: 1 for an agent that cannot be told from the expert, 0.5 for one twice as far away.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
LEAST_FLOOR = 1e-3
"""Of demonstrations that are all the same."""


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
    floor: float
    """Mean distance from demonstrations to held-out ones."""
    group: int | None
    """Number of the agent's episodes that are compared at once, as many as of the demonstrations; None for all."""
    horizon: int | None
    """Environment steps of an episode that count: those of the longest demonstration; None where all do."""
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
        longest = int(demos.lengths.max()) if whole else None
        ends_count = whole and not parts.by_blocks

        def sample(part: Demos, first: int, count: int) -> Sample:
            chosen = slice(first, first + count)
            ended = part.terminated if part.terminated is not None and ends_count else np.zeros(part.num_episodes, bool)
            return Sample.of(part.observations[chosen], ended[chosen], view.expert_lag, scale, longest)

        num_held, num_rest = parts.held_out.num_episodes, parts.rest.num_episodes
        held_out = sample(parts.held_out, 0, num_held)
        size = num_held if ends_count else num_rest
        starts = range(0, num_rest - size + 1, size)
        floor = float(np.mean([sample(parts.rest, start, size).distance(held_out) for start in starts]))
        horizon = None if longest is None else longest * view.agent_lag // view.expert_lag
        group = (demos.num_episodes if parts.by_blocks else num_held) if whole else None
        return Yardstick(held_out, max(floor, LEAST_FLOOR), group, horizon, view, scale)

    def distance(self, episodes: Sequence[np.ndarray], terminated: Sequence[bool]) -> float:
        """How far the agent's episodes (their observations) are from the held-out demonstrations, averaged over groups."""
        size = min(self.group or len(episodes), len(episodes))
        distances = []
        for start in range(0, len(episodes) - size + 1, size):
            chosen = slice(start, start + size)
            rows = [self._compared(rows) for rows in episodes[chosen]]
            sample = Sample.of(rows, np.asarray(terminated[chosen]), self.view.agent_lag, self.scale, self.horizon)
            distances.append(sample.distance(self.held_out))
        return float(np.mean(distances))

    def motion(self, episodes: Sequence[np.ndarray]) -> float:
        """How much the agent's state changes per step, in units of the demonstrations': 0 for one that stands still."""
        rows = [self._compared(rows) for rows in episodes]
        return self.scale.change(rows, self.view.agent_lag) / max(self.scale.demonstrated_change, 1e-12)

    def closeness(self, episodes: Sequence[np.ndarray], terminated: Sequence[bool]) -> float:
        """The floor divided by the distance: towards 0 far away, and 1 within the floor, where nearer cannot be told."""
        return self.floor / max(self.distance(episodes, terminated), self.floor)

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
        """The transitions of an episode as points whose mean square is about 1."""
        x = np.concatenate(
            [(rows[: max(len(rows) - lag, 0)] - self.mean) / self.std, _changes(rows, lag) / self.change_std], axis=1
        )
        return np.clip(x, -CLIP, CLIP) / np.sqrt(x.shape[1])


@dataclass(frozen=True)
class Sample:
    """Transitions as points, and how much of the episodes' time was left when they ended: a point of its own."""

    points: Float[np.ndarray, "rows features"]
    absorbed: float
    """Share of the time."""

    @staticmethod
    def of(episodes: Sequence[np.ndarray], terminated: np.ndarray, lag: int, scale: Scale, horizon: int | None) -> "Sample":
        points, left, time = [], 0, 0
        for rows, ended in zip(episodes, terminated, strict=True):
            rows = rows if horizon is None else rows[: horizon + 1]
            points.append(scale.points(rows, lag))
            missing = horizon + 1 - len(rows) if horizon is not None and ended else 0
            left, time = left + missing, time + missing + len(rows) - 1
        every = np.concatenate(points)
        chosen = np.linspace(0, len(every) - 1, min(len(every), MOST_ROWS)).astype(int)
        return Sample(every[chosen], left / time)

    def distance(self, other: "Sample") -> float:
        """√(2 E|x − y| − E|x − x'| − E|y − y'|), the square root of the energy distance (Székely & Rizzo 2013)."""
        squared = 2 * self._mean_gap(other) - self._mean_gap(self) - other._mean_gap(other)
        return float(np.sqrt(max(squared, 0.0)))

    def _mean_gap(self, other: "Sample") -> float:
        """E|x − y|. What comes after an episode's end is a point at 1 from the demonstrations' mean, in its own direction."""
        p, q = self.absorbed, other.absorbed
        gap = (1 - p) * (1 - q) * cdist(self.points, other.points).mean()
        to_end = [np.sqrt(1 + (sample.points**2).sum(axis=1)).mean() for sample in (self, other)]
        return float(gap + (1 - p) * q * to_end[0] + p * (1 - q) * to_end[1])


def _changes(rows: np.ndarray, lag: int) -> np.ndarray:
    return rows[lag:] - rows[: max(len(rows) - lag, 0)]


def _deviation(x: np.ndarray) -> np.ndarray:
    """Standard deviation by column; a constant one counts in its own unit."""
    std = x.std(axis=0)
    return np.where(std > 1e-6, std, 1.0)
