"""Where the time of an off-policy iteration goes, and how near it is to what the machine could do.

A process on each core, as `iddm study` runs them. An iteration is 64 environment steps and as many gradient steps of
everything. The limit is the gradient steps' floating-point operations, as XLA counts them, at the machine's measured float32
peak, plus bare stepping. `python benchmarks/off_policy.py` measures HalfCheetah, Hopper and Ant.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.breakdown import best_of, measured_here, side_by_side
from benchmarks.machine import OtherLoad, machine_info, matmul_peak
from iddm.utils.cores import available_cores
from iddm.utils.files import write_whole
from iddm.utils.provenance import commit

TASKS = ("HalfCheetah", "Hopper", "Ant")
METHODS = ("gaifo", "iddm")
OUT = Path("results/speed/off_policy.json")


def measure(task: str, method: str) -> dict[str, Any]:
    """In this process, on the cores that it may use: the seconds of each part of an iteration."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from iddm.config import configure, default_config
    from iddm.envs.vector import make_vector
    from iddm.learners.base import Progress
    from iddm.learners.sac import SAC
    from iddm.learners.sac_step import GradientStep, change_scale
    from iddm.training.environments import Environments
    from iddm.training.setup import Setup

    middle = Progress(1, 0.5)

    def timed(settings: dict[str, Any]) -> dict[str, Any]:
        setup = Setup.prepare(configure(default_config(task, method, learner="sac"), settings))
        sac = setup.config.learner
        assert isinstance(sac, SAC)
        environments, buffer = Environments(setup, 0), sac.buffer(setup.problem, setup.expert)
        state = sac.init(setup.problem, setup.expert, jax.random.key(0))
        buffer.add(environments.rollout(None, 0)[0])
        rollout, _ = environments.rollout(sac.actor(state, middle), 1)
        rng = np.random.default_rng(0)
        drawing = best_of(lambda: list(sac.batches(buffer, rollout, rng)))
        (batches,) = sac.batches(buffer, rollout, rng)
        learn = jax.jit(
            lambda state, batches, expert: sac.update(setup.problem, state, batches, expert, jax.random.key(1), middle)
        )
        learning = best_of(lambda: jax.block_until_ready(learn(state, batches, setup.expert)))

        def one_step(state: Any, rows: Any, expert: Any) -> Any:
            step = GradientStep(sac, setup.problem, expert, batches, change_scale(expert, state.change_var), 0.5)
            return step.run(state, rows, rows, jax.random.key(2), jnp.asarray(True))

        cost = jax.jit(one_step).lower(state, jnp.asarray(batches.rows[0]), setup.expert).compile().cost_analysis()
        collecting = best_of(lambda: environments.rollout(sac.actor(state, middle), 1))
        bare = make_vector(setup.spec, sac.num_envs, 0, setup.config.backend)
        bare.reset()
        actions = [setup.shape.action_space.to_env(row) for row in rollout.action]
        stepping = best_of(lambda: [bare.step(row) for row in actions])
        return {
            "seconds": {"stepping": stepping, "acting": collecting - stepping, "drawing": drawing, "learning": learning},
            "gflop": cost["flops"] * sac.updates / 1e9,
            "steps": setup.config.schedule.steps_per_iteration,
        }

    whole, without = timed({}), timed({"inverse": {"share": 0.0}})
    seconds = whole["seconds"]
    models = seconds["learning"] - without["seconds"]["learning"]
    iteration = sum(seconds.values())
    return {
        "seconds": seconds | {"learning": seconds["learning"] - models, "inverse models": models},
        "iteration": iteration,
        "bare_stepping": seconds["stepping"],
        "steps_per_second": whole["steps"] / iteration,
        "gflop": whole["gflop"],
    }


def main() -> None:
    if measured_here(measure):
        return
    groups = [[core] for core in available_cores()]
    peak, rows = matmul_peak(groups), []
    with OtherLoad() as other:
        for task in TASKS:
            for method in METHODS:
                found = side_by_side(Path(__file__), task, method, groups)
                limit = found["gflop"] / peak + found["bare_stepping"]
                rows.append({"task": task, "method": method, **found, "limit": limit, "share": limit / found["iteration"]})
                print(f"{method} on {task}: {100 * rows[-1]['share']:.0f} % of the limit", file=sys.stderr)
    about = {
        "command": "python benchmarks/off_policy.py",
        "commit": commit(),
        "machine": machine_info(),
        "matmul_peak_gflops": peak,
        "share_of_machine_taken_by_others": other.share,
        "rows": rows,
    }
    write_whole(OUT, json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
