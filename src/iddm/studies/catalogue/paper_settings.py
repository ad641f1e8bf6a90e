"""The paper's settings to the letter, from as many demonstrations as the paper has."""

from iddm.report.table import Table
from iddm.studies.report.formatting import interval, lines, returns
from iddm.studies.report.tables import INTERVAL, OVER_SEEDS, by_variant
from iddm.studies.spec import SAME_AS_GAIFO, UNTRAINED, Grid
from iddm.studies.study import Section, ShowTable, Study
from iddm.studies.study_results import StudyResults

TASKS = ("HalfCheetah", "Hopper", "Ant")
EXPERTS = {"expert:50": "most likely actions", "expert:50:stochastic": "sampled actions"}
"""Fifty episodes of 1000 steps: the paper's 50,000 transitions. It does not say whether its expert's actions are sampled."""


def by_expert(known: StudyResults) -> Table:
    """Every method by how the expert acted."""
    return by_variant(
        known,
        "expert",
        lambda cell: EXPERTS.get(cell.setting("demos"), cell.spec.flags),
        lambda cell: lines(returns(cell), interval(cell)),
        f"Fifty episodes of the bundled expert. {OVER_SEEDS} Below: [{INTERVAL}].",
    )


PAPER = Study(
    "paper",
    "The paper's settings instead of ours",
    (
        Grid(TASKS, UNTRAINED),
        Grid(
            TASKS,
            ("gail", "gaifo", SAME_AS_GAIFO, "gaifo-s", "iddm"),
            tuple({"preset": "paper", "demos": demos} for demos in EXPERTS),
        ),
    ),
    seeds=3,
    in_paper="Table 3",
    sections=(Section((ShowTable("paper", by_expert),)),),
)
