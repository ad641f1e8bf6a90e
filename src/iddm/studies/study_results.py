"""The results of a study, set out as its cells: what differs by the seed alone stands together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from iddm.studies.results import Result, Results
from iddm.studies.spec import CONTROLS, EXPERT, UNTRAINED, RunSpec, Study, setting
from iddm.studies.statistics import Spread, normalised, spread


@dataclass(frozen=True)
class Cell:
    """A task, a method and settings; a result a seed."""

    spec: RunSpec
    """Of the first seed."""
    results: tuple[Result, ...]

    @property
    def means(self) -> list[float]:
        return [result.mean for result in self.results]

    @property
    def spread(self) -> Spread:
        return spread(self.means)

    def setting(self, name: str) -> Any:
        """The value of a setting, by its flag's name, in every run of the cell."""
        return setting(self.spec.config, name)


@dataclass(frozen=True)
class Answer:
    """What is known of a study's question so far."""

    study: Study
    cells: tuple[Cell, ...]
    quick: bool
    """Made with --quick: a look at the machinery."""

    @property
    def tasks(self) -> list[str]:
        """In the study's order."""
        return _in_order([grid.tasks for grid in self.study.grids], {cell.spec.task for cell in self.cells})

    @property
    def methods(self) -> list[str]:
        """In the study's order."""
        return _in_order([grid.methods for grid in self.study.grids], {cell.spec.method for cell in self.cells})

    @property
    def num_runs(self) -> int:
        return sum(len(cell.results) for cell in self.cells)

    @property
    def says_something(self) -> bool:
        """Whether a method that learns has run, with more than one of the settings that the study compares."""
        compared = {run.settings for run in self.study.runs(1) if run.method not in (*CONTROLS, EXPERT)}
        found = {cell.spec.settings for cell in self.cells if cell.spec.method not in (*CONTROLS, EXPERT)}
        return len(found) >= min(2, len(compared))

    def find(self, task: str, method: str) -> Cell | None:
        """The only cell of a task and a method, in studies where settings do not vary."""
        return next((cell for cell in self.cells if (cell.spec.task, cell.spec.method) == (task, method)), None)

    @property
    def scores(self) -> dict[str, dict[str, list[float]]]:
        """Normalised scores (random = 0, expert = 1) by method and task, in studies where settings do not vary."""
        return {
            method: self.normalised({c.spec.task: c for c in self.cells if c.spec.method == method}) for method in self.methods
        }

    def normalised(self, cells: Mapping[str, Cell]) -> dict[str, list[float]]:
        """The cells' scores by task: random = 0, expert = 1."""
        random, expert = (
            {cell.spec.task: cell.spread.mean for cell in self.cells if cell.spec.method == method} for method in UNTRAINED
        )
        return normalised({task: cell.means for task, cell in cells.items()}, random, expert)


def _in_order(names: Iterable[Iterable[str]], present: set[str]) -> list[str]:
    return [name for name in dict.fromkeys(name for some in names for name in some) if name in present]


def answer(results: Results, study: Study) -> Answer:
    """The study's results among all results; quick ones only where there are no others."""
    cells = _cells(results, study.runs(1))
    if any(cell.spec.method not in UNTRAINED for cell in cells):
        return Answer(study, cells, quick=False)
    tasks = dict.fromkeys(run.task for run in study.runs(1))
    quick = _cells(results, [run for task in tasks for run in study.runs(1, only=[task], quick=True)])
    return Answer(study, quick or cells, bool(quick))


def _cells(results: Results, firsts: list[RunSpec]) -> tuple[Cell, ...]:
    seeds = sorted({row.seed for row in results.rows})
    cells = []
    for first in firsts:
        names = [replace(first, seed=seed).name for seed in seeds]
        found = tuple(results.outcomes[name].result for name in names if name in results.outcomes)
        if found:
            cells.append(Cell(first, found))
    return tuple(cells)
