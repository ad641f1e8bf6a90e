"""The tables of the studies, beside the paper's figures."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from iddm.config import default_config
from iddm.report.table import NOTHING, Sheet, figure, lines, name_of, papers, share
from iddm.studies import paper
from iddm.studies.results import Results
from iddm.studies.spec import EPISODES, EXPERT, LAMBDA_P, LAMBDA_S, LIGHT, SIX, STUDIES, UNTRAINED
from iddm.studies.statistics import aggregate_iqm, iqm, probability_of_improvement
from iddm.studies.study_results import Answer, Cell, answer

OVER_SEEDS = "Mean ± standard deviation over seeds (number of seeds)."
OR_EPISODES = f"{OVER_SEEDS} Of random actions and of the expert, over episodes."
LIGHTLY = f"with {LIGHT['steps']:,} steps and networks of {LIGHT['hidden']}, discriminator {LIGHT['adversarial.hidden']}"
QUICK = "Made with --quick: a look at the machinery, not at results."
COMPACT = ("random", "none", "gaifo", "iddm", "gail", EXPERT)


def table2(known: Answer) -> Sheet:
    """Every method on every task, and the paper's figures below ours."""
    tasks = known.tasks

    def cell(task: str, method: str) -> str:
        return lines(_returns(known.find(task, method)), papers(paper.TABLE_2.get(method, {}).get(task)))

    rows = tuple((name_of(method), *(cell(task, method) for task in tasks)) for method in known.methods)
    return Sheet(("method", *tasks), rows, note=OR_EPISODES)


def experts(known: Answer) -> Sheet:
    """The bundled experts, and the command that makes each."""
    rows = tuple(
        (
            task,
            f"`iddm expert {task}`",
            f"{figure(found.results[0].mean)} ± {figure(found.results[0].std)}",
            _paper_alone(paper.TABLE_2[EXPERT].get(task)),
        )
        for task in known.tasks
        if (found := known.find(task, EXPERT))
    )
    note = f"Mean ± deviation over {EPISODES} episodes of the most likely action."
    return Sheet(("task", "command", "return", "paper's expert"), rows, 2, note)


def compact(known: Answer) -> Sheet:
    """A few rows of Table 2."""
    tasks = known.tasks
    rows = [
        (name_of(method), *(_returns(known.find(task, method)) for task in tasks))
        for method in COMPACT
        if method in known.methods
    ]
    theirs = (paper.TABLE_2["iddm"].get(task) for task in tasks)
    rows.append(("IDDM in the paper", *("{:,.1f} ± {:,.1f}".format(*pair) if pair else NOTHING for pair in theirs)))
    return Sheet(("method", *tasks), tuple(rows), note=OR_EPISODES)


def aggregate(known: Answer) -> Sheet:
    """Every method over all its tasks."""
    scores = {method: by_task for method, by_task in known.scores.items() if by_task and method not in UNTRAINED}
    ours = scores.get("iddm", {})
    rows = []
    for method, by_task in scores.items():
        better = None if method == "iddm" else probability_of_improvement(ours, by_task)
        runs = sum(map(len, by_task.values()))
        rows.append((name_of(method), str(len(by_task)), str(runs), share(aggregate_iqm(by_task)), share(better)))
    note = (
        "Scores are normalised (random actions 0 %, expert 100 %). IQM: the mean of the middle half of a method's runs on all "
        "its tasks, each task of the same weight. IDDM better: how often a run of IDDM beats one of the method on the same task. "
        "[95 % intervals: bootstrap within each task, absent where a task has a single seed.]"
    )
    return Sheet(("method", "tasks", "runs", "IQM", "IDDM better"), tuple(rows), note=note)


def discriminators(known: Answer) -> Sheet:
    """How long a discriminator was of no use, in the worst run of each cell."""
    methods = [name for name in known.methods if name != EXPERT and "adversarial" in default_config(SIX[0], name).terms]

    def cell(task: str, method: str) -> str:
        found = known.find(task, method)
        return f"{100 * max(result.saturated for result in found.results):.1f} % ({len(found.results)})" if found else NOTHING

    rows = tuple((name_of(method), *(cell(task, method) for task in known.tasks)) for method in methods)
    note = (
        "The longest stretch, as a share of the run, in which the discriminator was right about more than 99 % of both sides and "
        "its mean reward was below 0.01; the worst of all seeds (number of seeds)."
    )
    return Sheet(("method", *known.tasks), rows, note=note)


def weights_of(cell: Cell) -> tuple[float, float]:
    """(λ_p, λ_s)"""
    return cell.setting("entropy.weight"), cell.setting("mi.weight")


def weights(known: Answer) -> Sheet:
    """Results by λ_p and λ_s."""
    rows = tuple(
        (f"{p:g}", f"{s:g}", lines(_returns(cell), f"IQM {_middle(cell)}"), _paper_alone(paper.WEIGHTS.get((p, s))))
        for cell in known.cells
        for p, s in [weights_of(cell)]
    )
    return Sheet(
        ("λ_p", "λ_s", "return", "paper"), rows, note=f"HalfCheetah, {LIGHTLY}. {OVER_SEEDS} Below: IQM [95 % interval]."
    )


def grid(known: Answer) -> Sheet:
    """Results with λ_p down and λ_s across."""
    found = {weights_of(cell): cell for cell in known.cells}

    def value(pair: tuple[float, float]) -> str:
        return lines(figure(found[pair].spread.mean) if pair in found else NOTHING, papers(paper.WEIGHTS.get(pair)))

    rows = tuple((f"λ_p = {p:g}", *(value((p, s)) for s in LAMBDA_S)) for p in LAMBDA_P)
    seeds = sorted({cell.spread.seeds for cell in known.cells})
    return Sheet(
        ("", *(f"λ_s = {s:g}" for s in LAMBDA_S)), rows, note=f"HalfCheetah, {LIGHTLY}. Mean over seeds ({_range(seeds)})."
    )


def _range(seeds: Sequence[int]) -> str:
    few, many = min(seeds), max(seeds)
    return f"{few} a cell" if few == many else f"{few} to {many} a cell"


def amount(cell: Cell) -> str:
    """How many demonstrations, in words."""
    pairs, episodes = cell.setting("demo_transitions"), cell.setting("demo_episodes")
    if pairs is not None:
        return f"{pairs} pairs"
    return "all ten" if episodes is None else f"{episodes} episode{'s' if episodes > 1 else ''}"


def by_amount(known: Answer) -> dict[str, list[Cell]]:
    """The cells of each task on which amounts of demonstrations are compared: those that have more than one."""
    cells = {task: [c for c in known.cells if c.spec.task == task and c.spec.method not in UNTRAINED] for task in known.tasks}
    return {task: some for task, some in cells.items() if len(set(map(amount, some))) > 1}


def demos(known: Answer) -> Sheet:
    """Normalised scores by the number of demonstrations."""
    found = {(task, amount(cell), cell.spec.method): cell for task, cells in by_amount(known).items() for cell in cells}
    methods = list(dict.fromkeys(method for _, _, method in found))

    def value(task: str, much: str, method: str) -> str:
        cell = found.get((task, much, method))
        scores = known.normalised({task: cell}) if cell else {}
        return share(aggregate_iqm(scores)) + f" ({len(scores[task])})" if scores else NOTHING

    rows = tuple(
        (task, much, *(value(task, much, method) for method in methods))
        for task, much in dict.fromkeys((task, much) for task, much, _ in found)
    )
    note = (
        "Normalised score (random actions 0 %, expert 100 %): IQM over seeds [95 % interval] (number of seeds). "
        f"Hopper, HalfCheetah and Ant {LIGHTLY}."
    )
    return Sheet(("task", "demonstrations", *map(name_of, methods)), rows, 2, note)


def absorbing(known: Answer) -> Sheet:
    """Results without and with absorbing states."""
    found = {(cell.spec.task, cell.spec.method, cell.setting("adversarial.absorbing")): cell for cell in known.cells}
    rows = tuple(
        (
            task,
            name_of(method),
            *(_returns(found.get((task, method, on))) for on in (False, True)),
        )
        for task, method in dict.fromkeys((cell.spec.task, cell.spec.method) for cell in known.cells)
    )
    return Sheet(("task", "method", "without", "with absorbing states"), rows, 2, OVER_SEEDS)


def every_cell(known: Answer) -> Sheet:
    """Each cell on a line of its own, with its interquartile mean."""
    rows = tuple(
        (c.spec.task, name_of(c.spec.method), c.spec.flags or "default settings", _returns(c), _middle(c)) for c in known.cells
    )
    return Sheet(("task", "method", "settings", "mean ± deviation", "IQM [95 % interval]"), rows, 3)


def _returns(cell: Cell | None) -> str:
    """Mean ± deviation over seeds, or over the episodes of the only run where nothing is trained."""
    if cell is None:
        return NOTHING
    if cell.spec.method in UNTRAINED:
        only = cell.results[0]
        return f"{figure(only.mean)} ± {figure(only.std)} ({only.episodes} ep.)"
    return f"{figure(cell.spread.mean)} ± {figure(cell.spread.std)} ({cell.spread.seeds})"


def _middle(cell: Cell) -> str:
    """The interquartile mean over seeds, with its interval where there are several."""
    middle = iqm(cell.means)
    return figure(middle.value) + (f" [{figure(middle.low)}, {figure(middle.high)}]" if middle.low == middle.low else "")


def _paper_alone(known: paper.Figure | None) -> str:
    """The paper's figure in a column of its own."""
    return papers(known).removeprefix("paper ") or NOTHING


TABLES: dict[str, tuple[str, Callable[[Answer], Sheet]]] = {
    "table2": ("table2", table2),
    "aggregate": ("table2", aggregate),
    "experts": ("table2", experts),
    "discriminators": ("table2", discriminators),
    "ant": ("ant", table2),
    "demos": ("demos", demos),
    "lambda_p": ("lambda_p", weights),
    "lambda_s": ("lambda_s", weights),
    "grid": ("grid", grid),
    "absorbing": ("absorbing", absorbing),
    "compact": ("table2", compact),
}
"""Every table: the study it shows, and how it is made."""


def tables(results: Results) -> dict[str, Sheet]:
    """The tables of which there is something to show."""
    answers = {name: answer(results, STUDIES[name]) for name in {study for study, _ in TABLES.values()}}
    made = {}
    for name, (study, make) in TABLES.items():
        known = answers[study]
        sheet = make(known) if known.says_something else None
        if sheet and sheet.rows:
            made[name] = replace(sheet, note=f"{QUICK} {sheet.note}") if known.quick else sheet
    return made
