"""Wall time and environment steps to 90 % of the expert, on one core: ours from states alone, `imitation`'s GAIL with actions.

The same ten bundled episodes, networks (300, 400), initial noise and running normalisation for all; ours are real runs of the
training loop. Evaluation is the mean action over five fresh episodes, off the clock. Each run has a budget of steps; one that
does not reach the target is reported with its best return. Compilation is on the clock (it is in the first iteration). Runs are
distributed over the cores, one on each.
"""

import argparse
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.table import Table

from benchmarks.machine import OtherLoad, machine_info
from benchmarks.peers.run import run_peer
from iddm.bundled import bundled_demos, bundled_expert, with_expert_actions
from iddm.demos import save_demos
from iddm.evaluation import evaluate
from iddm.policy import Policy
from iddm.studies.pool import in_parallel
from iddm.training.train import train
from iddm.utils.cores import available_cores
from iddm.utils.files import write_whole
from iddm.utils.provenance import commit

TASKS = ("HalfCheetah", "Hopper")
CONTENDERS = ("iddm", "gaifo", "imitation_gail")
SHARE = 0.9
BUDGET = 1_000_000
EVALUATE_EVERY = 10_240
EPISODES = 5


def ours(
    task: str, method: str, target: float, seed: int, out: Path, evaluate_every: int = EVALUATE_EVERY, **settings: Any
) -> list[dict[str, float]]:
    """The learning curve of one real run of ours up to the target: steps, seconds and mean-action returns."""
    curve: list[dict[str, float]] = []
    evaluating = 0.0
    began = time.perf_counter()

    def look(row: dict[str, float], policy: Callable[[], Policy]) -> None:
        nonlocal evaluating
        if row["steps"] % evaluate_every:
            return
        paused = time.perf_counter()
        found = evaluate(policy(), episodes=EPISODES).mean
        curve.append(
            {"steps": int(row["steps"]), "seconds": round(paused - began - evaluating, 2), "mean_return": round(found, 1)}
        )
        if found >= target:
            raise Reached
        evaluating += time.perf_counter() - paused

    with suppress(Reached):
        train(task, method=method, out=out, seed=seed, on_iteration=look, **{"steps": BUDGET, **settings})
    return curve


class Reached(Exception):
    """The target is reached: the run stops here."""


def contend(task: str, contender: str, target: float, seed: int, demos: str) -> list[dict[str, float]]:
    """In a process of its own, held to one core."""
    if contender != "imitation_gail":
        with tempfile.TemporaryDirectory() as folder:
            return ours(task, contender, target, seed, Path(folder) / "run")
    core = available_cores()[0]
    options = {"env": f"{task}-v4", "steps": BUDGET, "threads": 1, "cores": core, "seed": seed, "log_std_init": -1.0}
    options |= {"demos": demos, "evaluate_every": EVALUATE_EVERY, "stop_at": target, "warmup_steps": 0}
    return run_peer(contender, **options)["curve"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    options.add_argument("--out", type=Path, default=Path("results/speed/time_to_expert.json"))
    given = options.parse_args()
    targets = {task: SHARE * evaluate(bundled_expert(task), episodes=50).mean for task in given.tasks}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, OtherLoad() as other:
        for task in given.tasks:
            save_demos(with_expert_actions(bundled_demos(task), task), Path(folder) / f"{task}.npz")
        jobs = [
            (task, contender, targets[task], seed, str(Path(folder) / f"{task}.npz"))
            for seed, task, contender in itertools.product(range(given.seeds), given.tasks, CONTENDERS)
        ]
        for ended in in_parallel(contend, jobs):
            if ended.value is None:
                raise SystemExit(f"{ended.job[:2]}: {ended.error}")
            rows.append(_row(*ended.job[:4], ended.value))
            print(rows[-1] | {"curve": len(rows[-1]["curve"])}, file=sys.stderr, flush=True)
    rows.sort(key=lambda row: (row["task"], row["contender"], row["seed"]))
    Console().print(as_table(rows))
    about = {"command": "python benchmarks/time_to_expert.py", "commit": commit(), "machine": machine_info()}
    about |= {"share_of_machine_taken_by_others": other.share, "targets": targets, "budget": BUDGET, "rows": rows}
    write_whole(given.out, json.dumps(about, indent=1) + "\n")


def _row(task: str, contender: str, target: float, seed: int, curve: list[dict[str, float]]) -> dict[str, Any]:
    last, best = curve[-1], max(point["mean_return"] for point in curve)
    reached = last["mean_return"] >= target
    found = {"reached": reached, "steps": last["steps"], "seconds": last["seconds"], "best": best}
    return {"task": task, "contender": contender, "seed": seed, "target": round(target, 1), **found, "curve": curve}


def as_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title=f"Time to {100 * SHARE:.0f} % of the expert, one core", title_justify="left")
    for column in ("task", "", "seed", "steps", "seconds", "best return", "target"):
        table.add_column(column, justify="left" if column in ("task", "") else "right")
    for row in rows:
        steps = f"{row['steps']:,}" if row["reached"] else f"not within {row['steps']:,}"
        cells = (f"{row['seconds']:,.0f}", f"{row['best']:,.0f}", f"{row['target']:,.0f}")
        table.add_row(row["task"], row["contender"], str(row["seed"]), steps, *cells)
    return table


if __name__ == "__main__":
    main()
