"""Wall time and environment steps to 90 % of the expert, on one core: ours from states alone, `imitation`'s GAIL with actions.

The same ten bundled episodes, networks (300, 400), initial noise and a running normalisation for all; mean action over five fresh
episodes, off the clock. Each has a budget of steps; one that does not get there is reported with its best. Compilation is on the
clock (it is in the first iteration). Runs are spread over the cores, one on each.
"""

import argparse
import itertools
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.table import Table

from benchmarks.machine import OtherLoad, machine_info
from benchmarks.peers.run import run_peer
from iddm.bundled import bundled_demos, bundled_expert, with_expert_actions
from iddm.cores import available_cores
from iddm.demos import save_demos
from iddm.evaluation import evaluate
from iddm.files import write_whole
from iddm.studies.pool import in_parallel
from iddm.studies.provenance import commit

TASKS = ("HalfCheetah", "Hopper")
CONTENDERS = ("iddm", "gaifo", "imitation_gail")
SHARE = 0.9
BUDGET = 1_000_000
EVALUATE_EVERY = 10_240
EPISODES = 5


def ours(task: str, method: str, target: float, seed: int) -> list[dict[str, float]]:
    """The learning curve of one run of ours up to the target: steps, seconds and mean-action returns."""
    from dataclasses import replace

    from iddm.config import default_config
    from iddm.job import Job
    from iddm.learner import keep_compiled_code
    from iddm.loops import PolicyGradient

    keep_compiled_code()
    config = replace(default_config(task, method), steps=BUDGET, seed=seed)
    curve: list[dict[str, float]] = []
    began = time.perf_counter()
    learner = PolicyGradient(Job.prepare(config), 0, None)
    state = learner.init()
    seconds = time.perf_counter() - began
    for iteration in range(config.num_iterations):
        began = time.perf_counter()
        state, figures = learner.iterate(state, iteration)
        seconds += time.perf_counter() - began
        if figures["steps"] % EVALUATE_EVERY == 0 or iteration == config.num_iterations - 1:
            found = evaluate(learner.policy(state), episodes=EPISODES).mean
            curve.append({"steps": figures["steps"], "seconds": round(seconds, 2), "mean_return": round(found, 1)})
            if found >= target:
                break
    return curve


def contend(task: str, contender: str, target: float, seed: int, demos: str) -> list[dict[str, float]]:
    """In a process of its own, held to one core."""
    if contender != "imitation_gail":
        return ours(task, contender, target, seed)
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
