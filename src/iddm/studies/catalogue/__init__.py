"""Every study. To add one, write a file like those here and add its value to `STUDIES`."""

from iddm.errors import UserError
from iddm.studies.catalogue.absorbing import ABSORBING
from iddm.studies.catalogue.ant import ANT
from iddm.studies.catalogue.demonstrations import DEMOS
from iddm.studies.catalogue.gridworld import TOY
from iddm.studies.catalogue.kinds import TASKS_OF_ALL_KINDS
from iddm.studies.catalogue.ladder import LADDER
from iddm.studies.catalogue.paper_settings import PAPER
from iddm.studies.catalogue.redundant import REDUNDANT
from iddm.studies.catalogue.samples import SAMPLES
from iddm.studies.catalogue.table2 import CURVES, TABLE_2
from iddm.studies.catalogue.weights import GRID, LAMBDA_P, LAMBDA_S
from iddm.studies.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        TABLE_2,
        CURVES,
        DEMOS,
        LAMBDA_P,
        LAMBDA_S,
        GRID,
        PAPER,
        LADDER,
        REDUNDANT,
        SAMPLES,
        TASKS_OF_ALL_KINDS,
        ANT,
        ABSORBING,
        TOY,
    )
}
"""In the order of the page and of the docs."""


def find_study(name: str) -> Study:
    if name not in STUDIES:
        raise UserError(f"There is no study '{name}'; choose from {', '.join(STUDIES)}.")
    return STUDIES[name]
