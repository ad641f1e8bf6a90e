"""Does closeness rank a run's policies by their true return, and as well as the reward of the same few episodes would?

One run of IDDM with the default settings per kind of task, on a seed on which nothing was chosen. Each policy that is evaluated
during training runs further episodes, whose mean return stands for the true one. `python benchmarks/closeness_ranks.py
[Hopper …]` trains the tasks that have no rows in results/closeness_ranks.csv, and writes the table of docs/closeness.md.
"""

import os
import sys
from collections.abc import Iterable
from math import isnan, nan
from pathlib import Path
from statistics import median
from typing import Any

import iddm
from iddm.report.table import Table, to_markdown, with_tables
from iddm.studies.catalogue.kinds import APART, KINDS, TASKS_OF_ALL_KINDS, correlation, default, full_range, shown, somers_d
from iddm.studies.pool import in_parallel
from iddm.studies.results import Evaluated, Results
from iddm.studies.study_results import StudyResults
from iddm.utils.files import from_csv, to_csv, write_whole

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "closeness_ranks.csv"
PAGE = ROOT / "docs" / "closeness.md"
SEED, EVALUATIONS, EPISODES = 5, 20, 20
Rows = list[dict[str, str]]


def followed(task: str) -> list[dict[str, Any]]:
    """A row per evaluated policy: what the run says of it, and its return in further episodes."""
    rows = []

    def follow(metrics: dict[str, float], policy: Any) -> None:
        if not isnan(metrics["closeness"]):
            true = iddm.evaluate(policy(), episodes=EPISODES).mean
            few, closeness = metrics["evaluation_return"], metrics["closeness"]
            rows.append({"task": task, "steps": int(metrics["steps"]), "return": true, "few": few, "closeness": closeness})

    settings = default(task) | {"seed": SEED, "evaluations": EVALUATIONS}
    iddm.train(task, out=f"runs/closeness_ranks/{task}", on_iteration=follow, **settings)
    return rows


def table(rows: Rows) -> Table:
    """The rank correlations by task."""
    known = TASKS_OF_ALL_KINDS.results(Results.load(ROOT / "results" / "studies"))
    tasks = [task for task in KINDS if any(row["task"] == task for row in rows)]
    found = [(*_ranked(rows, task, "closeness", known), *_ranked(rows, task, "few", known)) for task in tasks]
    middle = (median([value for value in column if value is not None]) for column in zip(*found, strict=True))
    lines = [(task, KINDS[task], *map(shown, values)) for task, values in zip(tasks, found, strict=True)]
    caption = (
        f"Rank correlations with the mean return of {EPISODES} further episodes, over the {EVALUATIONS} evaluated policies of "
        f"one run of IDDM per task (seed {SEED}). D is Somers', where returns that are less than {APART:.0%} of the way from "
        "random actions to the expert apart are ties; absent where all are. First of closeness, then of the return of the very "
        "episodes that closeness was measured in. `python benchmarks/closeness_ranks.py`"
    )
    columns = ("task", "kind", "closeness: D", "Spearman", "return: D", "Spearman")
    return Table(columns, (*lines, ("median of the tasks", "", *map(shown, middle))), 2, caption)


def _ranked(rows: Rows, task: str, by: str, known: StudyResults) -> tuple[float | None, float | None]:
    """Somers' D and Spearman's correlation of a column with the return."""
    found = [Evaluated(int(r["steps"]), float(r["return"]), nan, float(r[by])) for r in rows if r["task"] == task]
    return somers_d(found, APART * full_range(known, task)), correlation(found)


def written(rows: Rows) -> str:
    """The page with the table of these rows."""
    return with_tables(PAGE.read_text(), {"closeness-ranks": to_markdown(table(rows))}, PAGE.name)


def missing(rows: Rows, only: Iterable[str]) -> list[str]:
    done = {row["task"] for row in rows}
    return [task for task in only or KINDS if task not in done]


def main() -> None:
    os.chdir(ROOT)
    rows = from_csv(RESULTS) if RESULTS.exists() else []
    for ended in in_parallel(followed, [(task,) for task in missing(rows, sys.argv[1:])]):
        if ended.value is None:
            sys.exit(f"{ended.job[0]}: {ended.error}")
        rows += ended.value
        write_whole(RESULTS, to_csv(rows, digits=6))
        rows = from_csv(RESULTS)
    write_whole(PAGE, written(rows))


if __name__ == "__main__":
    main()
