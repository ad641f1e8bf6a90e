"""Line charts of the studies' page, as data that charts.js draws."""

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

import numpy as np

from iddm.studies.report.formatting import NAMES
from iddm.studies.spec import CONTROLS, EXPERT, UNTRAINED
from iddm.studies.study_results import Cell, StudyResults

Points = Sequence[tuple[float, float]]


def line(name: str, seeds: Sequence[Points]) -> dict[str, Any] | None:
    """A method's line: mean and range over seeds where all seeds have points, and each seed."""
    seeds = [known for points in seeds if (known := sorted((x, y) for x, y in points if isfinite(y)))]
    return mean_and_range(name, *at_shared_steps(seeds), seeds) if seeds else None


def at_shared_steps(seeds: Sequence[Points]) -> tuple[list[float], np.ndarray]:
    """The steps x at which some seed has a point, and all seeds' values there [x, seeds], where all have begun and none ended."""
    first, last = max(points[0][0] for points in seeds), min(points[-1][0] for points in seeds)
    x = sorted({step for points in seeds for step, _ in points if first <= step <= last})
    y = np.array([np.interp(x, [step for step, _ in points], [value for _, value in points]) for points in seeds])
    return x, y.T


def learning_curve(name: str, cell: Cell) -> dict[str, Any] | None:
    """Returns of a cell's training episodes over environment steps."""
    return line(name, [outcome.curve for outcome in cell.outcomes])


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


def methods_of(charts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The methods of all charts, each once: IDDM first, controls last."""
    keys = {each["method"] for chart in charts for each in chart["lines"]}
    order = sorted(keys, key=lambda key: (key != "iddm", key in CONTROLS, [*NAMES, key].index(key)))
    return [{"key": key, "name": NAMES.get(key, key), "control": key in CONTROLS} for key in order]


def curves(known: StudyResults) -> list[dict[str, Any]]:
    """A chart per task: returns of the training episodes over environment steps."""
    charts = []
    for task in known.tasks:
        cells = [c for c in known.cells if c.spec.task == task and c.spec.method not in UNTRAINED]
        marks = [
            {"label": "expert" if method == EXPERT else "random", "value": round(cell.spread.mean, 3)}
            for method in (EXPERT, "random")
            if (cell := known.find(task, method)) and isfinite(cell.spread.mean)
        ]
        charts += chart(task, (learning_curve(c.spec.method, c) for c in cells), marks)
    return charts
