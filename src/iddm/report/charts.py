"""Line charts as data that charts.js draws, and the thinned curves in them."""

from collections.abc import Iterable, Sequence
from math import isfinite, nan
from typing import Any

import numpy as np

POINTS = 40
"""Most points of a curve: each is the mean of what was measured since the point before."""

Points = Sequence[tuple[float, float]]


def thinned(rows: Sequence[dict[str, float]], metric: str, over: str = "steps") -> list[tuple[int, float]]:
    """At most `POINTS` points (steps, mean of a metric since the point before) of a run; those without a value are left out."""
    split = np.array_split(np.arange(len(rows)), min(POINTS, len(rows)) or 1)
    parts = [rows[places[0] : places[-1] + 1] for places in split if len(places)]
    points = [(int(part[-1][over]), mean_of(part, metric)) for part in parts]
    return [(steps, value) for steps, value in points if isfinite(value)]


def mean_of(rows: Sequence[dict[str, float]], metric: str) -> float:
    """The mean of a metric over rows, of returns over their episodes; NaN where no row has it."""
    known = [row for row in rows if isfinite(row.get(metric, nan))]
    weights = [row["episodes"] if metric == "episode_return" else 1.0 for row in known]
    return sum(w * row[metric] for w, row in zip(weights, known, strict=True)) / sum(weights) if sum(weights) else nan


def line(name: str, seeds: Sequence[Points]) -> dict[str, Any] | None:
    """A line of this name: mean and range over seeds where all seeds have points, and each seed."""
    seeds = [known for points in seeds if (known := sorted((x, y) for x, y in points if isfinite(y)))]
    return mean_and_range(name, *at_shared_steps(seeds), seeds) if seeds else None


def at_shared_steps(seeds: Sequence[Points]) -> tuple[list[float], np.ndarray]:
    """The steps x at which some seed has a point, and all seeds' values there [x, seeds], where all have begun and none ended."""
    first, last = max(points[0][0] for points in seeds), min(points[-1][0] for points in seeds)
    x = sorted({step for points in seeds for step, _ in points if first <= step <= last})
    y = np.array([np.interp(x, [step for step, _ in points], [value for _, value in points]) for points in seeds])
    return x, y.T


def mean_and_range(
    name: str, x: Sequence[float], values: Sequence[Sequence[float]] | np.ndarray, seeds: Sequence[Points]
) -> dict[str, Any]:
    """A line through the mean of the values at each x, with their range as a band."""
    mean, low, high = ([round(float(some(each)), 3) for each in values] for some in (np.mean, np.min, np.max))
    return {"method": name, "x": x, "mean": mean, "low": low, "high": high, "seeds": seeds}


def chart(
    title: str,
    lines: Iterable[dict[str, Any] | None],
    marks: Sequence[dict[str, Any]] = (),
    ticks: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """One chart, or none where it has no line. With names of places on the x axis (`ticks`) it is in percent."""
    drawn = [each for each in lines if each]
    if not drawn:
        return []
    places = {} if ticks is None else {"ticks": ticks}
    return [{"title": title, "lines": drawn, "marks": list(marks), "percent": ticks is not None, **places}]
