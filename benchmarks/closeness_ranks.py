"""Does closeness rank a run's policies by their true return, and as well as the reward of the same few episodes would?

One run of IDDM with the default settings per kind of task, on a seed on which nothing was chosen. Each policy that is evaluated
during training runs further episodes, whose mean return stands for the true one. `python benchmarks/closeness_ranks.py
[Hopper …]` trains the tasks that have no rows in results/closeness_ranks.csv, and writes the table of docs/closeness.md.
"""

import os
import sys
from collections.abc import Iterable
from math import isnan
from pathlib import Path
from statistics import median
from typing import Any

import iddm
from iddm.report.table import NOTHING, Table, to_markdown, with_tables
from iddm.studies.catalogue.kinds import KINDS, correlation, default
from iddm.studies.pool import in_parallel
from iddm.studies.results import Evaluated
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

    def ranked(task: str, by: str) -> float | None:
        found = [row for row in rows if row["task"] == task]
        return correlation(Evaluated(int(r["steps"]), float(r["return"]), 0.0, float(r[by])) for r in found)

    tasks = [task for task in KINDS if any(row["task"] == task for row in rows)]
    found = {by: [ranked(task, by) for task in tasks] for by in ("closeness", "few")}
    lines = [
        (task, KINDS[task], _shown(close), _shown(few))
        for task, close, few in zip(tasks, found["closeness"], found["few"], strict=True)
    ]
    middle = (_shown(median(value for value in values if value is not None)) for values in found.values())
    caption = (
        f"Spearman's rank correlation with the mean return of {EPISODES} further episodes, over the {EVALUATIONS} evaluated "
        f"policies of one run of IDDM per task (seed {SEED}); absent where all returns are equal. Left: of closeness. Right: of "
        "the return of the episodes that closeness was measured in. `python benchmarks/closeness_ranks.py`"
    )
    columns = ("task", "kind", "closeness", "return of the same episodes")
    return Table(columns, (*lines, ("median of the tasks", "", *middle)), 2, caption)


def _shown(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


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
