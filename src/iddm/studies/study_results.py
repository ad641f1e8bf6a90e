"""The results of one study, grouped into cells: runs that differ by the seed alone stand together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from iddm.studies.core import setting
from iddm.studies.results import Outcome, Result, Results
from iddm.studies.spec import CONTROLS, EXPERT, UNTRAINED, Grid, RunSpec
from iddm.studies.statistics import BySeed, Spread, normalised, spread

AT_CEILING = 0.95
"""Normalised score of a constant reward from which on a high score is no evidence of imitation."""


@dataclass(frozen=True)
class Cell:
    """A task, a method and settings, with one run per seed."""

    spec: RunSpec
    """Of the first seed."""
    outcomes: tuple[Outcome, ...]

    @property
    def results(self) -> list[Result]:
        return [outcome.result for outcome in self.outcomes]

    @property
    def means(self) -> list[float]:
        return [result.mean for result in self.results]

    @property
    def spread(self) -> Spread:
        return spread(self.means)

    def measures(self, name: str) -> list[float]:
        """A measure of the policies besides the return (`iddm.studies.measures`), of the runs that have it."""
        return [outcome.measures[name] for outcome in self.outcomes if name in outcome.measures]

    def setting(self, name: str) -> Any:
        """The value of a setting, by its flag's name, in every run of the cell."""
        return setting(self.spec.config, name)


@dataclass(frozen=True)
class StudyResults:
    """What is known of a study's question so far."""

    grids: tuple[Grid, ...]
    cells: tuple[Cell, ...]
    quick: bool = False
    """Made with --quick: a test of the machinery."""

    @property
    def tasks(self) -> list[str]:
        """In the study's order."""
        return _in_order([grid.tasks for grid in self.grids], {cell.spec.task for cell in self.cells})

    @property
    def methods(self) -> list[str]:
        """In the study's order."""
        return _in_order([grid.methods for grid in self.grids], {cell.spec.method for cell in self.cells})

    @property
    def says_something(self) -> bool:
        """Whether a method that learns has run, with more than one of the settings that the study compares."""
        wanted = (run for grid in self.grids for run in grid.runs(1))
        compared, found = (
            {spec.settings for spec in specs if spec.method not in (*CONTROLS, EXPERT)}
            for specs in (wanted, (cell.spec for cell in self.cells))
        )
        return len(found) >= min(2, len(compared))

    def find(self, task: str, method: str) -> Cell | None:
        """The only cell of a task and a method, in studies where settings do not vary."""
        return next((cell for cell in self.cells if (cell.spec.task, cell.spec.method) == (task, method)), None)

    def by_task(self, method: str) -> dict[str, Cell]:
        """The cells of a method, in studies where settings do not vary."""
        return {task: cell for task in self.tasks if (cell := self.find(task, method))}

    @property
    def scores(self) -> dict[str, dict[str, list[float]]]:
        """Normalised scores (random = 0, expert = 1) by method and task, in studies where settings do not vary."""
        return {method: self.normalised(self.by_task(method)) for method in self.methods}

    def normalised(self, cells: Mapping[str, Cell]) -> dict[str, list[float]]:
        """The cells' scores by task: random = 0, expert = 1."""
        random, expert = (
            {cell.spec.task: cell.spread.mean for cell in self.cells if cell.spec.method == method} for method in UNTRAINED
        )
        return normalised({task: cell.means for task, cell in cells.items()}, random, expert)

    def scores_by_seed(self, method: str) -> dict[str, BySeed]:
        """A method's normalised scores by task and seed, for comparisons of runs with the same seed."""
        cells = self.by_task(method)
        return {
            task: dict(zip((result.seed for result in cells[task].results), scores, strict=True))
            for task, scores in self.normalised(cells).items()
        }

    @property
    def tasks_at_ceiling(self) -> list[str]:
        """Tasks that a constant reward solves as well: a high score there is no evidence of imitation."""
        control = self.normalised(self.by_task("none"))
        return [task for task, scores in control.items() if spread(scores).mean >= AT_CEILING]


def _in_order(names: Iterable[Iterable[str]], present: set[str]) -> list[str]:
    return [name for name in dict.fromkeys(name for some in names for name in some) if name in present]


def cells_of(results: Results, first_seeds: Sequence[RunSpec]) -> tuple[Cell, ...]:
    """The cells of these runs, with all seeds that are among the results."""
    seeds = sorted({row.seed for row in results.rows})
    cells = []
    for first in first_seeds:
        names = [replace(first, seed=seed).name for seed in seeds]
        found = tuple(results.outcomes[name] for name in names if name in results.outcomes)
        if found:
            cells.append(Cell(first, found))
    return tuple(cells)
