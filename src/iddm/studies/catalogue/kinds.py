"""Tasks of all kinds with one default: survival, fixed length, ends at a goal, landing, resting at a target."""

from collections.abc import Iterable, Sequence
from math import inf, isnan, nan
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from iddm.report.table import NOTHING, Table
from iddm.studies import paper
from iddm.studies.catalogue import samples
from iddm.studies.core import Settings
from iddm.studies.report.formatting import listed, name_of, number, published, returns
from iddm.studies.report.tables import INTERVAL, OR_EPISODES, normalised_score
from iddm.studies.results import Evaluated, Outcome
from iddm.studies.spec import EXPERT, SAME_AS_GAIFO, SIX, UNTRAINED, Grid
from iddm.studies.study import Section, ShowTable, Study
from iddm.studies.study_results import Cell, StudyResults

KINDS = {
    "Hopper": "survival",
    "Ant": "survival",
    "CartPole": "survival",
    "InvertedPendulum": "survival",
    "InvertedDoublePendulum": "survival",
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

STEPS = samples.STEPS | {
    "InvertedPendulum": 20_000,
    "InvertedDoublePendulum": 40_000,
    "Pendulum": 20_000,
    "Reacher": 20_000,
    "MountainCarContinuous": 20_000,
    "PointMass": 20_000,
    "LunarLanderContinuous": 60_000,
}
"""Off-policy; on-policy, `PPO_STEPS`."""
PPO_STEPS, BCO_STEPS = 300_000, 100_000
EVALUATIONS = 20
APART = 0.05
"""Returns that differ by less, in parts of the way from random actions to the expert, may differ by chance."""

FORM = "adversarial.reward_form"
OLD: Settings = {"steps": PPO_STEPS, FORM: "softplus", "adversarial.absorbing": False}
"""The default before: PPO everywhere, and a reward that is never negative."""


def default(task: str) -> Settings:
    """The default's settings: off-policy where actions are continuous. Runs that Table 2 or `samples` have are theirs."""
    if task in DISCRETE:
        return {} if task in SIX else {"steps": PPO_STEPS, "evaluations": EVALUATIONS}
    return samples.off_policy(STEPS[task], samples.EVALUATIONS if task in samples.STEPS else EVALUATIONS)


def columns(cell: Cell) -> tuple[str, ...]:
    """Which columns of the table a cell belongs to: on CartPole the default has not changed."""
    name, task = name_of(cell.spec.method), cell.spec.task
    if cell.spec.method not in ("gaifo", "iddm"):
        return (name,)
    on_policy = cell.spec.learner == "ppo"
    before = on_policy if task in SIX else cell.setting(FORM) == OLD[FORM]
    now = not on_policy or (task in DISCRETE and not cell.setting(FORM))
    return (name,) * now + (f"{name}, old default",) * before


IN_README = ("random", "gaifo", "iddm", EXPERT)
COLUMNS = (
    *map(name_of, ("iddm", "gaifo", SAME_AS_GAIFO)),
    *(f"{name_of(method)}, old default" for method in ("iddm", "gaifo")),
    *map(name_of, ("bco", "none")),
)


def by_column(known: StudyResults) -> dict[tuple[str, str], Cell]:
    """The cells by task and column."""
    return {(cell.spec.task, name): cell for cell in known.cells for name in columns(cell)}


def shares(known: StudyResults) -> Table:
    """Every task's share of the expert's return, by method and default."""
    found = by_column(known)

    def row(task: str) -> tuple[str, ...]:
        cells = (found.get((task, name)) for name in COLUMNS)
        ends = (returns(found.get((task, name_of(method)))) for method in UNTRAINED)
        return task, KINDS[task], *(NOTHING if cell is None else normalised_score(known, cell) for cell in cells), *ends

    caption = (
        f"Normalised score (random actions 0 %, expert 100 %) of the last policy: mean over seeds [{INTERVAL}] (number of "
        "seeds). From ten episodes of states; but for the number of steps, the settings are the same on every task: IDDM, GAIfO "
        f"and the constant reward learn with SAC, and on {listed(DISCRETE)} with PPO. Old default: PPO, {PPO_STEPS:,} steps, a "
        f"reward that is never negative, no absorbing states; on {listed(list(samples.STEPS))} {samples.ON_POLICY['steps']:,} "
        "steps, with small networks. On "
        f"{listed([task for task in KINDS if task in SIX])} the constant reward is Table 2's, and on "
        f"{listed([task for task in KINDS if task in SIX and task not in samples.STEPS])} the old default and BCO are too. The "
        "last two columns are returns, over episodes."
    )
    ends = map(name_of, UNTRAINED)
    return Table(("task", "kind", *COLUMNS, *ends), tuple(map(row, known.tasks)), 2, caption)


def compact(known: StudyResults) -> Table:
    """The default's returns, beside the paper's."""
    found = by_column(known)

    def row(task: str) -> tuple[str, ...]:
        ours = [found.get((task, name_of(method))) for method in IN_README]
        steps = max((cell.spec.steps for cell in ours if cell and cell.spec.method not in UNTRAINED), default=None)
        theirs = (published(paper.TABLE_2[method].get(task)) for method in ("iddm", EXPERT))
        return task, f"{steps:,}" if steps else NOTHING, *map(returns, ours), *theirs

    names = (*map(name_of, IN_README), "IDDM in the paper", "expert in the paper")
    return Table(("task", "steps", *names), tuple(map(row, known.tasks)), caption=OR_EPISODES)


class Choice(NamedTuple):
    """The returns of three of a run's evaluated policies."""

    chosen: float
    """Of the policy that is kept: the closest to held-out demonstrations, the later of equals."""
    best: float
    last: float


def measured(outcome: Outcome) -> list[Evaluated]:
    """The evaluations that have a closeness."""
    return [row for row in outcome.evaluations if not isnan(row.closeness)]


def choice(rows: Sequence[Evaluated]) -> Choice:
    chosen = max(rows, key=lambda row: (row.closeness, row.steps))
    return Choice(chosen.evaluation_return, max(row.evaluation_return for row in rows), rows[-1].evaluation_return)


def correlation(rows: Iterable[Evaluated]) -> float | None:
    """Spearman's, of closeness with the return; None where all of either are equal."""
    close, paid = zip(*((row.closeness, row.evaluation_return) for row in rows), strict=True)
    if len(set(close)) == 1 or len(set(paid)) == 1:
        return None
    return float(spearmanr(close, paid)[0])  # pyright: ignore[reportArgumentType]


def somers_d(rows: Sequence[Evaluated], apart: float) -> float | None:
    """Somers' rank correlation D of closeness with the return, where returns that are less than this apart are ties.

    Of the pairs that are no ties: the share where the better one is closer, less the share where it is farther.
    """
    close, paid = (np.array([getattr(row, name) for row in rows]) for name in ("closeness", "evaluation_return"))
    better = paid[:, None] - paid >= apart
    if not better.any():
        return None
    return float(np.sign(close[:, None] - close)[better].mean())


def closeness(known: StudyResults) -> Table:
    """Per task: whether closeness ranks policies as the return does, and which policy it chooses."""
    rows, found = [], []
    for task in known.tasks:
        runs = [(cell, evaluated) for cell in known.cells for o in cell.outcomes if (evaluated := measured(o))]
        runs = [(cell, evaluated) for cell, evaluated in runs if cell.spec.task == task and cell.spec.method not in UNTRAINED]
        of_default = [evaluated for cell, evaluated in runs if set(columns(cell)) & set(COLUMNS[:2])]
        if not of_default:
            continue
        every = [row for _, evaluated in runs for row in evaluated]
        within = [value for evaluated in of_default if (value := correlation(evaluated)) is not None]
        values = (median(within) if within else None, correlation(every), somers_d(every, APART * full_range(known, task)))
        found.append(values)
        means = (number(fmean(returns)) for returns in zip(*map(choice, of_default), strict=True))
        rows.append((task, KINDS[task], *map(shown, values), *means, f"{len(of_default)} of {len(runs)}"))
    if rows:
        medians = (median([value for value in values if value is not None] or [nan]) for values in zip(*found, strict=True))
        rows.append(("median of the tasks", "", *map(shown, medians), *[""] * 4))
    caption = (
        "Over evaluations while learning (four episodes each, more where they are short): Spearman's rank correlation of "
        "closeness with the return. Within a run: IDDM and GAIfO with the default, median over runs. Over all runs: the "
        "evaluations of all of the task's runs in one, those of the old default, the controls and BCO too, as far as they have "
        f"any. Somers' D: the rank correlation of the same where returns that differ by less than {APART:.0%} of the "
        "way from random actions to the expert are ties (0.9: of two policies that are no tie, the better one is closer in 95 % "
        "of cases; absent where all are). Then, of the default's runs, the mean return of the policy that closeness chooses, of "
        "the best one, and of the last one; and how many of all runs are the default's."
    )
    names = ("task", "kind", "within a run", "over all runs", "Somers' D", "chosen", "best", "last", "runs")
    return Table(names, tuple(rows), 2, caption)


def full_range(known: StudyResults, task: str) -> float:
    """Of returns: from random actions to the expert; infinite where one is missing."""
    worst, best = (known.find(task, method) for method in ("random", EXPERT))
    return inf if worst is None or best is None else best.spread.mean - worst.spread.mean


def shown(value: float | None) -> str:
    return NOTHING if value is None or isnan(value) else f"{value:.2f}"


def _grids(task: str) -> tuple[Grid, ...]:
    now, before, cloning = default(task), OLD, {"steps": BCO_STEPS}
    if task in samples.STEPS:
        before, cloning = samples.ON_POLICY, samples.cloning(task)
    elif task in SIX:
        before = cloning = {}
    return (
        Grid((task,), UNTRAINED),
        Grid((task,), ("iddm", "gaifo", SAME_AS_GAIFO), (now,)),
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
    only_docs=(ShowTable("compact", compact, file="README.md"),),
)
