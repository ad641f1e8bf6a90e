"""Where actions are redundant in continuous control: several motors per joint."""

import json

from iddm.report.table import Table
from iddm.studies.catalogue.light import LONG, LONG_LIGHTLY
from iddm.studies.catalogue.samples import off_policy
from iddm.studies.core import Settings
from iddm.studies.measures import DISAGREEMENT, NULL_ENERGY, TOLD_APART
from iddm.studies.report.formatting import mean_of, name_of, returns
from iddm.studies.report.tables import INTERVAL, OVER_SEEDS
from iddm.studies.spec import SAME_AS_GAIFO, UNTRAINED, Grid
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


def by_motors(known: StudyResults) -> Table:
    """Return, disagreement and null-space energy of each method by the number of motors per joint."""
    trained = [cell for cell in known.cells if cell.spec.method not in UNTRAINED]
    rows = [
        (
            cell.spec.task.partition("/")[2],
            cell.spec.learner,
            str(motors_of(cell)),
            name_of(cell.spec.method),
            returns(cell),
            mean_of(cell.measures(DISAGREEMENT)),
            mean_of(cell.measures(TOLD_APART)),
            mean_of(cell.measures(NULL_ENERGY), digits=3),
        )
        for cell in sorted(trained, key=lambda cell: (TASKS.index(cell.spec.task), cell.spec.learner, motors_of(cell)))
    ]
    caption = (
        f"From ten episodes; PPO {LONG_LIGHTLY}; SAC as it is by default, with {OFF_POLICY['steps']:,}. {OVER_SEEDS} "
        "Disagreement (iddm disagreement) in nats, on transitions that agent and expert share, absent where these are too few; "
        f"told apart: 0.5 where transitions are matched; brackets: {INTERVAL}."
    )
    heads = ("task", "learner", "motors", "method", "return", "disagreement", "told apart", "null-space energy")
    return Table(heads, tuple(rows), 4, caption)


REDUNDANT = Study(
    "redundant",
    "Where actions are redundant: several motors per joint",
    (
        Grid(TASKS, UNTRAINED),
        *(Grid(TASKS, THE_TWO, tuple(_with(motors, how) for motors in FEW)) for how in LEARNERS),
        *(Grid(TASKS, METHODS, (_with(MANY, how),)) for how in LEARNERS),
    ),
    seeds=3,
    sections=(Section((ShowTable("redundant", by_motors),)),),
)
