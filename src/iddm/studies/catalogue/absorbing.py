"""Absorbing states in the discriminator."""

from iddm.report.table import Table
from iddm.studies.report.formatting import name_of, returns
from iddm.studies.report.tables import OVER_SEEDS
from iddm.studies.spec import SAME_AS_GAIFO, Grid
from iddm.studies.study import Section, ShowTable, Study
from iddm.studies.study_results import StudyResults

SETTING = "adversarial.absorbing"


def without_and_with(known: StudyResults) -> Table:
    """Returns without and with absorbing states."""
    found = {(cell.spec.task, cell.spec.method, cell.setting(SETTING)): cell for cell in known.cells}
    rows = tuple(
        (task, name_of(method), *(returns(found.get((task, method, on))) for on in (False, True)))
        for task, method in dict.fromkeys((cell.spec.task, cell.spec.method) for cell in known.cells)
    )
    return Table(("task", "method", "without", "with absorbing states"), rows, 2, OVER_SEEDS)


ABSORBING = Study(
    "absorbing",
    "Absorbing states, which take the survival bonus out of the reward",
    (Grid(("Hopper", "HalfCheetah"), ("iddm", "gaifo", SAME_AS_GAIFO), ({}, {SETTING: True})),),
    seeds=3,
    sections=(Section((ShowTable("absorbing", without_and_with),)),),
)
