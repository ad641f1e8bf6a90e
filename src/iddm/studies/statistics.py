"""Figures over seeds, with intervals: for one cell of a table, and over tasks.

Not rliable: it wants equally many seeds on every task, and ours may differ.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

RESAMPLES = 2_000
SEED = 0
"""Of every bootstrap, so that a table is the same each time it is made."""

Scores = Mapping[str, Sequence[float]]
"""A method's scores by task, one a seed."""


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over seeds; one seed has no deviation (NaN), however many episodes it was evaluated on."""

    mean: float
    std: float
    seeds: int


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % bootstrap interval, which is NaN where a task has a single seed."""

    value: float
    low: float = nan
    high: float = nan


def spread(values: Sequence[float]) -> Spread:
    return Spread(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else nan, len(values))


def iqm(values: Sequence[float]) -> Estimate:
    """The interquartile mean, of the middle half of the values."""
    return aggregate_iqm({"": values})


def normalised(scores: Scores, random: Mapping[str, float], expert: Mapping[str, float]) -> dict[str, list[float]]:
    """Scores with random actions at 0 and the expert at 1, on the tasks where both are known and differ."""
    return {
        task: [(value - random[task]) / (expert[task] - random[task]) for value in values]
        for task, values in scores.items()
        if task in random and task in expert and random[task] != expert[task]
    }


def aggregate_iqm(scores: Scores) -> Estimate:
    """IQM over the scores of all tasks, each of the same weight however many its seeds; the bootstrap draws within a task."""
    return _bootstrap(_groups(scores), _interquartile_mean)


def probability_of_improvement(x: Scores, y: Scores) -> Estimate | None:
    """P(X > Y) for one seed of each, mean over the tasks that both have; None where there is none."""
    tasks = [task for task in x if task in y and len(x[task]) and len(y[task])]
    if not tasks:
        return None
    groups = _groups({task: x[task] for task in tasks}) + _groups({task: y[task] for task in tasks})

    def mean_over_tasks(drawn: list[np.ndarray]) -> np.ndarray:
        halves = zip(drawn[: len(tasks)], drawn[len(tasks) :], strict=True)
        return np.mean([_superiority(a, b) for a, b in halves], axis=0)

    return _bootstrap(groups, mean_over_tasks)


def _superiority(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """U / (n·m) of Mann and Whitney: how many pairs x wins, ties half. [..., n], [..., m] to [...]."""
    difference = x[..., :, None] - y[..., None, :]
    return (0.5 * (np.sign(difference) + 1)).mean(axis=(-2, -1))


def _interquartile_mean(groups: list[np.ndarray]) -> np.ndarray:
    """The mean between the quartiles of all values, where every group has the same weight. [..., n] each to [...]."""
    values = np.concatenate(groups, axis=-1)
    weights = np.broadcast_to(np.concatenate([np.full(g.shape[-1], 1 / g.shape[-1]) for g in groups]) / len(groups), values.shape)
    order = values.argsort(axis=-1)
    weights = np.take_along_axis(weights, order, axis=-1)
    upper = weights.cumsum(axis=-1)
    inside = np.clip(upper, 0.25, 0.75) - np.clip(upper - weights, 0.25, 0.75)
    return (inside * np.take_along_axis(values, order, axis=-1)).sum(axis=-1) / inside.sum(axis=-1)


def _groups(scores: Scores) -> list[np.ndarray]:
    return [np.asarray(values, float) for values in scores.values() if len(values)]


def _bootstrap(groups: list[np.ndarray], statistic: Callable[[list[np.ndarray]], np.ndarray]) -> Estimate:
    """The statistic of the groups, and the percentiles of it over draws with replacement within each group."""
    value = float(statistic(groups))
    if min(map(len, groups)) < 2:  # nothing to draw from: the interval would look narrower than it is
        return Estimate(value)
    rng = np.random.default_rng(SEED)
    drawn = [group[rng.integers(len(group), size=(RESAMPLES, len(group)))] for group in groups]
    low, high = np.percentile(statistic(drawn), (2.5, 97.5))
    return Estimate(value, float(low), float(high))
