"""How cost grows: steps per second and memory of GAIfO against environments, observation size, width and demonstrations.

Each point is a real run of a few iterations in a process of its own on one core: the median iteration, and the largest memory. A
run of one iteration goes before it, so that its compiled code is in the cache.
Demonstrations are rows of the right shape (what they hold does not matter for speed). Writes results/speed/growth.json and .svg.
"""

import argparse
import io
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.machine import OtherLoad, machine_info
from iddm.utils.files import write_whole
from iddm.utils.provenance import commit

ITERATIONS, WARM_UP = 8, 3
ROWS = 2048
EPISODE = 1000
POINTS: dict[str, list[tuple[float, dict[str, Any]]]] = {
    "environments": [(n, {"num_envs": n, "rollout_length": ROWS // n}) for n in (2, 4, 8, 16, 32, 64, 128)],
    "observation size": [
        (size, {"task": task})
        for size, task in ((4, "InvertedPendulum"), (11, "Hopper"), (17, "HalfCheetah"), (105, "Ant"), (348, "Humanoid"))
    ],
    "width of both hidden layers": [
        (w, {"hidden": (w, w), "adversarial": {"hidden": (w, w)}}) for w in (64, 128, 256, 512, 1024)
    ],
    "demonstrated transitions": [(n, {"transitions": n}) for n in (1_000, 10_000, 100_000, 1_000_000, 5_000_000)],
}
"""By axis: where on it, and what differs from GAIfO on HalfCheetah with 10,000 transitions."""


def measure(iterations: int, task: str = "HalfCheetah", transitions: int = 10_000, **settings: Any) -> dict[str, float]:
    """In this process: a real training run from a file."""
    import numpy as np

    from iddm.envs.spec import resolve, shape_of
    from iddm.training.train import train

    seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        rows = rng.standard_normal((transitions // EPISODE * (EPISODE + 1), shape_of(resolve(task)).obs_size), np.float32)
        np.savez(f"{folder}/demos.npz", observations=rows, episode_lengths=np.full(transitions // EPISODE, EPISODE))
        del rows
        train(
            task,
            f"{folder}/demos.npz",
            "gaifo",
            f"{folder}/run",
            steps=ROWS * iterations,
            on_row=lambda row: seconds.append(row["seconds"]),
            **settings,
        )
    each = [b - a for a, b in itertools.pairwise(seconds)][WARM_UP - 1 :]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"steps_per_second": ROWS / statistics.median(each) if each else float("nan"), "memory_mb": memory}


def in_own_process(options: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", json.dumps(options)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])


def _with_tuples(options: Any) -> Any:
    """JSON has no tuples."""
    if isinstance(options, dict):
        return {key: _with_tuples(value) for key, value in options.items()}
    return tuple(options) if isinstance(options, list) else options


def figure(found: dict[str, list[dict[str, float]]]) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(12, 5.4), layout="constrained")
    FigureCanvasSVG(drawn)
    panels = drawn.subplots(2, len(found), sharex="col", sharey="row")
    for column, (axis, points) in enumerate(found.items()):
        x = [point["x"] for point in points]
        for row, name in enumerate(("steps_per_second", "memory_mb")):
            panel = panels[row, column]
            panel.plot(x, [point[name] for point in points], color="#1f4e8c", marker="o", markersize=4)
            panel.set_xscale("log")
            panel.spines[["top", "right"]].set_visible(False)
        panels[1, column].set_xlabel(axis)
    for panel in panels[:, 0]:  # its whole row shares this
        panel.set_ylim(bottom=0)
    panels[0, 0].set_ylabel("environment steps per second")
    panels[1, 0].set_ylabel("largest memory (MB)")
    text = io.StringIO()
    drawn.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--measure", type=json.loads, help=argparse.SUPPRESS)
    options.add_argument("--out", type=Path, default=Path("results/speed"))
    given = options.parse_args()
    if given.measure is not None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before BLAS and XLA start their threads
        print(json.dumps(measure(**_with_tuples(given.measure))))
        return
    found: dict[str, list[dict[str, float]]] = {}
    with OtherLoad() as other:
        for axis, points in POINTS.items():
            for x, settings in points:
                in_own_process({"iterations": 1, **settings})
                found.setdefault(axis, []).append({"x": x, **in_own_process({"iterations": WARM_UP + ITERATIONS, **settings})})
                print(f"{axis} {x:,}: {found[axis][-1]}", file=sys.stderr, flush=True)
    about = {"command": "python benchmarks/growth.py", "commit": commit(), "machine": machine_info()}
    about |= {"share_of_machine_taken_by_others": other.share, "axes": found}
    write_whole(given.out / "growth.json", json.dumps(about, indent=1) + "\n")
    write_whole(given.out / "growth.svg", figure(found))


if __name__ == "__main__":
    main()
