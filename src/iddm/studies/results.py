"""What studies leave: one row per run, its thinned learning curve, and where both came from.

runs.csv     the evaluation of every run           the same bytes wherever the runs were made
curves.csv   returns of the training episodes      the same bytes wherever the runs were made
evaluations.csv  evaluations during training       the same bytes wherever the runs were made
measures.csv what else was measured of a policy, one number per row
about.json   commit and seconds of every run
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from iddm.errors import UserError
from iddm.report.charts import thinned
from iddm.studies.spec import RunSpec
from iddm.utils.files import from_csv, records, to_csv, write_whole


@dataclass(frozen=True)
class Result:
    """One run's policy, evaluated: mean action, the environment's own return, fresh seeds."""

    name: str
    task: str
    method: str
    seed: int
    steps: int
    settings: str
    """What differs from the method's defaults, as flags."""
    episodes: int
    mean: float
    std: float
    """Over episodes."""
    saturated: float
    """Of the run: the longest stretch with a failed discriminator (see `saturated`)."""
    command: str

    @staticmethod
    def of(spec: RunSpec, returns: np.ndarray, metrics: Sequence[dict[str, float]] = ()) -> "Result":
        return Result(
            spec.name,
            spec.task,
            spec.method,
            spec.seed,
            spec.steps,
            spec.flags,
            spec.episodes,
            round(float(returns.mean()), 4),
            round(float(returns.std()), 4),
            round(saturated(metrics), 4),
            spec.command,
        )


class Evaluated(NamedTuple):
    """The policy after so many steps: four episodes with the most likely actions."""

    steps: int
    evaluation_return: float
    evaluation_length: float
    closeness: float


@dataclass(frozen=True)
class Outcome:
    """All that a finished run leaves."""

    result: Result
    curve: tuple[tuple[int, float], ...]
    """(steps, return of the training episodes)"""
    about: dict[str, Any]
    evaluations: tuple[Evaluated, ...] = ()
    measures: dict[str, float] = field(default_factory=dict)
    """What else was measured of the policy, by name (`iddm.studies.measures`)."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @staticmethod
    def from_json(text: str) -> "Outcome":
        data = json.loads(text)
        curve = tuple((int(s), float(r)) for s, r in data["curve"])
        evaluations = tuple(Evaluated(*row) for row in data["evaluations"])
        return Outcome(Result(**data["result"]), curve, data["about"], evaluations, data["measures"])


def learning_curve(rows: Sequence[dict[str, float]]) -> tuple[tuple[int, float], ...]:
    """The thinned returns of a run's training episodes."""
    return tuple((steps, round(value, 2)) for steps, value in thinned(rows, "episode_return"))


def evaluated(rows: Sequence[dict[str, float]]) -> tuple[Evaluated, ...]:
    """The evaluations among a run's metrics."""
    found = [row for row in rows if not isnan(row["evaluation_return"])]
    return tuple(
        Evaluated(
            int(row["steps"]), round(row["evaluation_return"], 2), round(row["evaluation_length"], 2), round(row["closeness"], 4)
        )
        for row in found
    )


def saturated(rows: Sequence[dict[str, float]]) -> float:
    """The longest stretch of a run, as a share of it, in which the discriminator was always right and its reward was zero.

    Then the policy learns from noise. 0 where a method has no discriminator.
    """
    longest = now = 0
    for row in rows:
        right = min(row.get(f"adversarial/{side}_accuracy", 0.0) for side in ("expert", "agent")) > 0.99
        now = now + 1 if right and abs(row["adversarial/reward"]) < 0.01 else 0
        longest = max(longest, now)
    return longest / max(len(rows), 1)


@dataclass(frozen=True)
class Results:
    """The outcomes of many runs, by name."""

    outcomes: dict[str, Outcome]

    @property
    def rows(self) -> list[Result]:
        return [outcome.result for outcome in self.outcomes.values()]

    def with_outcomes(self, new: Iterable[Outcome]) -> "Results":
        """With new rows, which replace those of the same command (made from an earlier expert, say)."""
        merged = {(o.result.command, o.result.episodes): o for o in [*self.outcomes.values(), *new]}
        order = sorted(
            merged.values(), key=lambda o: (o.result.task, o.result.method, o.result.settings, o.result.seed, o.result.name)
        )
        return Results({outcome.result.name: outcome for outcome in order})

    def save(self, directory: Path) -> None:
        points = [
            {"name": name, "steps": steps, "episode_return": value}
            for name, outcome in self.outcomes.items()
            for steps, value in outcome.curve
        ]
        write_whole(directory / "curves.csv", to_csv(points, ["name", "steps", "episode_return"]))
        rows = [{"name": name} | row._asdict() for name, outcome in self.outcomes.items() for row in outcome.evaluations]
        write_whole(directory / "evaluations.csv", to_csv(rows, ["name", *Evaluated._fields]))
        measured = [
            {"name": name, "measure": measure, "value": value}
            for name, outcome in self.outcomes.items()
            for measure, value in outcome.measures.items()
        ]
        write_whole(directory / "measures.csv", to_csv(measured, ["name", "measure", "value"]))
        about = {name: outcome.about for name, outcome in self.outcomes.items()}
        write_whole(directory / "about.json", json.dumps(about, indent=2) + "\n")
        write_whole(
            directory / "runs.csv", to_csv([asdict(row) for row in self.rows], [f.name for f in fields(Result)])
        )  # last: it says what there is

    @staticmethod
    def load(directory: Path) -> "Results":
        """The results in a directory; none if there are none yet."""
        if not (directory / "runs.csv").exists():
            return Results({})
        try:
            about = dict(json.loads((directory / "about.json").read_text()))
            curves: dict[str, list[tuple[int, float]]] = {}
            for point in from_csv(directory / "curves.csv"):
                curves.setdefault(point["name"], []).append((int(point["steps"]), float(point["episode_return"])))
            evaluations: dict[str, list[Evaluated]] = {}
            for row in from_csv(directory / "evaluations.csv"):
                name, steps, *values = row.values()
                evaluations.setdefault(name, []).append(Evaluated(int(steps), *(float(x or nan) for x in values)))
            measures: dict[str, dict[str, float]] = {}
            for point in from_csv(directory / "measures.csv") if (directory / "measures.csv").exists() else ():
                measures.setdefault(point["name"], {})[point["measure"]] = float(point["value"])
            rows = records(Result, from_csv(directory / "runs.csv"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{directory}: not the results of studies ({type(error).__name__}: {error}).") from error
        return Results(
            {
                row.name: Outcome(
                    row,
                    tuple(curves.get(row.name, ())),
                    about.get(row.name, {}),
                    tuple(evaluations.get(row.name, ())),
                    measures.get(row.name, {}),
                )
                for row in rows
            }
        )
