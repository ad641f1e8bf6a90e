"""The loop: learn, record, keep. It serves every method; what an iteration is, the method's learner knows."""

import dataclasses
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from iddm.config import Config, configure, default_config
from iddm.demos import Demos
from iddm.envs import resolve
from iddm.envs.spec import MakeEnv
from iddm.errors import UserError
from iddm.job import Job
from iddm.learner import keep_compiled_code
from iddm.loops import LEARNERS
from iddm.methods import find_method
from iddm.runs import Checkpoint, Run

OnRow = Callable[[dict[str, float]], None]
Show = AbstractContextManager[OnRow | None]
"""Entered when training begins; what it gives is called with each row of metrics."""
_SILENT: Show = nullcontext(None)


class Interrupted(Exception):
    """Training stopped at the user's wish; a checkpoint is on disk."""


class Diverged(UserError):
    """A loss, reward or parameter became non-finite."""


def train(
    env: str | MakeEnv,
    demos: Demos | str | Path | None = None,
    method: str = "iddm",
    out: str | Path | None = None,
    preset: str = "tuned",
    on_row: OnRow | None = None,
    **settings: Any,
) -> Run:
    """Learn a policy in `env` from `demos` (a file, `Demos`, or None for the bundled ones); returns the finished run.

    `settings` are the fields of `Config` ("steps", "seed", …) and of the method's terms, as in `mi={"weight": 0.01}`.
    """
    name = env if isinstance(env, str) else resolve(env).id
    config = configure(default_config(name, method, preset), settings)
    given = demos if isinstance(demos, Demos) else None
    if demos is not None and given is None:
        config = dataclasses.replace(config, demos=str(demos))
    return start(config, out, nullcontext(on_row), given, env if callable(env) else None)


def start(
    config: Config,
    out: str | Path | None = None,
    show: Show = _SILENT,
    demos: Demos | None = None,
    make: MakeEnv | None = None,
) -> Run:
    """Begin a run: everything that can be wrong is checked before anything is written or shown."""
    job = Job.prepare(config, demos, make)
    run = Run.create(out or default_directory(config), config, job.digest)
    with run.locked(), show as on_row:
        learn(job, run, None, on_row)
    return run


def resume(path: str | Path, show: Show = _SILENT, demos: Demos | None = None, make: MakeEnv | None = None) -> Run:
    """Continue a run from its last checkpoint, to the bit as if it had never stopped."""
    run = Run.open(path)
    if run.finished:
        return run
    job = Job.prepare(run.config, demos, make)
    if job.digest != run.demos_digest:
        raise UserError(f"{path}: the demonstrations ({run.config.demos}) are not those that the run began with.")
    checkpoint = run.load_checkpoint()
    with run.locked(), show as on_row:
        learn(job, run, checkpoint, on_row)
    return run


def finish(config: Config, out: str | Path, demos: Demos | None = None) -> Run:
    """The finished run of this config in this directory: begun, continued, or left as it is, whichever is needed."""
    if not (Path(out) / "config.json").exists():
        return start(config, out, demos=demos)
    if Run.open(out).config != config:
        raise UserError(f"{out} holds a run with other settings; remove it, or choose another directory.")
    return resume(out, demos=demos)


def default_directory(config: Config) -> Path:
    name = config.env.replace("/", "-").replace(":", "-")
    return Path("runs") / f"{name}-{config.method}-seed{config.seed}"


def learn(job: Job, run: Run, checkpoint: Checkpoint | None, on_row: OnRow | None) -> None:
    """Iterate to the end, from the start or from a checkpoint, and leave the policy."""
    config = job.config
    keep_compiled_code()
    iteration = checkpoint.iteration if checkpoint else 0
    learner = LEARNERS[find_method(config.method).learner](job, iteration, checkpoint.replay if checkpoint else None)
    state = from_arrays(learner.init(), checkpoint.arrays) if checkpoint else learner.init()
    rows = run.start_metrics(iteration)
    began = time.perf_counter() - (rows[-1]["seconds"] if rows else 0.0)
    with stop_on_interrupt() as interrupted, run.event_files(config.tensorboard) as add_events:
        while iteration < learner.num_iterations:
            if iteration % config.checkpoint_every == 0 and iteration != learner.since:
                run.save_checkpoint(Checkpoint(iteration, to_arrays(state)))
                learner.renew(iteration)
            state, figures = learner.iterate(state, iteration)
            iteration += 1
            row = as_row(iteration, time.perf_counter() - began, figures)
            stop_if_not_finite(row, run)
            run.add_metrics(row)
            add_events(row)
            if on_row:
                on_row(row)
            if interrupted():
                run.save_checkpoint(Checkpoint(iteration, to_arrays(state), learner.replay()))
                _, unit = config.length
                raise Interrupted(f"Stopped at {unit[:-1]} {row[unit]:.0f}. Continue with: iddm train --resume {run.path}")
    learner.close()
    learner.policy(state).save(run.path / "policy.safetensors")


def as_row(iteration: int, seconds: float, figures: dict[str, Any]) -> dict[str, float]:
    """An iteration's figures as a row of metrics.csv."""
    steps, returns = figures.pop("steps"), figures.pop("returns")
    return {
        "iteration": iteration,
        "steps": steps,
        "seconds": seconds,
        "episode_return": float(np.mean(returns)) if returns else float("nan"),
        "episodes": len(returns),
    } | {key: float(x) for key, x in figures.items()}


def to_arrays(state: Any) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(jax.device_get(state))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def from_arrays(template: Any, arrays: dict[str, np.ndarray]) -> Any:
    def restore(path: Any, leaf: jax.Array) -> jax.Array:
        name = jax.tree_util.keystr(path)
        if name not in arrays or arrays[name].shape != leaf.shape:
            raise UserError(f"The checkpoint does not fit the run's config ({name}).")
        return jnp.asarray(arrays[name], leaf.dtype)

    return jax.tree_util.tree_map_with_path(restore, template)


def stop_if_not_finite(row: dict[str, float], run: Run) -> None:
    """Take the finiteness flags out of the row; raise where one is down."""
    flags = {key.removeprefix("finite/"): row.pop(key) for key in list(row) if key.startswith("finite/")}
    bad = [name for name, ok in flags.items() if not ok]  # in the order of computation: the first is the cause
    if bad:
        raise Diverged(
            f"{run.path}: {bad[0]} became non-finite at step {row['steps']:.0f}; the last good checkpoint stays. "
            f"Lower the learning rate of {bad[0]}, or its weight."
        )


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks the loop to stop after its iteration; a second one stops at once."""
    asked = False

    def ask(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    try:
        before = signal.signal(signal.SIGINT, ask)
    except ValueError:  # not in the main thread: the caller handles interrupts
        yield lambda: False
        return
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
