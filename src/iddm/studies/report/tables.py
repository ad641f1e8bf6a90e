"""Tables that several studies have."""

from collections.abc import Callable

from iddm.report.table import NOTHING, Table
from iddm.studies import paper
from iddm.studies.report.formatting import below_ours, interval, lines, name_of, percent, returns
from iddm.studies.spec import UNTRAINED
from iddm.studies.statistics import mean_over_tasks
from iddm.studies.study_results import Cell, StudyResults

OVER_SEEDS = "Mean ± standard deviation over seeds (number of seeds)."
OR_EPISODES = f"{OVER_SEEDS} For random actions and the expert: over episodes."
INTERVAL = "95 % interval of the mean over seeds (Student's t), absent where there is one seed"


def normalised_score(known: StudyResults, cell: Cell) -> str:
    """A cell's normalised score: mean over seeds with its interval, and the number of seeds."""
    found = known.normalised({cell.spec.task: cell})
    return f"{percent(mean_over_tasks(found))} ({len(cell.outcomes)})" if found else NOTHING


def by_method(known: StudyResults) -> Table:
    """Every method on every task, and the paper's numbers below ours."""
    tasks = known.tasks

    def cell(task: str, method: str) -> str:
        return lines(returns(known.find(task, method)), below_ours(paper.TABLE_2.get(method, {}).get(task)))

    rows = tuple((name_of(method), *(cell(task, method) for task in tasks)) for method in known.methods)
    return Table(("method", *tasks), rows, caption=OR_EPISODES)


def by_variant(
    known: StudyResults, heading: str, label: Callable[[Cell], str], value: Callable[[Cell], str], caption: str
) -> Table:
    """Every variant of the settings on every task, a column per method. `label` names a cell's variant."""
    cells = [cell for task in known.tasks for cell in known.cells if cell.spec.task == task and cell.spec.method not in UNTRAINED]
    found = {(cell.spec.task, label(cell), cell.spec.method): cell for cell in cells}
    methods = [method for method in known.methods if method not in UNTRAINED]
    rows = tuple(
        (*place, *(value(found[*place, method]) if (*place, method) in found else NOTHING for method in methods))
        for place in dict.fromkeys((task, variant) for task, variant, _ in found)
    )
    return Table(("task", heading, *map(name_of, methods)), rows, 2, caption)


def every_cell(known: StudyResults) -> Table:
    """One line per cell, with the interval of its mean."""
    rows = tuple(
        (c.spec.task, name_of(c.spec.method), c.spec.flags or "default settings", returns(c), interval(c) or NOTHING)
        for c in known.cells
    )
    return Table(("task", "method", "settings", "mean ± deviation", "95 % interval"), rows, 3, f"Interval: {INTERVAL}.")
