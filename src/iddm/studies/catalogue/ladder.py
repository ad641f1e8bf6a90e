"""From the paper's settings to ours, one change at a time."""

from itertools import pairwise

from iddm.report.table import Table
from iddm.studies.catalogue.light import LIGHTER, MORE_LIGHTLY
from iddm.studies.core import Settings, config_of, setting
from iddm.studies.report.formatting import interval, lines, mean_of, name_of, returns
from iddm.studies.report.tables import INTERVAL, OVER_SEEDS, by_variant
from iddm.studies.spec import SAME_AS_GAIFO, Grid
from iddm.studies.statistics import BySeed, paired_differences
from iddm.studies.study import Section, ShowTable, Study
from iddm.studies.study_results import StudyResults

TASK = "HalfCheetah"

SHARED_CHANGES: dict[str, tuple[str, ...]] = {
    "initial noise": ("log_std_init",),
    "annealing": ("ppo.anneal",),
    "gradient penalty": ("adversarial.gradient_penalty",),
}
CHANGES = {
    "gaifo": SHARED_CHANGES,
    SAME_AS_GAIFO: SHARED_CHANGES,
    "iddm": SHARED_CHANGES
    | {
        "estimator": ("mi.estimator", "mi.updates", "mi.first_updates", "mi.first_iterations", "mi.batch_size"),
        "standardising": ("mi.standardise",),
        "weights": ("mi.weight", "entropy.weight"),
    },
}
"""By method: what is changed to our value, rung by rung; each rung keeps the changes before it."""


def rungs(method: str) -> dict[str, Settings]:
    """The settings of each rung by its name, from the paper's to ours."""
    ours = config_of(TASK, method, {})
    settings: Settings = {"preset": "paper", **LIGHTER}
    if method == "iddm":  # a light critic as well: the paper's pretraining of a large one takes longer than all the rest
        settings["mi.hidden"] = setting(ours, "mi.hidden")
    found: dict[str, Settings] = {"the paper's settings": settings}
    for change, names in CHANGES[method].items():
        settings = {**settings, **{name: setting(ours, name) for name in names}}
        found[f"+ {change}"] = settings
    return found


_NAMES = {
    (method, spec.settings): name
    for method in CHANGES
    for name, settings in rungs(method).items()
    for spec in Grid((TASK,), (method,), (settings,)).runs(seeds=1)
}


def by_rung(known: StudyResults) -> Table:
    return by_variant(
        known,
        "settings",
        lambda cell: _NAMES.get((cell.spec.method, cell.spec.settings), cell.spec.flags),
        lambda cell: lines(returns(cell), interval(cell)),
        f"{TASK} from ten episodes, {MORE_LIGHTLY}, the information's critic as in ours. Each row keeps the changes of the rows "
        f"above. {OVER_SEEDS} Below: [{INTERVAL}].",
    )


def by_change(known: StudyResults) -> Table:
    """What each change adds to the return, over pairs of runs with the same seed."""
    found: dict[str, dict[str, BySeed]] = {method: {} for method in CHANGES}
    for cell in known.cells:
        if name := _NAMES.get((cell.spec.method, cell.spec.settings)):
            found[cell.spec.method][name] = {result.seed: result.mean for result in cell.results}

    def added(method: str, before: str, after: str) -> list[float]:
        ends = [{TASK: found[method].get(name, {})} for name in (after, before)]
        return paired_differences(*ends).get(TASK, [])

    rows = []
    for before, after in pairwise(rungs("iddm")):
        gaifo, control, iddm = (added(method, before, after) for method in CHANGES)
        rows.append((after, *(mean_of(values, digits=0) for values in (gaifo, control, gaifo + control, iddm))))
    caption = (
        "What the change adds to the return of the row above it: mean over pairs of runs with the same seed "
        f"[{INTERVAL}]. The control is GAIfO by another name, so their pairs may be taken together."
    )
    both = f"{name_of('gaifo')} and its control"
    return Table(("change", *map(name_of, ("gaifo", SAME_AS_GAIFO)), both, name_of("iddm")), tuple(rows), 1, caption)


LADDER = Study(
    "ladder",
    "From the paper's settings to ours, one change at a time",
    tuple(Grid((TASK,), (method,), tuple(rungs(method).values())) for method in CHANGES),
    seeds=3,
    sections=(Section((ShowTable("ladder", by_rung), ShowTable("ladder-changes", by_change))),),
)
