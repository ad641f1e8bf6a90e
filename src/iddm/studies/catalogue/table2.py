"""Every method on every task: the paper's Table 2, and the learning curves of the same runs."""

from iddm.report.markup import Markup, escaped
from iddm.report.table import Table
from iddm.studies import paper
from iddm.studies.core import has_discriminator
from iddm.studies.report.charts import curves
from iddm.studies.report.formatting import NOTHING, difference, listed, name_of, number, percent, published
from iddm.studies.report.tables import INTERVAL, by_method, every_cell
from iddm.studies.spec import CONTROLS, EPISODES, EXPERT, SAME_AS_GAIFO, SIX, UNTRAINED, Grid
from iddm.studies.statistics import (
    Estimate,
    Scores,
    mean_interval,
    mean_over_tasks,
    paired_differences,
    probability_of_improvement,
)
from iddm.studies.study import Section, ShowChart, ShowHtml, ShowTable, Study
from iddm.studies.study_results import AT_CEILING, StudyResults

METHODS = ("bc", "bco", "deepmimic", "gaifo-s", "gaifo", SAME_AS_GAIFO, "iddm", "gail", EXPERT)
STATE_ONLY = ("gaifo", "gaifo-s", "bco")
"""Methods that see what IDDM sees."""


def experts(known: StudyResults) -> Table:
    """The bundled experts, and the command that makes each."""
    rows = tuple(
        (
            task,
            f"`iddm expert {task}`",
            f"{number(cell.results[0].mean)} ± {number(cell.results[0].std)}",
            published(paper.TABLE_2[EXPERT].get(task)),
        )
        for task, cell in known.by_task(EXPERT).items()
    )
    caption = f"Mean ± standard deviation over {EPISODES} episodes of the most likely action."
    return Table(("task", "command", "return", "paper's expert"), rows, 2, caption)


def learned_scores(known: StudyResults) -> dict[str, dict[str, list[float]]]:
    """Normalised scores of the methods that learn, by method and task."""
    return {method: by_task for method, by_task in known.scores.items() if by_task and method not in UNTRAINED}


def where_it_counts(known: StudyResults, scores: Scores) -> Estimate | None:
    """The mean over the tasks that a constant reward does not solve; None where there is none."""
    below = {task: values for task, values in scores.items() if task not in known.tasks_at_ceiling}
    return mean_over_tasks(below) if below else None


def aggregate(known: StudyResults) -> Table:
    """Every method over all its tasks."""
    scores = learned_scores(known)
    rows = []
    for method, by_task in scores.items():
        better = None if method == "iddm" else probability_of_improvement(scores.get("iddm", {}), by_task)
        means = percent(mean_over_tasks(by_task)), percent(where_it_counts(known, by_task))
        rows.append((name_of(method), str(len(by_task)), str(sum(map(len, by_task.values()))), *means, percent(better)))
    caption = (
        "Normalised score (random actions 0 %, expert 100 %), mean over tasks of equal weight [95 % interval over seeds: "
        f"Welch's t]. {_ceiling(known)} IDDM better: how often a run of IDDM beats a run of the method on the same task "
        "[95 % interval: bootstrap within each task]. Intervals are absent where a task has one seed."
    )
    return Table(
        ("method", "tasks", "runs", "mean of all tasks", "below the ceiling", "IDDM better"), tuple(rows), caption=caption
    )


def _ceiling(known: StudyResults) -> str:
    tasks = known.tasks_at_ceiling
    if not tasks:
        return "Below the ceiling: the tasks on which a constant reward is not enough; here, all."
    are = "are at their ceiling" if len(tasks) > 1 else "is at its ceiling"
    return (
        f"{listed(tasks)} {are}: a constant reward reaches {100 * AT_CEILING:.0f} % there, so a high score is no evidence "
        "of imitation."
    )


def paired(known: StudyResults) -> Table:
    """IDDM against the other methods that see states alone, seed by seed."""
    pairs = [("iddm", method) for method in STATE_ONLY] + [(SAME_AS_GAIFO, "gaifo")]
    differences = {
        f"{name_of(one)} − {name_of(other)}": paired_differences(known.scores_by_seed(one), known.scores_by_seed(other))
        for one, other in pairs
        if one in known.methods and other in known.methods
    }

    def cell(values: list[float] | None) -> str:
        return f"{difference(mean_interval(values))} ({len(values)})" if values else NOTHING

    rows = tuple(
        (
            f"{task} (at its ceiling)" if task in known.tasks_at_ceiling else task,
            *(cell(by_task.get(task)) for by_task in differences.values()),
        )
        for task in known.tasks
        if any(task in by_task for by_task in differences.values())
    )
    caption = (
        "Difference of normalised scores in percentage points, positive where the first is better: mean over pairs of runs with "
        f"the same seed [{INTERVAL.replace('mean over seeds', 'mean over pairs').replace('one seed', 'one pair')}] (number of "
        "pairs). IDDM with weights 0 is GAIfO with other random numbers: what parts the two is chance."
    )
    return Table(("task", *differences), rows, caption=caption)


def discriminators(known: StudyResults) -> Table:
    """How long a discriminator gave no signal, in the worst run of each cell."""
    methods = [method for method in known.methods if method != EXPERT and has_discriminator(method)]

    def cell(task: str, method: str) -> str:
        found = known.find(task, method)
        return f"{100 * max(result.saturated for result in found.results):.1f} % ({len(found.results)})" if found else NOTHING

    rows = tuple((name_of(method), *(cell(task, method) for task in known.tasks)) for method in methods)
    caption = (
        "The longest stretch, as a share of the run, in which the discriminator classified more than 99 % of both sides "
        "correctly and its mean reward was below 0.01; the worst of all seeds (number of seeds)."
    )
    return Table(("method", *known.tasks), rows, caption=caption)


def forest(known: StudyResults) -> str:
    """Every method's mean over the tasks below the ceiling with its interval, on one scale from random actions to the expert."""
    found = {method: where_it_counts(known, by_task) for method, by_task in learned_scores(known).items()}
    estimates = {method: estimate for method, estimate in found.items() if estimate}
    if not estimates:
        return ""
    ends = [end for e in estimates.values() for end in (e.value, e.low, e.high) if end == end] + [0.0, 1.0]
    bottom, top = min(ends), max(ends)
    place = lambda value: f"{100 * (value - bottom) / (top - bottom):.2f}%"  # noqa: E731
    rows = ""
    for method, e in sorted(estimates.items(), key=lambda item: -item[1].value):
        interval = f'<i style="left:{place(e.low)};right:calc(100% - {place(e.high)})"></i>' if e.has_interval else ""
        kind = ' class="ours"' if method == "iddm" else ""
        bar = f'<span class="track">{interval}<b style="left:{place(e.value)}"></b></span>'
        rows += f"<li{kind}><span>{escaped(name_of(method))}</span>{bar}<span>{escaped(percent(e))}</span></li>"
    ends_named = f'<s style="left:{place(0)}">random</s><s style="left:{place(1)}">expert</s>'
    scale = f'<li aria-hidden="true"><span></span><span class="scale">{ends_named}</span><span></span></li>'
    tasks = escaped(listed([task for task in known.tasks if task not in known.tasks_at_ceiling]))
    about = f'<p class="note">Mean of the normalised scores on the tasks that a constant reward does not solve: {tasks}.</p>'
    return Markup(f'<ul class="forest">{rows}{scale}</ul>{about}')


_every_method = (Grid(SIX, (*CONTROLS, *METHODS)),)

TABLE_2 = Study(
    "table2",
    "Every method on every task",
    _every_method,
    in_paper="Table 2",
    sections=(
        Section(
            (
                ShowHtml(forest),
                ShowTable("aggregate", aggregate, fold="the numbers"),
                ShowTable("paired", paired, fold="IDDM against other methods from states alone, seed by seed"),
            ),
            title="Over all tasks",
        ),
        Section(
            (
                ShowTable("table2", by_method),
                ShowTable("cells", every_cell, fold="intervals, cell by cell", file=None),
                ShowTable("discriminators", discriminators, fold="discriminators that failed"),
            )
        ),
    ),
    only_docs=(ShowTable("experts", experts),),
)

CURVES = Study(
    "curves",
    "Learning curves of the same runs",
    _every_method,
    in_paper="Fig. 2",
    sections=(
        Section(
            (ShowChart(curves),),
            words="Return of the training episodes (with the policy's own noise) over environment steps: mean over seeds, with "
            "their range as a band. Dashed: the expert and random actions, evaluated.",
        ),
    ),
)
