"""Tasks of all kinds with one default: survival, fixed length, ends at a goal, landing, resting at a target."""

from math import isnan
from statistics import fmean, median
from typing import NamedTuple

from scipy.stats import spearmanr

from iddm.report.table import NOTHING, Table
from iddm.studies.catalogue import samples
from iddm.studies.core import Settings
from iddm.studies.report.formatting import listed, name_of, number, returns
from iddm.studies.report.tables import INTERVAL, normalised_score
from iddm.studies.results import Outcome
from iddm.studies.spec import SAME_AS_GAIFO, SIX, UNTRAINED, Grid
from iddm.studies.study import Section, ShowTable, Study
from iddm.studies.study_results import Cell, StudyResults

KINDS = {
    "Hopper": "survival",
    "CartPole": "survival",
    "HalfCheetah": "fixed length",
    "Pendulum": "fixed length",
    "Reacher": "fixed length",
    "MountainCarContinuous": "ends at the goal",
    "Acrobot": "ends at the goal",
    "Gridworld": "ends at the goal",
    "LunarLanderContinuous": "landing",
    "PointMass": "resting at a target",
}
DISCRETE = ("CartPole", "Acrobot", "Gridworld")
"""Tasks whose actions are choices, which SAC cannot learn."""

STEPS = {
    "Pendulum": 20_000,
    "Reacher": 20_000,
    "MountainCarContinuous": 20_000,
    "PointMass": 20_000,
    "LunarLanderContinuous": 60_000,
}
"""Off-policy, where `samples` has none; on-policy, `PPO_STEPS`."""
PPO_STEPS, BCO_STEPS = 300_000, 100_000
EVALUATIONS = 20

FORM = "adversarial.reward_form"
OLD: Settings = {"steps": PPO_STEPS, FORM: "softplus", "adversarial.absorbing": False}
"""The default before: PPO everywhere, and a reward that is never negative."""


def default(task: str) -> Settings:
    """The default's settings: off-policy where actions are continuous. Runs that Table 2 or `samples` have are theirs."""
    if task in samples.STEPS:
        return samples.off_policy(task)
    if task in DISCRETE:
        return {} if task in SIX else {"steps": PPO_STEPS, "evaluations": EVALUATIONS}
    return {"learner": samples.OFF_POLICY, "steps": STEPS[task], "evaluations": EVALUATIONS}


def columns(cell: Cell) -> tuple[str, ...]:
    """Which columns of the table a cell belongs to: on CartPole the default has not changed."""
    name, task = name_of(cell.spec.method), cell.spec.task
    if cell.spec.method not in ("gaifo", "iddm"):
        return (name,)
    on_policy = cell.spec.config.learner.name == "ppo"
    before = on_policy if task in SIX else cell.setting(FORM) == OLD[FORM]
    now = not on_policy or (task in DISCRETE and not cell.setting(FORM))
    return (name,) * now + (f"{name}, old default",) * before


COLUMNS = (
    *map(name_of, ("iddm", "gaifo", SAME_AS_GAIFO)),
    *(f"{name_of(method)}, old default" for method in ("iddm", "gaifo")),
    *map(name_of, ("bco", "none")),
)


def shares(known: StudyResults) -> Table:
    """Every task's share of the expert's return, by method and default."""
    found = {(cell.spec.task, name): cell for cell in known.cells for name in columns(cell)}

    def row(task: str) -> tuple[str, ...]:
        cells = (found.get((task, name)) for name in COLUMNS)
        ends = (returns(found.get((task, name_of(method)))) for method in UNTRAINED)
        return task, KINDS[task], *(NOTHING if cell is None else normalised_score(known, cell) for cell in cells), *ends

    caption = (
        f"Normalised score (random actions 0 %, expert 100 %) of the last policy: mean over seeds [{INTERVAL}] (number of "
        "seeds). From ten episodes of states; but for the number of steps, the settings are the same on every task: IDDM, GAIfO "
        f"and the constant reward learn with SAC, and on {listed(DISCRETE)} with PPO. Old default: PPO, {PPO_STEPS:,} steps, a "
        "reward that is never negative, no absorbing states. On "
        f"{listed([task for task in KINDS if task in SIX])} the old default, BCO and the constant reward are Table 2's runs. The "
        "last two columns are returns, over episodes."
    )
    ends = map(name_of, UNTRAINED)
    return Table(("task", "kind", *COLUMNS, *ends), tuple(map(row, known.tasks)), 2, caption)


class Followed(NamedTuple):
    """A run's evaluations: whether closeness followed the return, and the returns of three of its policies."""

    correlation: float | None
    """Spearman's; None where all returns, or all closenesses, are the same."""
    chosen: float
    """Of the policy that is kept: the closest to held-out demonstrations, the later of equals."""
    best: float
    last: float


def followed(outcome: Outcome) -> Followed | None:
    """None where closeness was not measured."""
    rows = [row for row in outcome.evaluations if not isnan(row.closeness)]
    if not rows:
        return None
    paid, close = [row.evaluation_return for row in rows], [row.closeness for row in rows]
    constant = len(set(paid)) == 1 or len(set(close)) == 1
    chosen = max(rows, key=lambda row: (row.closeness, row.steps))
    correlation = None if constant else float(spearmanr(close, paid)[0])  # pyright: ignore[reportArgumentType]
    return Followed(correlation, chosen.evaluation_return, max(paid), paid[-1])


def closeness(known: StudyResults) -> Table:
    """Per task, over the runs of the default: the rank correlation of closeness with the return, and which policy it chooses."""
    rows, correlations = [], []
    for task in known.tasks:
        cells = [cell for cell in known.cells if cell.spec.task == task and set(columns(cell)) & set(COLUMNS[:2])]
        runs = [run for cell in cells for outcome in cell.outcomes if (run := followed(outcome))]
        if not runs:
            continue
        found = [run.correlation for run in runs if run.correlation is not None]
        correlations += [median(found)] if found else []
        means = (number(fmean(values)) for values in list(zip(*runs, strict=True))[1:])
        rows.append((task, KINDS[task], f"{median(found):.2f}" if found else NOTHING, *means, str(len(runs))))
    if correlations:
        rows.append(("median of the tasks", "", f"{median(correlations):.2f}", *[""] * 4))
    caption = (
        "Over the evaluations of a run (four episodes each), IDDM and GAIfO with the default: Spearman's rank correlation of "
        "closeness with the return, median over runs (absent where a run's returns are all the same), and the mean return of "
        "the policy that closeness chooses, of the best one, and of the last one."
    )
    return Table(("task", "kind", "rank correlation", "chosen", "best", "last", "runs"), tuple(rows), 2, caption)


def _grids(task: str) -> tuple[Grid, ...]:
    control = (SAME_AS_GAIFO,) if task in DISCRETE else ()  # it has no form for SAC
    now, before, cloning = default(task), OLD, {"steps": BCO_STEPS}
    if task in SIX:
        before = cloning = {}
    return (
        Grid((task,), UNTRAINED),
        Grid((task,), ("iddm", "gaifo", *control), (now,)),
        Grid((task,), ("iddm", "gaifo"), (before,)),
        Grid((task,), ("none",), ({} if task in SIX else now,)),
        Grid((task,), ("bco",), (cloning,)),
    )


TASKS_OF_ALL_KINDS = Study(
    "kinds",
    "Tasks of all kinds with one default",
    tuple(grid for task in KINDS for grid in _grids(task)),
    seeds=3,
    sections=(Section((ShowTable("kinds", shares), ShowTable("kinds-closeness", closeness))),),
)
