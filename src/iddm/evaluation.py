"""Episodes of a policy in Gymnasium itself: evaluation by the environment's own return, and demonstrations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from iddm.closeness import Yardstick
from iddm.demos import Demos
from iddm.demos.oddities import EnvSample
from iddm.envs.redundant import motors_of, shared_evenly
from iddm.envs.spec import EnvSpec, MakeEnv, make_env, resolve, shape_of
from iddm.envs.stored import StoredEnv
from iddm.errors import UserError
from iddm.policy import Policy
from iddm.policy.from_sb3 import load_sb3

EVALUATION_SEED = 1_000_000
"""First seed of evaluation episodes; training draws its seeds from elsewhere."""
ENDLESS = 100_000
"""An episode without a time limit that is longer than this is taken to never end."""

Act = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Episode:
    """One episode: T+1 observations, T actions and rewards."""

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminated: bool


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The environment's own returns of some episodes."""

    env: str
    returns: np.ndarray
    lengths: np.ndarray | None = None
    """Steps of each episode, where they are known."""
    closeness: float | None = None
    """To held-out demonstrations, where a yardstick was given."""

    def __repr__(self) -> str:
        return f"Evaluation({self.env}: {self.mean:,.1f} ± {self.std:,.1f} over {len(self.returns)} episodes)"

    @property
    def mean(self) -> float:
        return float(self.returns.mean())

    @property
    def std(self) -> float:
        return float(self.returns.std())

    def to_json(self) -> dict[str, Any]:
        return {
            "env": self.env,
            "mean": self.mean,
            "std": self.std,
            "episodes": len(self.returns),
            "returns": self.returns.tolist(),
            "closeness": self.closeness,
        }


def env_of(policy: Policy) -> StoredEnv:
    """The environment that a policy was learned in, as its file names it."""
    about = policy.config
    return StoredEnv(about["env"], about.get("max_episode_steps"), about.get("env_kwargs") or {})


def run_episodes(act: Act, spec: EnvSpec, episodes: int, seed: int, side_by_side: int = 10) -> list[Episode]:
    """`episodes` episodes, of which number i starts from seed + i; `act` maps observations [n, obs] to actions."""
    if episodes < 1:
        raise UserError("The number of episodes must be at least 1.")
    waiting = list(range(episodes))[::-1]
    envs = [make_env(spec) for _ in range(min(episodes, side_by_side))]
    limit = spec.max_episode_steps or ENDLESS
    try:
        going = {i: _Recorder(env, waiting.pop(), seed) for i, env in enumerate(envs)}
        done: dict[int, Episode] = {}
        while going:
            actions = act(np.stack([recorder.observations[-1] for recorder in going.values()]))
            for (i, recorder), action in zip(list(going.items()), actions, strict=True):
                if recorder.step(action):
                    done[recorder.number] = recorder.episode()
                    del going[i]
                    if waiting:
                        going[i] = _Recorder(envs[i], waiting.pop(), seed)
                elif len(recorder.rewards) > limit:
                    raise UserError(
                        f"{spec.id}: an episode has not ended after {limit:,} steps; give a time limit with --max-episode-steps "
                        "(in Python, max_episode_steps)."
                    )
        return [done[number] for number in range(episodes)]
    finally:
        for env in envs:
            env.close()


class _Recorder:
    def __init__(self, env: Any, number: int, seed: int) -> None:
        self._env, self.number = env, number
        self.observations = [env.reset(seed=seed + number)[0].astype(np.float32)]
        self.actions: list[np.ndarray] = []
        self.rewards: list[float] = []
        self.terminated = False

    def step(self, action: Any) -> bool:
        obs, reward, terminated, truncated, _ = self._env.step(action)
        self.observations.append(obs.astype(np.float32))
        self.actions.append(np.asarray(action))
        self.rewards.append(float(reward))
        self.terminated = bool(terminated)
        return bool(terminated or truncated)

    def episode(self) -> Episode:
        return Episode(np.stack(self.observations), np.stack(self.actions), np.array(self.rewards), self.terminated)


def evaluate(
    policy: Policy | str,
    env: str | MakeEnv | EnvSpec | None = None,
    episodes: int = 50,
    seed: int = EVALUATION_SEED,
    stochastic: bool = False,
    max_episode_steps: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    yardstick: Yardstick | None = None,
) -> Evaluation:
    """Mean-action returns of a policy (or of "random" actions) in its own environment, or in `env` with `env_kwargs`.

    `yardstick` (`iddm.Yardstick.of(demos)`, or `iddm.yardstick_of(run)`) also measures how close they are to demonstrations.
    """
    if isinstance(policy, str) and policy != "random":
        raise UserError(f"evaluate takes a policy or 'random', not '{policy}'; read a file with iddm.load_policy.")
    if max_episode_steps is not None and max_episode_steps < 1:
        raise UserError(f"max_episode_steps is {max_episode_steps}; a time limit is at least 1 step.")
    if isinstance(policy, str):
        if env is None:
            raise UserError("Random actions need an environment: evaluate('random', env=...).")
        spec = resolve(env, max_episode_steps, dict(env_kwargs or {}))
        act = _random_actions(spec, seed)
    else:
        spec = env_of(policy).elsewhere(env, env_kwargs, max_episode_steps)
        act = _actions_of(policy, spec, seed, stochastic)
    runs = run_episodes(act, spec, episodes, seed)
    closeness = None
    if yardstick is not None:
        closeness = yardstick.closeness([run.observations for run in runs], [run.terminated for run in runs])
    returns, lengths = np.array([run.rewards.sum() for run in runs]), np.array([len(run.rewards) for run in runs])
    return Evaluation(spec.id, returns, lengths, closeness)


def _actions_of(policy: Policy, spec: EnvSpec, seed: int, stochastic: bool) -> Act:
    rng = np.random.default_rng(seed) if stochastic or policy.uniform else None
    motors, own = motors_of(spec.id, spec.kwargs), motors_of(policy.config["env"], {})
    if motors is not None and own is None:  # a policy of the plain task: all motors of a joint do the same
        return lambda obs: shared_evenly(policy.predict(obs, rng), policy.action_space, motors)
    return lambda obs: policy.predict(obs, rng)


def _random_actions(spec: EnvSpec, seed: int) -> Act:
    env = make_env(spec)
    env.action_space.seed(seed)
    return lambda obs: np.stack([env.action_space.sample() for _ in obs])


def sample_env(spec: EnvSpec, seed: int = EVALUATION_SEED) -> EnvSample:
    """A few short random episodes and one of zero actions, to compare demonstrations with."""
    short = replace(spec, max_episode_steps=min(spec.max_episode_steps or 200, 200))
    rows = np.concatenate([e.observations for e in run_episodes(_random_actions(short, seed), short, 5, seed)])
    idle_return = None
    space = shape_of(spec).action_space
    if not space.discrete:
        limited = replace(spec, max_episode_steps=min(spec.max_episode_steps or 1000, 1000))
        nothing = space.to_env(np.zeros((1, space.size), np.float32))
        (idle,) = run_episodes(lambda obs: np.repeat(nothing, len(obs), axis=0), limited, 1, seed)
        idle_return = float(idle.rewards.sum())
    return EnvSample(rows, idle_return)


def record_demos(
    policy: Policy,
    episodes: int,
    with_actions: bool = False,
    stochastic: bool = False,
    seed: int = EVALUATION_SEED // 2,
    env: str | MakeEnv | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> Demos:
    """Demonstrations by a policy in its own environment: states alone, unless actions are asked for.

    `env` and `env_kwargs` say again what a file cannot: a function that makes the environment, and its options.
    """
    spec = env_of(policy).own(env, env_kwargs)
    runs = run_episodes(_actions_of(policy, spec, seed, stochastic), spec, episodes, seed)
    about = {"env_id": spec.id, "recorded_from": policy.config, "stochastic": stochastic, "seed": seed}
    return _demos_of(runs, with_actions, about)


def record_sb3(model: Path, env: str, episodes: int, with_actions: bool = False, seed: int = EVALUATION_SEED // 2) -> Demos:
    """Demonstrations by a saved Stable-Baselines3 model, with its most likely actions."""
    spec = resolve(env)
    shape = shape_of(spec)
    act = load_sb3(model, shape.action_space, shape.obs_size)
    runs = run_episodes(act, spec, episodes, seed)
    return _demos_of(runs, with_actions, {"env_id": spec.id, "recorded_from": f"Stable-Baselines3 {model.name}", "seed": seed})


def _demos_of(runs: list[Episode], with_actions: bool, metadata: dict[str, Any]) -> Demos:
    return Demos(
        observations=tuple(run.observations for run in runs),
        actions=tuple(run.actions for run in runs) if with_actions else None,
        episode_returns=np.array([run.rewards.sum() for run in runs]),
        terminated=np.array([run.terminated for run in runs]),
        metadata=metadata,
    )
