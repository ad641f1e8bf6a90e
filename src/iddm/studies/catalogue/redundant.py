"""Where actions are redundant in continuous control: several motors per joint."""

import json
from itertools import groupby

from iddm.report.table import Table
from iddm.studies.catalogue.light import LONG, LONG_LIGHTLY
from iddm.studies.catalogue.samples import off_policy
from iddm.studies.core import Settings
from iddm.studies.measures import DISAGREEMENT, NULL_ENERGY, TOLD_APART
from iddm.studies.report.formatting import mean_of, name_of, returns
from iddm.studies.report.tables import INTERVAL, OVER_SEEDS
from iddm.studies.spec import SAME_AS_GAIFO, UNTRAINED, Grid
from iddm.studies.statistics import BySeed, paired_differences
from iddm.studies.study import Section, ShowTable, Study
from iddm.studies.study_results import Cell, StudyResults

TASKS = ("redundant/HalfCheetah", "redundant/Hopper")
METHODS = ("gail", "gaifo", SAME_AS_GAIFO, "iddm", "iddm-inverse", "gaifo-effort")
THE_TWO = ("gaifo", "iddm")
OFF_POLICY: Settings = off_policy(60_000, evaluations=5)
LEARNERS = OFF_POLICY, LONG
FEW, MANY = (1, 2), 4
"""Motors per joint: with few, the two methods of the question; with many, all."""


def _with(motors: int, how: Settings) -> Settings:
    return {"env_kwargs": json.dumps({"motors": motors}), **how}


def motors_of(cell: Cell) -> int:
    return json.loads(cell.setting("env_kwargs"))["motors"]


def how_made(cell: Cell) -> tuple[str, str, str]:
    """Task, learner and number of motors per joint."""
    return cell.spec.task.partition("/")[2], cell.spec.learner, str(motors_of(cell))


def trained(known: StudyResults) -> list[Cell]:
    cells = [cell for cell in known.cells if cell.spec.method not in UNTRAINED]
    return sorted(cells, key=lambda cell: (TASKS.index(cell.spec.task), cell.spec.learner, motors_of(cell)))


def by_motors(known: StudyResults) -> Table:
    """Return, disagreement and null-space energy of each method by the number of motors per joint."""
    rows = [
        (
            *how_made(cell),
            name_of(cell.spec.method),
            returns(cell),
            mean_of(cell.measures(DISAGREEMENT)),
            mean_of(cell.measures(TOLD_APART)),
            mean_of(cell.measures(NULL_ENERGY), digits=3),
        )
        for cell in trained(known)
    ]
    caption = (
        f"From ten episodes; PPO {LONG_LIGHTLY}; SAC as it is by default, with {OFF_POLICY['steps']:,}. {OVER_SEEDS} "
        "Disagreement (iddm disagreement) in nats, on transitions that agent and expert share, of the runs where these are not "
        "too few (one, where there is no interval); "
        f"told apart: 0.5 where transitions are matched; brackets: {INTERVAL}."
    )
    heads = ("task", "learner", "motors", "method", "return", "disagreement", "told apart", "null-space energy")
    return Table(heads, tuple(rows), 4, caption)


COMPARED = ((None, 0), (DISAGREEMENT, 2), (NULL_ENERGY, 3))
"""The return (None) and measures, with their digits."""


def by_pair(known: StudyResults) -> Table:
    """IDDM minus GAIfO and minus its control, over pairs of runs with the same seed."""
    rows = []
    for made, group in groupby(trained(known), key=how_made):
        cells = {cell.spec.method: cell for cell in group}
        for method in ("gaifo", SAME_AS_GAIFO):
            if "iddm" in cells and method in cells:
                shown = [mean_of(_difference(cells["iddm"], cells[method], what), digits) for what, digits in COMPARED]
                rows.append((*made, f"{name_of('iddm')} − {name_of(method)}", *shown))
    caption = f"Mean over pairs of runs with the same seed [{INTERVAL}]. What parts GAIfO and its control is chance."
    heads = ("task", "learner", "motors", "difference", "return", "disagreement", "null-space energy")
    return Table(heads, tuple(rows), 4, caption)


def _difference(first: Cell, second: Cell, measure: str | None) -> list[float]:
    """By pairs of runs with the same seed."""

    def by_seed(cell: Cell) -> dict[str, BySeed]:
        values = {o.result.seed: o.result.mean if measure is None else o.measures.get(measure) for o in cell.outcomes}
        return {"": {seed: value for seed, value in values.items() if value is not None}}

    return paired_differences(by_seed(first), by_seed(second)).get("", [])


REDUNDANT = Study(
    "redundant",
    "Where actions are redundant: several motors per joint",
    (
        Grid(TASKS, UNTRAINED),
        *(Grid(TASKS, THE_TWO, tuple(_with(motors, how) for motors in FEW)) for how in LEARNERS),
        *(Grid(TASKS, METHODS, (_with(MANY, how),)) for how in LEARNERS),
    ),
    seeds=3,
    sections=(Section((ShowTable("redundant", by_motors), ShowTable("redundant-pairs", by_pair))),),
)
