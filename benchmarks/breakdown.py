"""Where an iteration's time goes, and how near it is to what the machine could do.

Every part is timed by itself, in the shapes of a real iteration; the best of several repetitions. The limit is the work's
matrix products at the machine's measured float32 peak, plus EnvPool's bare stepping. `python benchmarks/breakdown.py` measures
HalfCheetah, Hopper and Ant, with one process on all cores and with a single-thread process on each core; `make bench` too.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.table import Table

from benchmarks.machine import OtherLoad, machine_info, matmul_peak, ways
from iddm.utils.cores import available_cores
from iddm.utils.files import write_whole
from iddm.utils.provenance import commit

TASKS = ("HalfCheetah", "Hopper", "Ant")
METHODS = ("gaifo", "iddm")
REPETITIONS = 7
PAPERS_CRITIC = {"mi": {"hidden": (512, 512)}}


def measure(task: str, method: str) -> dict[str, Any]:
    """In this process, on the cores that it may use: the seconds of each part of an iteration."""
    import jax
    import jax.numpy as jnp

    from benchmarks.work import iteration_gflop
    from iddm.config import configure, default_config
    from iddm.envs.vector import make_vector
    from iddm.learners.base import Progress
    from iddm.learners.ppo import PPO, agent_rows
    from iddm.learners.ppo_loss import PPOBatch, ppo_epochs
    from iddm.training.environments import Environments
    from iddm.training.loop import train_iteration, update
    from iddm.training.setup import Setup
    from iddm.utils.keys import Use, key_for

    config = configure(default_config(task, method), PAPERS_CRITIC if method == "iddm" else {})
    setup, ppo = Setup.prepare(config), config.learner
    assert isinstance(ppo, PPO)
    environments = Environments(setup, 0)
    first = ppo.init(setup.problem, setup.expert, jax.random.PRNGKey(0))
    state, _, _ = train_iteration(setup, environments, first, 0)
    key = key_for(0, Use.LEARNING, 1)
    rollout, _ = environments.rollout(ppo.actor(state, Progress(1, 0.5)), 1)

    bare = make_vector(setup.spec, ppo.num_envs, 0, config.backend)
    bare.reset()
    actions = [setup.shape.action_space.to_env(row) for row in rollout.action]
    stepping = best_of(lambda: [bare.step(row) for row in actions])
    collecting = best_of(lambda: environments.rollout(ppo.actor(state, Progress(1, 0.5)), 1))
    seconds = {"stepping": stepping, "acting": collecting - stepping}

    state, rollout = jax.tree.map(jnp.asarray, (state, rollout))
    inputs = (state, rollout, setup.expert)

    def timed(part: Callable[..., Any]) -> float:
        compiled = jax.jit(part)
        return best_of(lambda: jax.block_until_ready(compiled(*inputs)))

    seconds["scaling"] = timed(lambda *inputs: agent_rows(*inputs)[0])
    for term in setup.problem.terms:

        def learned_and_rewarded(state: Any, *rest: Any, term: Any = term) -> Any:
            agent, expert = agent_rows(state, *rest)
            new, _ = term.update(state.terms[term.name], agent, expert, key)
            return new, term.reward(new, agent, key)

        seconds[term.name] = max(timed(learned_and_rewarded) - seconds["scaling"], 0.0)
    agent, _ = agent_rows(*inputs)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rollout)
    batch = PPOBatch(flat.obs, flat.action, agent.log_prob, *[agent.valid] * 3)
    names = ("epochs", "batch_size", "clip", "value_weight", "max_grad_norm")
    settings = {name: getattr(ppo, name) for name in names}
    seconds["ppo"] = timed(
        lambda state, *_: ppo_epochs((state.policy, state.value.net), state.opt_state, batch, key, jnp.float32(1e-4), **settings)
    )

    def learn() -> None:
        nonlocal state
        state, metrics = update(ppo, setup.problem, state, rollout, setup.expert, key, Progress(1, 0.5))
        jax.block_until_ready(metrics)

    whole = collecting + best_of(learn)
    seconds["copies and the rest"] = max(whole - sum(seconds.values()), 0.0)
    return {
        "seconds": seconds,
        "iteration": whole,
        "steps_per_second": config.schedule.steps_per_iteration / whole,
        "bare_stepping": stepping,
        "gflop": iteration_gflop(config, setup.shape.obs_size, setup.shape.action_space.size),
    }


def best_of(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def measured_here(measure: Callable[[str, str], dict[str, Any]]) -> bool:
    """Whether this process was started by `side_by_side`: then it measures on its cores, and prints what it found."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--measure", nargs=2)
    options.add_argument("--cores")
    given, _ = options.parse_known_args()
    if given.measure:
        os.sched_setaffinity(0, {int(core) for core in given.cores.split(",")})  # before BLAS and XLA start their threads
        print(json.dumps(measure(*given.measure)))
    return given.measure is not None


def side_by_side(program: Path, task: str, method: str, groups: list[list[int]]) -> dict[str, Any]:
    """A measuring process on each group of cores, at the same time; their mean, and their speeds together."""
    command = [sys.executable, str(program.resolve()), "--measure", task, method, "--cores"]
    started = [subprocess.Popen([*command, ",".join(map(str, group))], stdout=subprocess.PIPE, text=True) for group in groups]
    found = [json.loads(process.communicate()[0].splitlines()[-1]) for process in started]
    return {
        "seconds": {name: sum(f["seconds"][name] for f in found) / len(found) for name in found[0]["seconds"]},
        "iteration": sum(f["iteration"] for f in found) / len(found),
        "bare_stepping": sum(f["bare_stepping"] for f in found) / len(found),
        "steps_per_second": sum(f["steps_per_second"] for f in found),
        "gflop": found[0]["gflop"],
    }


def main() -> None:
    if measured_here(measure):
        return
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=Path("results/speed/breakdown.json"))
    given = options.parse_args()
    modes = ways(available_cores())
    peak = {name: matmul_peak(groups) for name, groups in modes.items()}
    rows = []
    with OtherLoad() as other:
        for mode, groups in modes.items():
            for task in TASKS:
                for method in METHODS:
                    found = side_by_side(Path(__file__), task, method, groups)
                    limit = sum(found["gflop"].values()) / peak[mode] + found["bare_stepping"]
                    rows.append(
                        {
                            "mode": mode,
                            "task": task,
                            "method": method,
                            **found,
                            "limit": limit,
                            "share": limit / found["iteration"],
                        }
                    )
                    print(f"{mode}: {method} on {task}: {100 * rows[-1]['share']:.0f} % of the limit", file=sys.stderr)
    Console(width=150).print(as_table(rows))
    about = {
        "command": "python benchmarks/breakdown.py",
        "commit": commit(),
        "machine": machine_info(),
        "matmul_peak_gflops": peak,
        "share_of_machine_taken_by_others": other.share,
        "rows": rows,
    }
    write_whole(given.out, json.dumps(about, indent=1) + "\n")


def as_table(rows: list[dict[str, Any]]) -> Table:
    parts = list(dict.fromkeys(name for row in rows for name in row["seconds"]))
    table = Table(title="Milliseconds per iteration of 2,048 steps", title_justify="left")
    for column in ("mode", "task", "method", "steps/s", *parts, "whole", "limit", "share"):
        table.add_column(column, justify="left" if column in ("mode", "task", "method") else "right")
    for row in rows:
        each = [f"{1e3 * row['seconds'][name]:.0f}" if name in row["seconds"] else "" for name in parts]
        end = [f"{1e3 * row['iteration']:.0f}", f"{1e3 * row['limit']:.0f}", f"{100 * row['share']:.0f} %"]
        table.add_row(row["mode"], row["task"], row["method"], f"{row['steps_per_second']:,.0f}", *each, *end)
    return table


if __name__ == "__main__":
    main()
