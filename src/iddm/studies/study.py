"""A study: a question, the runs that answer it, and how the answer is shown. Each is a value in `iddm.studies.catalogue`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from iddm.errors import UserError
from iddm.report.table import Table
from iddm.studies.options import Options
from iddm.studies.results import Results
from iddm.studies.spec import UNTRAINED, Grid, RunSpec, chosen, first_and_last
from iddm.studies.study_results import StudyResults, cells_of

RESULTS_PAGE = "docs/results.md"


@dataclass(frozen=True)
class ShowTable:
    """A table on the page and, under its name, in the docs."""

    name: str
    """Of its place in the docs: between `<!-- name -->` and `<!-- /name -->`."""
    make: Callable[[Any], Table]
    fold: str = ""
    """Title of the fold that hides it until it is opened; without it, the table is open."""
    file: str | None = RESULTS_PAGE
    """The file that has it besides the page."""


@dataclass(frozen=True)
class ShowChart:
    """Line charts on the page, one per task (see `iddm.studies.report.charts`)."""

    make: Callable[[Any], list[dict[str, Any]]]
    by_method: bool = True
    """A line is a method's, and can be switched off."""


@dataclass(frozen=True)
class ShowHtml:
    """Anything else on the page."""

    make: Callable[[Any], str]


@dataclass(frozen=True)
class Section:
    """A section of the page; parts with nothing to show are left out."""

    parts: tuple[ShowTable | ShowChart | ShowHtml, ...]
    title: str = ""
    """Without it, the study's."""
    words: str = ""
    half: bool = False
    """Two such sections stand side by side."""


@dataclass(frozen=True)
class Study:
    """A question and the runs that answer it."""

    name: str
    title: str
    grids: tuple[Grid, ...] = ()
    seeds: int = 5
    in_paper: str = ""
    """The paper's table or figure; without it, the study is not in the paper."""
    sections: tuple[Section, ...] = ()
    only_docs: tuple[ShowTable, ...] = ()
    """Tables that are in the docs and not on the page."""

    @property
    def heading(self) -> str:
        where = f"the paper's {self.in_paper}" if self.in_paper else "not in the paper"
        return f"{self.title} ({where})"

    @property
    def tables(self) -> list[ShowTable]:
        """The tables of the docs."""
        shown = [part for section in self.sections for part in section.parts if isinstance(part, ShowTable)]
        return [table for table in (*shown, *self.only_docs) if table.file]

    def runs(self, seeds: int | None = None, only: Sequence[str] = (), quick: bool = False) -> list[RunSpec]:
        """The study's runs, seed by seed, so that a study cut short has whole seeds; each run once."""
        if seeds is not None and seeds < 1:
            raise UserError("A study needs at least one seed.")
        found = [run for grid in self.grids for run in grid.runs(1 if quick and seeds is None else seeds or self.seeds)]
        found = chosen(found, only)
        if quick:
            found = [run.quick for run in first_and_last(found)]
        return sorted(dict.fromkeys(found), key=lambda run: run.seed)

    def results(self, everything: Results) -> StudyResults:
        """The study's own among all results; quick ones only where there are no others."""
        cells = cells_of(everything, self.runs(1))
        if any(cell.spec.method not in UNTRAINED for cell in cells):
            return StudyResults(self.grids, cells)
        tasks = dict.fromkeys(run.task for run in self.runs(1))
        quick = cells_of(everything, [run for task in tasks for run in self.runs(1, only=[task], quick=True)])
        return StudyResults(self.grids, quick or cells, bool(quick))

    def to_show(self, everything: Results, directory: Path | None) -> Any | None:
        """What the study's tables and charts are made of, or None where there is nothing to show yet.

        `directory` holds the results, for studies that keep theirs in files of their own.
        """
        found = self.results(everything)
        return found if found.says_something else None

    def launch(self, options: Options, console: Console) -> int:
        """Run the study as the command line asks; returns the exit code."""
        from iddm.studies.launch import launch

        return launch(self.runs(options.seeds, options.words, options.quick), options, console)
