"""Where an iteration's time goes, and how near it is to what the machine could do.

Every part is timed by itself, in the shapes of a real iteration; the best of several repetitions. The limit is the work's
matrix products at the machine's measured float32 peak, plus EnvPool's bare stepping. `python benchmarks/breakdown.py` measures
HalfCheetah, Hopper and Ant, with one process on all cores and with a single-thread process on each core; `make bench` too.
"""

import argparse
import dataclasses
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
from iddm.cores import available_cores
from iddm.files import write_whole
from iddm.studies.provenance import commit

TASKS = ("HalfCheetah", "Hopper", "Ant")
METHODS = ("gaifo", "iddm")
REPETITIONS = 7
PAPERS_CRITIC = {"mi": {"hidden": (512, 512)}}


def measure(task: str, method: str) -> dict[str, Any]:
    """In this process, on the cores that it may use: the seconds of each part of an iteration."""
    import jax
    import jax.numpy as jnp

    from benchmarks.work import iteration_gflop
    from iddm.acting import iteration_key
    from iddm.config import configure, default_config
    from iddm.envs import make_vector
    from iddm.job import Job
    from iddm.learner import make_iteration, pay, see
    from iddm.loops import PolicyGradient
    from iddm.ppo import PPOBatch, ppo_update

    config = configure(default_config(task, method), PAPERS_CRITIC if method == "iddm" else {})
    job = Job.prepare(config)
    learner = PolicyGradient(job, 0, None)
    state, _ = learner.iterate(learner.init(), 0)
    key, length = iteration_key(0, 1), config.rollout_length
    rollout, _ = learner.envs.sample(state.policy, state.normaliser, 1, length)

    taken = rollout.action
    bare = make_vector(job.spec, config.num_envs, 0, config.backend)
    bare.reset()
    actions = [job.shape.action_space.to_env(row) for row in taken]
    bare_stepping = best_of(lambda: [bare.step(row) for row in actions])
    stepping = best_of(lambda: learner.envs.collect(lambda obs, t: taken[t], length))
    collecting = best_of(lambda: learner.envs.sample(state.policy, state.normaliser, 1, length))
    seconds = {"stepping": stepping, "acting": collecting - stepping}

    state, rollout = jax.tree.map(jnp.asarray, (state, rollout))
    inputs = (state, rollout, job.expert)

    def timed(part: Callable[..., Any]) -> float:
        compiled = jax.jit(part)
        return best_of(lambda: jax.block_until_ready(compiled(*inputs)))

    def looked(*inputs: Any) -> Any:
        return see(*inputs)._replace(expert=None)

    seconds["scaling"] = timed(looked)
    for name, term in config.terms.items():
        alone = dataclasses.replace(config, terms={name: term})
        paid = timed(lambda *inputs, alone=alone: pay(alone, inputs[0].terms, see(*inputs), key)[:2])
        seconds[name] = max(paid - seconds["scaling"], 0.0)
    seen = jax.jit(looked)(*inputs)
    batch = PPOBatch(seen.s, seen.action, seen.agent.log_prob, *[seen.agent.valid] * 3)
    seconds["ppo"] = timed(
        lambda state, *_: ppo_update((state.policy, state.value.net), state.opt_state, batch, key, jnp.float32(1e-4), config.ppo)
    )

    iterate = make_iteration(config)

    def learn() -> None:
        nonlocal state
        state, figures = iterate(state, rollout, job.expert, key, 0.5)
        jax.block_until_ready(figures)

    whole = collecting + best_of(learn)
    seconds["copies and the rest"] = max(whole - sum(seconds.values()), 0.0)
    gflop = iteration_gflop(config, job.shape.obs_size, job.shape.action_space.size)
    return {
        "seconds": seconds,
        "iteration": whole,
        "steps_per_second": config.steps_per_iteration / whole,
        "bare_stepping": bare_stepping,
        "gflop": gflop,
    }


def best_of(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def side_by_side(task: str, method: str, groups: list[list[int]]) -> dict[str, Any]:
    """A measuring process on each group of cores, at the same time; their mean, and their speeds together."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", task, method, "--cores"]
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
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options.add_argument("--cores", help=argparse.SUPPRESS)
    options.add_argument("--out", type=Path, default=Path("results/speed/breakdown.json"))
    given = options.parse_args()
    if given.measure:
        os.sched_setaffinity(0, {int(core) for core in given.cores.split(",")})  # before BLAS and XLA start their threads
        print(json.dumps(measure(*given.measure)))
        return
    modes = ways(available_cores())
    peak = {name: matmul_peak(groups) for name, groups in modes.items()}
    rows = []
    with OtherLoad() as other:
        for mode, groups in modes.items():
            for task in TASKS:
                for method in METHODS:
                    found = side_by_side(task, method, groups)
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
