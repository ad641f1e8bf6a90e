"""From a name to an environment: a task's name, a registered Gymnasium id, or a function that makes one."""

import difflib
import importlib
import importlib.util
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import TimeLimit

from iddm.envs.columns import names_of
from iddm.envs.guard import GuardedEnv, reason
from iddm.envs.spaces import ActionSpace, EnvSizes, action_space_of
from iddm.errors import UserError
from iddm.tasks import REDUNDANT, TASKS, find_task
from iddm.utils.extras import need

MakeEnv = Callable[[], gym.Env]


@dataclass(frozen=True)
class EnvSpec:
    """Which environment, fully determined."""

    id: str
    """A registered Gymnasium id, or `module:function` for a function that makes the environment."""
    max_episode_steps: int | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    make: MakeEnv | None = field(default=None, compare=False, repr=False)

    @property
    def registered(self) -> bool:
        return self.make is None


def resolve(
    env: "str | MakeEnv | EnvSpec", max_episode_steps: int | None = None, kwargs: dict[str, Any] | None = None
) -> EnvSpec:
    """Find the environment that a user means."""
    if isinstance(env, EnvSpec):
        return env
    kwargs = dict(kwargs or {})
    if callable(env):
        return EnvSpec(f"{env.__module__}:{env.__qualname__}", max_episode_steps, kwargs, env)
    if env.startswith(REDUNDANT):
        from iddm.envs.redundant import register_redundant

        joints = resolve(env.removeprefix(REDUNDANT), max_episode_steps)
        return EnvSpec(register_redundant(joints.id), joints.max_episode_steps, kwargs)
    _register_ours()
    task = find_task(env)
    if task is not None and env.lower() == task.name.lower():  # with the time limit of our studies
        return EnvSpec(task.env_id, max_episode_steps or task.max_episode_steps, kwargs)
    if ":" in env:
        return EnvSpec(env, max_episode_steps, kwargs, _import_function(env))
    if env not in gym.registry:
        known = [t.name for t in TASKS] + list(gym.registry)
        near = difflib.get_close_matches(env, known, n=3, cutoff=0.6)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        raise UserError(
            f"Environment '{env}' is not registered with Gymnasium.{hint} A module that registers one is given with --import, "
            "a function that makes one as module:function."
        )
    if max_episode_steps is None:
        max_episode_steps = gym.spec(env).max_episode_steps
    return EnvSpec(env, max_episode_steps, kwargs)


def _register_ours() -> None:
    from iddm.envs import gridworld, point_mass

    gridworld.register()
    point_mass.register()


def _import_function(name: str) -> MakeEnv:
    module, _, function = name.partition(":")
    try:
        made: Any = getattr(_import_here(module), function)
    except (ImportError, AttributeError) as error:
        raise UserError(
            f"Environment '{name}': {error}. Give module:function from the directory of the module's file, or --import FILE.py."
        ) from error
    except (Exception, SystemExit) as error:  # the user's own code can fail in any way
        raise UserError(f"Environment '{name}': importing {module} raised {reason(error)}.") from error
    if not callable(made):
        raise UserError(f"Environment '{name}': {function} is not a function that makes an environment.")
    return made  # pyright: ignore[reportReturnType]


@contextmanager
def without_notices() -> Iterator[None]:
    """Keep packages' notices about their own environments ("out of date", lowered precision) from our users."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def make_env(spec: EnvSpec, **extra: Any) -> gym.Env:
    """One Gymnasium environment with flat observations, whose failures are sentences. `extra` are options beside the spec's."""
    if spec.registered and str(gym.spec(spec.id).entry_point).startswith("gymnasium.envs.box2d"):
        with without_notices():  # it crashes where warnings are errors
            need("Box2D", "box2d", f"{spec.id} and other environments of Box2D")
    try:
        with without_notices():
            if spec.make is not None:
                env = spec.make(**spec.kwargs, **extra)
                if spec.max_episode_steps and isinstance(env, gym.Env):
                    env = TimeLimit(env, spec.max_episode_steps)
            else:
                env = gym.make(
                    spec.id,
                    max_episode_steps=spec.max_episode_steps,
                    disable_env_checker=True,
                    **spec.kwargs,
                    **extra,
                )
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # any constructor of any package can fail in its own way
        raise UserError(f"{spec.id}: the environment could not be made ({reason(error)}).") from error
    return GuardedEnv(env, spec.id)


@dataclass(frozen=True)
class EnvShape:
    """What a policy must know of an environment."""

    env_id: str
    obs_size: int
    action_space: ActionSpace
    max_episode_steps: int | None
    columns: tuple[str, ...] = ()
    """Names of the columns, where they are known (envs/columns.py)."""
    step_seconds: float | None = None
    """Simulated seconds per step, where the environment says."""

    @property
    def sizes(self) -> EnvSizes:
        """What demonstrations are compared with."""
        width = None if self.action_space.discrete else self.action_space.size
        return EnvSizes(self.env_id, self.obs_size, self.max_episode_steps, width, self.columns, self.step_seconds)


def shape_of(spec: EnvSpec) -> EnvShape:
    """Make the environment once and look at it."""
    env = make_env(spec)
    try:
        assert env.observation_space.shape is not None
        obs_size = int(env.observation_space.shape[0])
        actions = action_space_of(env.action_space, spec.id)
        limit = spec.max_episode_steps or _time_limit(env)
        return EnvShape(spec.id, obs_size, actions, limit, names_of(env, obs_size), _step_seconds(env))
    finally:
        env.close()


def _time_limit(env: Any) -> int | None:
    """The time limit that a function puts on the environment that it makes."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, TimeLimit):
            return int(env._max_episode_steps)
        env = env.env
    return None


def _step_seconds(env: gym.Env) -> float | None:
    """The `dt` of MuJoCo's and many other environments, or CartPole's `tau`; frames per second of a film say nothing of it."""
    for name in ("dt", "tau"):
        seconds = getattr(env.unwrapped, name, None)
        if isinstance(seconds, int | float) and 1e-6 < seconds < 1e6:
            return float(seconds)
    return None


def import_module(name: str) -> None:
    """`--import`: run a module or a file that registers environments."""
    try:
        if name.endswith(".py"):
            path = Path(name).resolve()
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
        else:
            _import_here(name)
    except (Exception, SystemExit) as error:  # the user's own code can fail in any way
        if name.endswith(".py"):
            sys.modules.pop(Path(name).stem, None)  # half a module must not be found again
        raise UserError(f"--import {name}: {reason(error)}.") from error


def _import_here(module: str) -> Any:
    """Import a module, which may be a file of the current directory: an installed command does not look there by itself."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(module)


def parse_kwargs(text: str) -> dict[str, Any]:
    """Read `--env-kwargs`: a JSON object."""
    try:
        data = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise UserError(f"--env-kwargs is not JSON ({error}); write it like '{{\"forward_reward_weight\": 2.0}}'.") from error
    if not isinstance(data, dict):
        raise UserError("--env-kwargs must be a JSON object, like '{\"forward_reward_weight\": 2.0}'.")
    return data
