"""Line charts of the studies' page."""

from collections.abc import Iterable
from math import isfinite
from typing import Any

from iddm.report.charts import chart, line
from iddm.studies.report.formatting import NAMES
from iddm.studies.spec import CONTROLS, EXPERT, UNTRAINED
from iddm.studies.study_results import Cell, StudyResults


def learning_curve(name: str, cell: Cell) -> dict[str, Any] | None:
    """Returns of a cell's training episodes over environment steps."""
    return line(name, [outcome.curve for outcome in cell.outcomes])


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
        charts += chart(task, (learning_curve(c.spec.method, c) for c in cells), marks_of(known, task))
    return charts


def marks_of(known: StudyResults, task: str) -> list[dict[str, Any]]:
    """The expert and random actions, where they were evaluated."""
    return [
        {"label": "expert" if method == EXPERT else "random", "value": round(cell.spread.mean, 3)}
        for method in (EXPERT, "random")
        if (cell := known.find(task, method)) and isfinite(cell.spread.mean)
    ]
