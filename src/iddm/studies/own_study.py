"""A study of a user's own, described by a TOML file: methods × tasks × variants of the settings × seeds."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from iddm.errors import UserError
from iddm.report.charts import chart
from iddm.report.table import Table
from iddm.studies.core import demos_fingerprint, what_differs
from iddm.studies.options import Options
from iddm.studies.report.charts import learning_curve, marks_of
from iddm.studies.report.formatting import NAMES, interval, lines, returns
from iddm.studies.report.tables import INTERVAL, OVER_SEEDS, by_variant, every_cell
from iddm.studies.results import Results
from iddm.studies.spec import EPISODES, EXPERT, UNTRAINED, Grid, RunSpec, study_steps
from iddm.studies.study import Section, ShowChart, ShowTable, Study
from iddm.studies.study_results import Cell, StudyResults
from iddm.utils.files import write_whole

COPY = "study.toml"
"""The file's copy beside its results, from which their page is made."""
DEFAULT = "default"
"""The variant of a study that has none."""


class TaskTable(msgspec.Struct, forbid_unknown_fields=True):
    """A task with settings of its own."""

    env: str
    steps: int | None = None
    settings: dict[str, Any] = {}


class StudyFile(msgspec.Struct, forbid_unknown_fields=True):
    """What the TOML file may say."""

    tasks: list[str | TaskTable]
    methods: list[str]
    seeds: int = 3
    title: str = ""
    steps: int | None = None
    episodes: int = EPISODES
    settings: dict[str, Any] = {}
    """Of every run."""
    variants: dict[str, dict[str, Any]] = {}
    """By name: settings that are compared with each other."""


@dataclass(frozen=True)
class OwnStudy(Study):
    """A study from a file. Its results are in a directory of their own, with a copy of the file."""

    text: str = ""
    episodes: int = EPISODES
    variants: tuple[tuple[tuple[str, str, Any, int], str], ...] = ()
    """(task, method, settings that differ from the defaults, steps), and the variant's name."""

    def runs(self, *args: Any, **kwargs: Any) -> list[RunSpec]:
        return [
            run if run.episodes != EPISODES else replace(run, episodes=self.episodes) for run in super().runs(*args, **kwargs)
        ]

    def variant_of(self, cell: Cell) -> str:
        spec = cell.spec
        return dict(self.variants).get((spec.task, spec.method, spec.settings, spec.steps), spec.flags)

    def to_show(self, everything: Results, directory: Path | None) -> StudyResults | None:
        found = self.results(everything)
        return found if found.cells else None

    def launch(self, options: Options, console: Console) -> int:
        folder = f"{self.name}-quick" if options.quick else self.name
        out, runs = options.out or Path("results") / folder, options.runs or Path("runs") / folder
        if (out / "runs.csv").exists() and not (out / COPY).exists():
            raise UserError(f"{out} holds the results of other studies; choose another --out.")
        if not options.list:
            write_whole(out / COPY, self.text)
        return super().launch(replace(options, out=out, runs=runs), console)


def read_study(file: Path) -> OwnStudy:
    """The study that a file describes; everything that can be wrong with its runs is said here, before any begins."""
    try:
        text = file.read_text()
        said = msgspec.convert(tomllib.loads(text), StudyFile)
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}).") from error
    except ValueError as error:  # of TOML, of its text, or of what it says
        raise UserError(f"{file}: not a study ({error}).") from error
    try:
        return _study(file.parent.name if file.name == COPY else file.stem, said, text)
    except UserError as error:
        raise UserError(f"{file}: {error}") from error


def _study(name: str, said: StudyFile, text: str) -> OwnStudy:
    for what, some in (
        ("task", said.tasks),
        ("method", said.methods),
        ("seed", range(said.seeds)),
        ("episode", range(said.episodes)),
    ):
        if not some:
            raise UserError(f"a study has at least one {what}.")
    grids, names = [], {}
    for task in (each if isinstance(each, TaskTable) else TaskTable(each) for each in said.tasks):
        if ":" in task.env:
            raise UserError(
                f"'{task.env}' names code, which a file cannot; register the environment and give its file with --import."
            )
        steps = task.steps or said.steps
        shared = flat(said.settings) | flat(task.settings) | ({"steps": steps} if steps else {})
        variants = {variant: shared | flat(own) for variant, own in (said.variants or {DEFAULT: {}}).items()}
        grids.append(Grid((task.env,), tuple(said.methods), tuple(variants.values())))
        for variant, settings in variants.items():
            for method in (method for method in said.methods if method not in UNTRAINED):
                own = {name: value for name, value in settings.items() if name != "steps"}
                steps = settings.get("steps") or study_steps(task.env)
                names[task.env, method, what_differs(task.env, method, own), steps] = variant
    study = OwnStudy(
        name, said.title or name, tuple(grids), said.seeds, text=text, episodes=said.episodes, variants=tuple(names.items())
    )
    for run in study.runs(1):
        _check(run)
    parts = (ShowChart(lambda known: _curves(study, known)), ShowTable("own", lambda known: _table(study, known), file=None))
    every = ShowTable("cells", every_cell, fold="every group of runs, with its settings", file=None)
    return replace(study, sections=(Section((*parts, every), title="Returns", words=WORDS),))


def _check(run: RunSpec) -> None:
    """Raise what is wrong with a run's settings, method or demonstrations."""
    if run.method != EXPERT and run.config.needs_demos and run.config.demos is not None:
        demos_fingerprint(run.config.demos)
    _ = run.name


WORDS = (
    "Curves: the training episodes over environment steps, with the policy's own noise; mean over seeds, with their range as a "
    "band. Table: the final policy, most likely action."
)


def flat(settings: Mapping[str, Any], group: str = "") -> dict[str, Any]:
    """TOML's tables as flags: {"mi": {"weight": 0.1}} is {"mi.weight": 0.1}, and lists are tuples."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        name = f"{group}{name.replace('-', '_')}"
        found |= (
            flat(value, f"{name}.") if isinstance(value, Mapping) else {name: tuple(value) if isinstance(value, list) else value}
        )
    return found


def _table(study: OwnStudy, known: StudyResults) -> Table:
    caption = f"{OVER_SEEDS} Below: [{INTERVAL}]."
    return by_variant(known, "variant", study.variant_of, lambda cell: lines(returns(cell), interval(cell)), caption)


def _curves(study: OwnStudy, known: StudyResults) -> list[dict[str, Any]]:
    """A chart per task, with a line per method and variant."""
    charts = []
    for task in known.tasks:
        cells = [cell for cell in known.cells if cell.spec.task == task and cell.spec.method not in UNTRAINED]
        drawn = (learning_curve(_line_name(study, cell), cell) for cell in cells)
        charts += chart(task, drawn, marks_of(known, task))
    return charts


def _line_name(study: OwnStudy, cell: Cell) -> str:
    variant, method = study.variant_of(cell), cell.spec.method
    return method if variant == DEFAULT else f"{NAMES.get(method, method)}, {variant}"
