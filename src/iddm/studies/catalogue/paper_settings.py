"""The paper's settings to the letter."""

from iddm.studies.report.tables import by_method
from iddm.studies.spec import UNTRAINED, Grid
from iddm.studies.study import Section, ShowTable, Study

TASKS = ("HalfCheetah", "Hopper", "Ant")

PAPER = Study(
    "paper",
    "The paper's settings instead of ours",
    (Grid(TASKS, UNTRAINED), Grid(TASKS, ("gail", "gaifo", "gaifo-s", "iddm"), ({"preset": "paper"},))),
    seeds=3,
    in_paper="Table 3",
    sections=(Section((ShowTable("paper", by_method),)),),
)
