"""How much experience each method needs, from one episode and from ten."""

from math import inf, isfinite
from statistics import median
from typing import Any

from iddm.report.charts import Points, chart, line
from iddm.report.table import Table
from iddm.studies.catalogue.demonstrations import amount
from iddm.studies.catalogue.light import LONG
from iddm.studies.core import Settings
from iddm.studies.report.formatting import name_of, returns
from iddm.studies.report.tables import OVER_SEEDS, by_variant
from iddm.studies.results import Outcome
from iddm.studies.spec import EXPERT, SAME_AS_GAIFO, UNTRAINED, Grid
from iddm.studies.study import Section, ShowChart, ShowTable, Study
from iddm.studies.study_results import Cell, StudyResults

STEPS = {"HalfCheetah": 100_000, "Hopper": 100_000, "Ant": 400_000}
"""Off-policy and of BCO, from ten episodes; from one, twice as many as 90 % of the expert may take."""
FROM_ONE = STEPS | {"Hopper": 200_000}
EVALUATIONS = 50
SPARSE_EVALUATIONS = 20
"""On-policy and of BCO."""
SHARES = (80, 90, 95)
"""Percent of the expert's return whose first evaluation is looked for."""
OFF_POLICY = "sac"
ON_POLICY: Settings = {**LONG, "evaluations": SPARSE_EVALUATIONS}


def learner(cell: Cell) -> str:
    return f"{cell.spec.learner}, {amount(cell)}"


def last_policy(known: StudyResults) -> Table:
    """The last policy's return by learner and number of episodes."""
    return by_variant(known, "learner, demonstrations", learner, returns, f"Return of the last policy. {OVER_SEEDS}")


def reached(outcome: Outcome, goal: float) -> tuple[float, float]:
    """Steps and seconds of the first evaluation at this return; infinite where there is none."""
    seconds = outcome.about.get("evaluated_at", [])
    found = [(row.steps, at) for row, at in zip(outcome.evaluations, seconds, strict=False) if row.evaluation_return >= goal]
    return found[0] if found else (inf, inf)


def expert_return(known: StudyResults, task: str) -> float | None:
    cell = known.find(task, EXPERT)
    return None if cell is None else cell.spread.mean


def evaluated_cells(known: StudyResults) -> list[Cell]:
    return [cell for cell in known.cells if all(outcome.evaluations for outcome in cell.outcomes)]


def until(known: StudyResults) -> Table:
    """Environment steps (and seconds) until the first evaluation at a share of the expert's return."""
    rows = []
    for cell in evaluated_cells(known):
        expert = expert_return(known, cell.spec.task)
        if expert is None or cell.spec.method in UNTRAINED:
            continue
        goals = [[reached(outcome, share / 100 * expert) for outcome in cell.outcomes] for share in SHARES]
        rows.append((cell.spec.task, learner(cell), name_of(cell.spec.method), *map(_middle, goals), str(len(cell.outcomes))))
    caption = (
        "Thousands of environment steps until the first evaluation (four episodes, most likely actions) at a share of the "
        "expert's return, and seconds of training on one core: median over seeds; never, where the median seed did not arrive."
    )
    return Table(
        ("task", "learner, demonstrations", "method", *(f"{share} %" for share in SHARES), "seeds"), tuple(rows), 3, caption
    )


def _middle(found: list[tuple[float, float]]) -> str:
    steps, seconds = (median(values) for values in zip(*found, strict=True))
    return f"{steps / 1000:,.0f} ({seconds:,.0f} s)" if isfinite(steps) else "never"


def charts(known: StudyResults) -> list[dict[str, Any]]:
    """Per task, the evaluations' returns over steps and over seconds, a line per method and learner."""
    made = []
    for task in known.tasks:
        cells = [cell for cell in evaluated_cells(known) if cell.spec.task == task and cell.spec.method not in UNTRAINED]
        expert = expert_return(known, task)
        marks = [] if expert is None else [{"label": "expert", "value": round(expert, 1)}]
        for unit in ("steps", "seconds"):
            made += chart(f"{task}, over {unit}", [_line(cell, unit) for cell in cells], marks)
    return made


def _line(cell: Cell, unit: str) -> dict[str, Any] | None:
    """In its method's colour; dashed where there is one episode to learn from."""
    how = amount(cell) if cell.spec.learner == cell.spec.method else learner(cell)
    drawn = line(f"{name_of(cell.spec.method)}, {how}", [_points(outcome, unit) for outcome in cell.outcomes])
    return drawn and drawn | {"variantOf": cell.spec.method, "dashed": cell.setting("demo_episodes") == 1}


def _points(outcome: Outcome, unit: str) -> Points:
    x = [row.steps for row in outcome.evaluations] if unit == "steps" else outcome.about.get("evaluated_at", [])
    return [(at, row.evaluation_return) for at, row in zip(x, outcome.evaluations, strict=False)]


def off_policy(steps: int, evaluations: int = EVALUATIONS) -> Settings:
    return {"learner": OFF_POLICY, "steps": steps, "evaluations": evaluations}


def cloning(task: str) -> Settings:
    """BCO's."""
    return {"steps": STEPS[task], "evaluations": SPARSE_EVALUATIONS}


def _grids(task: str) -> tuple[Grid, ...]:
    one: Settings = {"demo_episodes": 1}
    most_seeds = 3 if task == "Ant" else None
    return (
        Grid((task,), UNTRAINED),
        Grid((task,), ("gaifo", "iddm"), ({**off_policy(FROM_ONE[task]), **one}, off_policy(STEPS[task])), most_seeds),
        Grid((task,), ("gaifo", "iddm"), ({**ON_POLICY, **one}, ON_POLICY), most_seeds),
        Grid((task,), (SAME_AS_GAIFO,), (off_policy(STEPS[task]), ON_POLICY), most_seeds),
        Grid((task,), ("bco",), ({**cloning(task), **one}, cloning(task)), most_seeds),
    )


SAMPLES = Study(
    "samples",
    "How much experience each method needs, from one episode and from ten",
    tuple(grid for task in STEPS for grid in _grids(task)),
    seeds=5,
    sections=(
        Section(
            (
                ShowTable("samples-until", until),
                ShowTable("samples", last_policy),
                ShowChart(charts, by_method=False),
            )
        ),
    ),
)
