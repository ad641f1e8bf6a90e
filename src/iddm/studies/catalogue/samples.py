"""How much experience each method needs, from one episode and from ten."""

from iddm.report.table import Table
from iddm.studies.catalogue.demonstrations import amount
from iddm.studies.core import Settings
from iddm.studies.report.formatting import returns
from iddm.studies.report.tables import OVER_SEEDS, by_variant
from iddm.studies.spec import SAME_AS_GAIFO, UNTRAINED, Grid
from iddm.studies.study import Section, ShowTable, Study
from iddm.studies.study_results import Cell, StudyResults

TASKS = ("HalfCheetah", "Hopper", "Ant")
"""Walker2d joins them once an expert is bundled."""

LEARNERS = ("ppo",)
"""Of the adversarial methods; the first is the default."""


def last_policy(known: StudyResults) -> Table:
    """The last policy's return by learner and number of episodes."""

    def variant(cell: Cell) -> str:
        return f"{dict(cell.spec.settings).get('learner', LEARNERS[0])}, {amount(cell)}"

    return by_variant(known, "learner, demonstrations", variant, returns, f"Return of the last policy. {OVER_SEEDS}")


def _variants(learners: tuple[str, ...]) -> tuple[Settings, ...]:
    chosen = ({} if learner == LEARNERS[0] else {"learner": learner} for learner in learners)
    return tuple({**learner, **episodes} for learner in chosen for episodes in ({"demo_episodes": 1}, {}))  # {}: all ten


SAMPLES = Study(
    "samples",
    "How much experience each method needs, from one episode and from ten",
    (
        Grid(TASKS, UNTRAINED),
        Grid(TASKS, ("gaifo", "iddm"), _variants(LEARNERS)),
        Grid(TASKS, (SAME_AS_GAIFO,), _variants(LEARNERS[:1])),
        Grid(TASKS, ("bco",), _variants(LEARNERS[:1])),
    ),
    seeds=3,
    sections=(Section((ShowTable("samples", last_policy),)),),
)
