"""From a policy and an expert's demonstrations with actions to their disagreement."""

from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from iddm.bundled import bundled_demos, with_expert_actions
from iddm.demos import Demos, load_demos
from iddm.disagreement.estimate import Disagreement, Episode, estimate_disagreement
from iddm.envs.redundant import Motors, motors_of
from iddm.envs.spaces import ActionSpace
from iddm.envs.spec import EnvSpec
from iddm.errors import UserError
from iddm.evaluation import EVALUATION_SEED, env_of, record_demos
from iddm.policy import Policy
from iddm.tasks import find_task
from iddm.training.run_dir import Run

NOISE = 0.3
"""Deviation of the noise that is added to the actions of both sides, in units where a bounded Box is [-1, 1].

It is the resolution: with 0.1, what the models miss of HalfCheetah's stiff inverse dynamics already looks like disagreement
(1.3 nats between its expert with and without its own noise, where there is none; 0.14 nats with 0.3).
"""


@dataclass(frozen=True)
class Measured:
    """A policy against an expert."""

    env: str
    disagreement: Disagreement
    noise: float
    num_episodes: int
    """Of the agent."""
    num_expert_episodes: int
    null_energy: float = nan
    """Mean energy of the part of the agent's actions that changes no state, where motors are redundant; the expert's is 0
    where its motors share a joint's torque evenly."""

    def to_json(self) -> dict[str, Any]:
        found = self.disagreement
        energy = {} if isnan(self.null_energy) else {"null_energy": self.null_energy}
        return {
            "env": self.env,
            "everywhere": found.everywhere._asdict(),
            "shared": None if isnan(found.shared.value) else found.shared._asdict(),
            "told_apart": found.told_apart,
            **energy,
            "noise": self.noise,
            "episodes": self.num_episodes,
            "expert_episodes": self.num_expert_episodes,
            "caution": found.caution,
        }


def measure(
    policy: Policy,
    expert: Demos,
    episodes: int = 10,
    noise: float = NOISE,
    stochastic: bool = True,
    seed: int = EVALUATION_SEED,
    env: str | None = None,
    env_kwargs: dict[str, Any] | None = None,
) -> Measured:
    """Record the policy, with the noise that it learned with, and compare it with the expert's demonstrations.

    A deterministic expert has an infinite disagreement with whoever acts differently, so both sides get a little noise of one
    deviation. By the data processing inequality, that can only lower the disagreement: it is a lower bound for `noise` = 0.
    """
    if not 0 <= noise <= 10:
        raise UserError(f"The noise is {noise}; it is a deviation between 0 and 10.")
    spec, space = env_of(policy).own(env, env_kwargs), policy.action_space
    recorded = record_demos(policy, episodes, with_actions=True, stochastic=stochastic, seed=seed, env=env, env_kwargs=env_kwargs)
    rng = np.random.default_rng(seed)
    sides = [_episodes_of(demos, space, noise, rng) for demos in (recorded, expert)]
    _check(sides[1], sides[0], spec)
    found = estimate_disagreement(*sides, discrete=space.discrete)
    motors = motors_of(spec.id, spec.kwargs)
    energy = nan if motors is None else _null_energy(recorded, space, motors)
    return Measured(spec.id, found, 0.0 if space.discrete else noise, episodes, expert.num_episodes, energy)


def expert_demos(place: str, policy: Policy, file: Path | None) -> Demos:
    """The expert that a policy is compared with: the file's, or the bundled one that its run imitated."""
    if file is not None:
        demos = load_demos(file)
        if demos.actions is None:
            raise UserError(
                f"{file}: there are no actions in it, and the disagreement is about them (`iddm demos --with-actions`)."
            )
        return demos
    record = Run(Path(place)).demos
    if (record is not None and record.bundled_task is None) or find_task(policy.config["env"]) is None:
        raise UserError(f"{place} did not imitate a bundled expert: give demonstrations with actions, --demos FILE.")
    return bundled_for(policy)


def bundled_for(policy: Policy) -> Demos:
    """The bundled demonstrations of a policy's task, with the expert's actions as its environment takes them."""
    env = policy.config["env"]
    return with_expert_actions(bundled_demos(env), env, motors_of(env, policy.config.get("env_kwargs") or {}))


def _episodes_of(demos: Demos, space: ActionSpace, noise: float, rng: np.random.Generator) -> list[Episode]:
    assert demos.actions is not None
    episodes = []
    for states, recorded in zip(demos.observations, demos.actions, strict=True):
        action = space.from_env(np.reshape(recorded, (len(recorded), -1)))
        if space.discrete:
            action = (action == np.arange(space.size)).astype(np.float32)
        else:
            action = action + noise * rng.standard_normal(action.shape)
        episodes.append(Episode(states[:-1], action, states[1:]))
    return episodes


def _check(expert: list[Episode], agent: list[Episode], spec: EnvSpec) -> None:
    for name, what in (("s", "columns of a state"), ("a", "components of an action")):
        theirs, ours = getattr(expert[0], name).shape[1], getattr(agent[0], name).shape[1]
        if theirs != ours:
            raise UserError(f"The demonstrations have {theirs} {what}, and {spec.id} has {ours}.")


def _null_energy(demos: Demos, space: ActionSpace, motors: Motors) -> float:
    actions = demos.flat_actions()
    assert actions is not None
    return float(motors.null_energy(space.from_env(actions)).mean())
