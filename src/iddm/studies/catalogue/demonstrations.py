"""How many demonstrations are needed: the paper's Fig. 3."""

from itertools import groupby
from math import isfinite
from typing import Any

from iddm.report.charts import chart, mean_and_range
from iddm.report.table import Table
from iddm.studies.catalogue.light import LIGHT, LIGHTLY, titled
from iddm.studies.core import Settings
from iddm.studies.report.tables import INTERVAL, by_variant, normalised_score
from iddm.studies.spec import SAME_AS_GAIFO, SIX, UNTRAINED, Grid
from iddm.studies.study import Section, ShowChart, ShowTable, Study
from iddm.studies.study_results import Cell, StudyResults

METHODS = ("gail", "gaifo", "iddm")


def amount(cell: Cell) -> str:
    """How many demonstrations, in words."""
    pairs, episodes = cell.setting("demo_transitions"), cell.setting("demo_episodes")
    if pairs is not None:
        return f"{pairs} pairs"
    return "all ten" if episodes is None else f"{episodes} episode{'s' if episodes > 1 else ''}"


def compared(known: StudyResults) -> dict[str, list[Cell]]:
    """The cells of each task on which amounts of demonstrations are compared: those that have more than one."""
    cells = {task: [c for c in known.cells if c.spec.task == task and c.spec.method not in UNTRAINED] for task in known.tasks}
    return {task: some for task, some in cells.items() if len(set(map(amount, some))) > 1}


def scores(known: StudyResults) -> Table:
    """Normalised scores by the number of demonstrations."""
    cells = [cell for some in compared(known).values() for cell in some]
    caption = (
        f"Normalised score (random actions 0 %, expert 100 %): mean over seeds [{INTERVAL}] (number of seeds). "
        f"Hopper, HalfCheetah and Ant {LIGHTLY}. Which episodes or pairs are used is drawn with the seed."
    )
    return by_variant(
        StudyResults(known.grids, tuple(cells)), "demonstrations", amount, lambda cell: normalised_score(known, cell), caption
    )


def charts(known: StudyResults) -> list[dict[str, Any]]:
    """A chart per task: normalised scores over the number of demonstrations."""
    marks = [{"label": "expert", "value": 100}, {"label": "random", "value": 0}]
    made = []
    for task, cells in compared(known).items():
        amounts = list(dict.fromkeys(map(amount, cells)))
        by_method = groupby(sorted(cells, key=lambda cell: cell.spec.method), key=lambda cell: cell.spec.method)
        lines = [_over_amounts(method, known, list(some), amounts) for method, some in by_method]
        made += chart(titled(task, cells), lines, marks, ticks=amounts)
    return made


def _over_amounts(method: str, known: StudyResults, cells: list[Cell], amounts: list[str]) -> dict[str, Any] | None:
    """A method's normalised scores in percent over the places of the amounts, which may have different seeds."""
    seeds: dict[int, list[tuple[float, float]]] = {}
    for cell in sorted(cells, key=lambda cell: amounts.index(amount(cell))):
        found = known.normalised({cell.spec.task: cell}).get(cell.spec.task, [])
        for result, score in zip(cell.results, found, strict=False):
            if isfinite(score):
                seeds.setdefault(result.seed, []).append((amounts.index(amount(cell)), round(100 * score, 2)))
    points = list(seeds.values())
    x = sorted({place for some in points for place, _ in some})
    values = [[score for some in points for place, score in some if place == at] for at in x]
    return mean_and_range(method, x, values, points) if x else None


def _amounts(tasks: tuple[str, ...], settings: Settings) -> Grid:
    drawn = ({"demo_episodes": count, "demo_choice": "random"} for count in (1, 4, 7))  # others with each seed
    return Grid(tasks, METHODS, tuple({**amount, **settings} for amount in (*drawn, {})))  # {}: all ten


def _pairs(task: str, count: int) -> Grid:
    return Grid((task,), METHODS, ({"demo_transitions": count},))


DEMOS = Study(
    "demos",
    "How many demonstrations are needed",
    (
        Grid(SIX, UNTRAINED),
        _pairs("CartPole", 32),
        _pairs("InvertedPendulum", 128),
        _pairs("InvertedDoublePendulum", 256),
        _amounts(SIX[:3], {}),
        _amounts(SIX[3:], LIGHT),
        Grid(SIX[:3], (SAME_AS_GAIFO,)),
        Grid(SIX[3:], (SAME_AS_GAIFO,), (LIGHT,)),
    ),
    in_paper="Fig. 3",
    sections=(
        Section(
            (ShowChart(charts), ShowTable("demos", scores, fold="the numbers")),
            words="Normalised score over the number of demonstrations: mean over seeds, with their range as a band. "
            f"Lighter runs are {LIGHTLY}.",
        ),
    ),
)
