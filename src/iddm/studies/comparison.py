"""A user's own runs side by side: grouped by what differs between them, with the seeds of a group together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

from iddm.errors import UserError
from iddm.report.charts import mean_of, thinned
from iddm.studies.core import Run, env_of, evaluate, flat_settings
from iddm.studies.statistics import mean_interval, spread
from iddm.utils.text import printable

NOT_COMPARED = ("seed", "checkpoint_every", "tensorboard", "backend")
"""Settings that do not make another group: the seed, and what does not change what is learned."""
LAST = 0.1
"""Of a run: its value is the metric's mean over this last part."""


@dataclass(frozen=True)
class ComparedRun:
    """A run and what it is compared by."""

    run: Run
    settings: Mapping[str, Any]
    """By the names of their flags, without the seed."""
    rows: list[dict[str, float]]

    @staticmethod
    def read(path: Path) -> "ComparedRun":
        run = Run.open(path)
        settings = {name: value for name, value in flat_settings(run.config).items() if name not in NOT_COMPARED}
        if run.demos is not None and run.config.demo_transitions is None:  # which transitions are drawn depends on the seed
            settings["demonstrations"] = run.demos.sha256[:8]
        return ComparedRun(run, settings, run.metrics())

    @property
    def task(self) -> str:
        return self.run.config.env

    @property
    def kind(self) -> tuple[str, str]:
        """Method and learner."""
        return self.run.config.method, self.run.config.learner.name

    def last_value(self, metric: str) -> float:
        """The metric's mean over the last part of the run."""
        steps = self.rows[-1]["steps"] if self.rows else 0.0
        return mean_of([row for row in self.rows if row["steps"] > (1 - LAST) * steps or not steps], metric)


@dataclass(frozen=True)
class Group:
    """Runs of one task that differ by the seed alone."""

    task: str
    name: str
    method: str
    learner: str
    settings: str
    """Those that tell it from the other groups, as flags."""
    runs: tuple[ComparedRun, ...]

    def points(self, metric: str) -> list[list[tuple[int, float]]]:
        """The curve of every seed that has one."""
        return [points for run in self.runs if (points := thinned(run.rows, metric))]

    def values(self, metric: str) -> list[float]:
        """The last value of every seed that has one."""
        return [value for run in self.runs if isfinite(value := run.last_value(metric))]

    @property
    def demonstrated(self) -> float:
        """The mean return of its demonstrations; NaN where it is not known."""
        demos = self.runs[0].run.demos
        return nan if demos is None or demos.returns is None else float(np.mean(demos.returns))


@dataclass(frozen=True)
class Line:
    """A group in numbers, for the table."""

    task: str
    group: str
    method: str
    learner: str
    settings: str
    seeds: int
    steps: int
    mean: float
    std: float
    low: float
    high: float
    demonstrations: float
    """The mean return of the demonstrations."""


def find_runs(paths: Sequence[Path]) -> list[ComparedRun]:
    """The runs that these directories are, or hold at any depth; each once."""
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.is_dir():
            raise UserError(f"{path}: there is no such directory.")
        inside = [path] if (path / "config.json").is_file() else sorted(file.parent for file in path.rglob("config.json"))
        if not inside:
            raise UserError(f"{path}: there is no run here (no config.json), and none below.")
        found |= {each.resolve(): each for each in inside}
    return [ComparedRun.read(path) for path in found.values()]


def grouped(runs: Iterable[ComparedRun], names: Mapping[str, str]) -> list[Group]:
    """Runs in groups that differ by more than the seed, named by what tells them apart; `names` are the methods' names."""
    together: dict[tuple[Any, ...], list[ComparedRun]] = {}
    for run in runs:
        together.setdefault((run.task, run.kind, *sorted(run.settings.items(), key=str)), []).append(run)
    apart = _what_tells_apart([some[0] for some in together.values()])
    kinds = {some[0].kind for some in together.values()}
    groups = []
    for some in together.values():
        _refuse_same_seeds(some)
        first, (method, learner) = some[0], some[0].kind
        settings = ", ".join(f"{name} {first.settings.get(name, '–')}" for name in sorted(apart[first.kind]))
        several = sum(kind[0] == method for kind in kinds) > 1
        name = ", ".join(filter(None, [names.get(method, method) + (f" ({learner})" if several else ""), settings]))
        by_seed = tuple(sorted(some, key=lambda run: run.run.config.seed))
        groups.append(Group(*map(printable, (first.task, name, method, learner, settings)), runs=by_seed))
    return sorted(groups, key=lambda group: (group.task, group.name))


def _what_tells_apart(runs: Sequence[ComparedRun]) -> dict[tuple[str, str], set[str]]:
    """By method and learner: the settings that differ between its groups on some task."""
    apart: dict[tuple[str, str], set[str]] = {}
    for run in runs:
        for other in runs:
            if (run.task, run.kind) == (other.task, other.kind):
                names = {*run.settings, *other.settings}
                apart.setdefault(run.kind, set()).update(n for n in names if run.settings.get(n) != other.settings.get(n))
    return {kind: names - {"demonstrations"} if "demos" in names else names for kind, names in apart.items()}


def _refuse_same_seeds(runs: Sequence[ComparedRun]) -> None:
    by_seed: dict[int, Path] = {}
    for run in runs:
        seed, path = run.run.config.seed, run.run.path
        if seed in by_seed:
            raise UserError(
                f"{by_seed[seed]} and {path} are the same run (task, method, settings and seed {seed}); give one of them."
            )
        by_seed[seed] = path


def evaluated(run: ComparedRun, episodes: int, env: str | None = None) -> float:
    """The mean return of a run's final policy, most likely action, fresh seeds; `env` says again what its file cannot."""
    policy = run.run.policy
    return evaluate(policy, env=env_of(policy).own(env if env == run.task else None), episodes=episodes).mean


def lines(groups: Sequence[Group], metric: str, episodes: int | None = None, env: str | None = None) -> list[Line]:
    """Every group in numbers: of the metric at the end of training, or of the final policies, evaluated over `episodes`."""
    made = []
    for group in groups:
        finished = [run for run in group.runs if run.run.finished]
        values = group.values(metric) if episodes is None else [evaluated(run, episodes, env) for run in finished]
        steps = int(max((run.rows[-1]["steps"] for run in group.runs if run.rows), default=0))
        over, mean = spread(values or [nan]), mean_interval(values or [nan])
        numbers = (mean.value, over.std, mean.low, mean.high, group.demonstrated)
        made.append(Line(group.task, group.name, group.method, group.learner, group.settings, len(values), steps, *numbers))
    return made


def tidy_rows(groups: Sequence[Group], metric: str) -> list[dict[str, Any]]:
    """One row per run and iteration."""
    return [
        {
            "task": group.task,
            "group": group.name,
            "method": group.method,
            "learner": group.learner,
            "settings": group.settings,
            "seed": run.run.config.seed,
            "run": str(run.run.path),
            **{name: row[name] for name in ("iteration", "steps", "seconds", "episodes")},
            metric: row.get(metric, nan),
        }
        for group in groups
        for run in group.runs
        for row in run.rows
    ]
