"""Ant with more steps than the other tasks have."""

from iddm.studies.report.tables import by_method
from iddm.studies.spec import EXPERT, SAME_AS_GAIFO, Grid
from iddm.studies.study import Section, ShowTable, Study

ANT = Study(
    "ant",
    "Ant with three times the steps",
    (Grid(("Ant",), ("random", "gaifo", SAME_AS_GAIFO, "iddm", EXPERT), ({"steps": 3_000_000},)),),
    seeds=1,
    sections=(Section((ShowTable("ant", by_method),)),),
)
