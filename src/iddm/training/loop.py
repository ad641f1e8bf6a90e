"""The loop: act, learn, record, keep. It serves every method; what an update is, the method's learner knows."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from shlex import quote
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from iddm.envs.rollout import Rollout
from iddm.errors import UserError
from iddm.learners import Learner, Problem
from iddm.learners.base import Metrics, Progress
from iddm.learners.replay_buffer import ReplayBuffer
from iddm.policy import Policy
from iddm.rewards.expert import Expert
from iddm.training.checkpoints import Checkpoint
from iddm.training.environments import Environments
from iddm.training.evaluations import NOT_EVALUATED, Evaluations
from iddm.training.finite import check_before_saving, stop_if_not_finite, telling_what_is_kept
from iddm.training.run_dir import Run
from iddm.training.setup import Setup
from iddm.utils.compiled import keep_compiled_code
from iddm.utils.keys import Use, key_for

OnRow = Callable[[dict[str, float]], None]
"""Called with each row of metrics."""
OnIteration = Callable[[dict[str, float], Callable[[], Policy]], None]
"""Called after each iteration with its row of metrics and a function that gives the policy as it is then."""


class Interrupted(Exception):
    """Training stopped at the user's wish; a checkpoint is on disk."""


# Learner and problem are values, so one compiled program serves every run with the same settings.
@partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def update(
    learner: Learner,
    problem: Problem,
    state: PyTree,
    rollout: Rollout | None,
    expert: Expert | None,
    key: PRNGKeyArray,
    progress: Progress,
) -> tuple[PyTree, Metrics]:
    """The learner's update, compiled; the old state's memory is used for the new one."""
    return learner.update(problem, state, rollout, expert, key, progress)


def train_iteration(
    setup: Setup, environments: Environments | None, state: PyTree, iteration: int, buffer: ReplayBuffer | None = None
) -> tuple[PyTree, Metrics, list[float]]:
    """One pass of Algorithm 1's loop: sample a rollout with π_θ, then update I, D_φ and π_θ   (IDDM, Alg. 1).

    Off-policy, the update learns from what is drawn from the replay buffer, several times where more is owed.
    """
    config, learner = setup.config, setup.config.learner
    num_iterations = config.schedule.num_iterations
    progress = Progress(iteration, 1 - iteration / num_iterations, iteration + 1 == num_iterations)
    rollout, returns = None, []
    if environments is not None:
        rollout, returns = environments.rollout(learner.actor(state, progress), iteration)
    key = key_for(config.seed, Use.LEARNING, iteration)
    inputs = [(rollout, key)]
    if buffer is not None and rollout is not None:
        rng = np.random.default_rng([config.seed, iteration, Use.LEARNING])
        inputs = ((drawn, jax.random.fold_in(key, i)) for i, drawn in enumerate(learner.batches(buffer, rollout, rng)))
    metrics = {}
    for rows, key in inputs:
        state, metrics = update(learner, setup.problem, state, rows, setup.expert, key, progress)
    return state, jax.device_get(metrics), returns


def learn(
    setup: Setup,
    run: Run,
    checkpoint: Checkpoint | None,
    on_row: OnRow | None = None,
    on_iteration: OnIteration | None = None,
) -> None:
    """Iterate to the end, from the start or from a checkpoint, and leave the policy."""
    keep_compiled_code()
    config, schedule = setup.config, setup.config.schedule
    state = setup.initial_state()
    buffer = config.learner.buffer(setup.problem, setup.expert)
    at = checkpoint or Checkpoint(0, {})
    first, replay = at.iteration, at.replay
    if checkpoint is not None:
        state = from_arrays(state, checkpoint.arrays)
    if buffer is not None:
        run.replay_file.restore(buffer, replay)
        if checkpoint is not None:
            buffer.statistics = from_arrays(buffer.statistics, checkpoint.arrays, "replay")
    environments = Environments(setup, at.started_at, at.actions) if schedule.rollout_length else None
    save_every = config.checkpoint_every or config.learner.checkpoint_every

    def save(iteration: int) -> None:
        nonlocal replay
        arrays = to_arrays(state)
        check_before_saving(arrays, run)
        if buffer is not None:
            replay = run.replay_file.append(buffer.take_unsaved(), replay)
            arrays |= to_arrays(buffer.statistics, "replay")
        actions, started_at = (None, 0) if environments is None else (environments.actions(), environments.started_at)
        run.checkpoints.save(Checkpoint(iteration, arrays, actions, started_at, replay))

    def policy() -> Policy:
        return setup.saved_policy(config.learner.policy(state))

    evaluations = Evaluations(setup, run)
    rows = run.metrics_file.keep_until(first)
    began = time.perf_counter() - (rows[-1]["seconds"] if rows else 0.0)
    with stop_on_interrupt() as interrupted, run.event_files(config.tensorboard) as add_events:
        done = first
        for iteration in range(first, schedule.num_iterations):
            if iteration % save_every == 0 and iteration != first:
                save(iteration)
            with telling_what_is_kept(run):
                state, metrics, returns = train_iteration(setup, environments, state, iteration, buffer)
            row = as_row(iteration + 1, schedule.steps_after(iteration + 1), time.perf_counter() - began, returns, metrics)
            stop_if_not_finite(row, run)
            if evaluations.due(iteration + 1):
                with telling_what_is_kept(run):
                    row |= evaluations.evaluate(iteration + 1, policy(), state)
                began = time.perf_counter() - row["seconds"]  # the time of evaluations does not count
            run.metrics_file.append(row)
            add_events(row)
            if on_row:
                on_row(row)
            if on_iteration:
                on_iteration(row, policy)
            if interrupted():
                save(iteration + 1)
                _, unit = config.length
                raise Interrupted(
                    f"Stopped at {unit[:-1]} {row[unit]:.0f}. Continue with: iddm train --resume {quote(str(run.path))}"
                )
            done = iteration + 1
            if evaluations.enough(row):
                break
    save(done)
    if environments is not None:
        environments.close()
    evaluations.finish(policy())


def as_row(iteration: int, steps: int, seconds: float, returns: list[float], metrics: Metrics) -> dict[str, float]:
    """An iteration's metrics as a row of metrics.csv."""
    return {
        "iteration": iteration,
        "steps": steps,
        "seconds": seconds,
        "episode_return": float(np.mean(returns)) if returns else float("nan"),
        "episodes": len(returns),
        **NOT_EVALUATED,
        **{name: float(x) for name, x in metrics.items()},
    }


def to_arrays(state: PyTree, prefix: str = "") -> dict[str, np.ndarray]:
    """The leaves of a state by their place in it."""
    leaves = jax.tree_util.tree_leaves_with_path(jax.device_get(state))
    return {prefix + jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def from_arrays(template: PyTree, arrays: dict[str, np.ndarray], prefix: str = "") -> PyTree:
    """The state that `to_arrays` took apart."""

    def restore(path: Any, leaf: Any) -> Any:
        name = prefix + jax.tree_util.keystr(path)
        if name not in arrays or arrays[name].shape != leaf.shape:
            raise UserError(f"The checkpoint does not match the run's config ({name}).")
        if isinstance(leaf, np.ndarray | np.generic):
            return arrays[name].astype(leaf.dtype)
        return jnp.asarray(arrays[name], leaf.dtype)

    return jax.tree_util.tree_map_with_path(restore, template)


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
