"""The loop: collect, learn, record, keep. It serves every method that a policy gradient trains."""

import dataclasses
import importlib.util
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from iddm.config import Config, default_config
from iddm.demos import Demos
from iddm.envs import EnvShape, EnvSpec, make_vector, resolve, shape_of
from iddm.envs.spec import MakeEnv, parse_kwargs
from iddm.envs.vector import choose_backend
from iddm.errors import UserError
from iddm.expert import expert_data, find_demos, fit_demos
from iddm.learner import TrainState, act, init_state, iteration_key, keep_compiled_code, make_iteration, rollout_noise
from iddm.policy import Policy
from iddm.rollout import Collector, ExpertData
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


def configure(config: Config, settings: dict[str, Any]) -> Config:
    """The config with some settings changed; those of PPO and of the terms are given as dictionaries."""
    parts: dict[str, Any] = {**config.terms, "ppo": config.ppo}
    plain = {f.name for f in dataclasses.fields(config)} - {"terms", "ppo"}
    for name, value in settings.items():
        if name not in parts and name not in plain:
            raise UserError(f"Setting '{name}' is unknown to {config.method}; there are {', '.join(sorted({*plain, *parts}))}.")
        if name in parts:
            try:
                parts[name] = dataclasses.replace(parts[name], **value)
            except TypeError as error:
                raise UserError(f"Setting '{name}': {error}.") from error
    changes = {name: value for name, value in settings.items() if name in plain}
    return dataclasses.replace(config, **changes, ppo=parts.pop("ppo"), terms=parts)


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
        job.train(run, None, on_row)
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
        job.train(run, checkpoint, on_row)
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


@dataclasses.dataclass(frozen=True)
class Job:
    """A config with what it names: the environment's shape and the demonstrations."""

    config: Config
    spec: EnvSpec
    shape: EnvShape
    expert: ExpertData | None
    digest: str | None
    lags: tuple[int, ...] = (1,)
    """How many steps before a successor the states lie that the discriminator is shown with it."""

    @staticmethod
    def prepare(config: Config, demos: Demos | None = None, make: MakeEnv | None = None) -> "Job":
        spec = resolve(make or config.env, config.max_episode_steps, parse_kwargs(config.env_kwargs))
        shape = shape_of(spec)
        choose_backend(spec, config.backend)
        if config.tensorboard and importlib.util.find_spec("tensorboardX") is None:
            raise UserError("TensorBoard event files need an extra: pip install 'iddm[tensorboard]'.")
        if not any(term.needs_demos for term in config.terms.values()):
            return Job(config, spec, shape, None, None)
        needs_actions = any(term.needs_expert_actions for term in config.terms.values())
        demos = find_demos(config, demos)
        demos = demos if needs_actions else demos.states_only()
        digest = demos.digest()
        demos, view = fit_demos(demos, shape, config)
        return Job(config, spec, shape, expert_data(demos, shape, needs_actions, config, view), digest, view.agent_lags)

    def train(self, run: Run, checkpoint: Checkpoint | None, on_row: OnRow | None) -> None:
        config = self.config
        keep_compiled_code()
        state = init_state(config, self.shape.obs_size, self.shape.action_space, self.expert)
        iteration = 0
        if checkpoint is not None:
            state, iteration = from_arrays(state, checkpoint.arrays), checkpoint.iteration
        rows = run.start_metrics(iteration)
        began = time.perf_counter() - (rows[-1]["seconds"] if rows else 0.0)
        envs = Environments(self, iteration, checkpoint.replay if checkpoint else None)
        iterate = make_iteration(config)
        with stop_on_interrupt() as interrupted, run.event_files(config.tensorboard) as add_events:
            while iteration < config.num_iterations:
                if iteration % config.checkpoint_every == 0 and iteration != envs.since:
                    run.save_checkpoint(Checkpoint(iteration, to_arrays(state)))
                    envs.renew(iteration)
                rollout, returns = envs.collect(state, iteration)
                key, left = iteration_key(config.seed, iteration), 1 - iteration / config.num_iterations
                state, metrics = iterate(state, rollout, self.expert, key, left)
                iteration += 1
                row = {
                    "iteration": iteration,
                    "steps": iteration * config.steps_per_iteration,
                    "seconds": 0.0,
                    "episode_return": float(np.mean(returns)) if returns else float("nan"),
                    "episodes": len(returns),
                } | {key: float(x) for key, x in jax.device_get(metrics).items()}
                row["seconds"] = time.perf_counter() - began
                stop_if_not_finite(row, run)
                run.add_metrics(row)
                add_events(row)
                if on_row:
                    on_row(row)
                if interrupted():
                    run.save_checkpoint(Checkpoint(iteration, to_arrays(state), envs.replay()))
                    raise Interrupted(f"Stopped at step {row['steps']}. Continue with: iddm train --resume {run.path}")
        envs.close()
        self.policy(state).save(run.path / "policy.safetensors")

    def policy(self, state: TrainState) -> Policy:
        """The learner's policy as a user keeps it. Nothing of the run's place or time goes in: same run, same bytes."""
        mean, std = jax.device_get(state.normaliser.own_scale())
        net = jax.device_get(state.policy.net)
        log_std = getattr(state.policy, "log_std", None)
        about = {
            "env": self.config.env,
            "max_episode_steps": self.spec.max_episode_steps,
            "env_kwargs": self.spec.kwargs,
            "method": self.config.method,
            "preset": self.config.preset,
            "steps": self.config.steps,
            "seed": self.config.seed,
        }
        return Policy(
            np.asarray(mean),
            np.asarray(std),
            state.normaliser.clip,
            tuple(map(np.asarray, net.weights)),
            tuple(map(np.asarray, net.biases)),
            None if log_std is None else np.asarray(log_std),
            self.shape.action_space,
            about,
        )


class Environments:
    """The environments of a run. Where they are follows from (seed, iteration they started at, actions since)."""

    def __init__(self, job: Job, iteration: int, replay: np.ndarray | None) -> None:
        self._job = job
        self._actions: list[np.ndarray] = []
        self._collector: Collector | None = None
        num_replayed = 0 if replay is None else len(replay) // job.config.rollout_length
        self.renew(iteration - num_replayed)
        if replay is not None:
            self._collect(lambda obs, t: replay[t], len(replay))

    def renew(self, iteration: int) -> None:
        """Start anew: from here on, only the seed and the iteration matter."""
        self.close()
        config = self._job.config
        seed = int(np.random.SeedSequence([config.seed, iteration]).generate_state(1)[0] >> 2)
        env = make_vector(self._job.spec, config.num_envs, seed, config.backend)
        self._collector = Collector(env, self._job.shape.action_space, self._job.lags)
        self._actions = []
        self.since = iteration

    def collect(self, state: TrainState, iteration: int):
        config = self._job.config
        key = jax.random.fold_in(iteration_key(config.seed, iteration), 0)
        noise = np.asarray(rollout_noise(state.policy, key, (config.rollout_length, config.num_envs)))
        policy, normaliser = state.policy, state.normaliser
        return self._collect(lambda obs, t: act(policy, normaliser, obs, noise[t]), config.rollout_length)

    def _collect(self, choose: Callable[[np.ndarray, int], Any], num_steps: int):
        assert self._collector is not None
        rollout, returns = self._collector.collect(choose, num_steps)
        self._actions.append(rollout.action)
        return rollout, returns

    def replay(self) -> np.ndarray:
        """The actions since the start, to bring fresh environments to this very point."""
        return np.concatenate(self._actions)

    def close(self) -> None:
        if self._collector is not None:
            self._collector.close()


def to_arrays(state: TrainState) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(jax.device_get(state))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def from_arrays(template: TrainState, arrays: dict[str, np.ndarray]) -> TrainState:
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
