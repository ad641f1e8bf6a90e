"""A config with what it names, ready to learn: everything that can be wrong is checked here, before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from iddm.closeness import Yardstick
from iddm.config import Config
from iddm.demos import Demos
from iddm.envs.spec import EnvShape, EnvSpec, MakeEnv, parse_kwargs, resolve, shape_of
from iddm.envs.vector import choose_backend, make_vector
from iddm.errors import UserError
from iddm.learners import Problem
from iddm.learners.base import KnownPolicy
from iddm.nets import GaussianPolicy, Normaliser, SquashedGaussianPolicy
from iddm.nets import Policy as PolicyNet
from iddm.policy import Policy, load_policy, uniform_policy
from iddm.rewards.expert import Expert
from iddm.training.demonstrations import Demonstrations, DemosRecord, find_yardstick, prepare_demonstrations
from iddm.training.run_dir import Run
from iddm.utils.extras import need
from iddm.utils.keys import Use, key_for


@dataclass(frozen=True)
class Setup:
    """A config with the shape of its environment and its demonstrations."""

    config: Config
    spec: EnvSpec
    shape: EnvShape
    demonstrations: Demonstrations | None

    @staticmethod
    def prepare(config: Config, demos: Demos | None = None, make: MakeEnv | EnvSpec | None = None) -> "Setup":
        spec = resolve(make or config.env, config.max_episode_steps, parse_kwargs(config.env_kwargs))
        shape = shape_of(spec)
        choose_backend(spec, config.backend)
        config = replace(config, terms={name: term.for_env(shape) for name, term in config.terms.items()})
        if config.tensorboard:
            need("tensorboardX", "tensorboard", "TensorBoard event files")
        demonstrations = prepare_demonstrations(config, shape, demos) if config.needs_demos else None
        setup = Setup(demonstrations.config if demonstrations else config, spec, shape, demonstrations)
        config.learner.check_problem(setup.problem)
        if config.init is not None:  # fail early where the learner cannot start from it
            setup.initial_state()
        if config.until == "closeness" and (setup.yardstick is None or not config.evaluations):
            raise UserError("--until closeness needs evaluations, and demonstrations of which a part can be held out.")
        if setup.reference is not None:  # fail early where the simulator cannot be put into demonstrated states
            make_vector(spec, 1, 0, config.backend, setup.reference).close()
        return setup

    @property
    def problem(self) -> Problem:
        return Problem(self.shape.obs_size, self.shape.action_space, tuple(self.config.terms.values()))

    @property
    def expert(self) -> Expert | None:
        return None if self.demonstrations is None else self.demonstrations.expert

    @property
    def held_out(self) -> Expert | None:
        """The demonstrations that are not learned from, where some are held out."""
        return None if self.demonstrations is None else self.demonstrations.held_out

    @property
    def yardstick(self) -> Yardstick | None:
        return None if self.demonstrations is None else self.demonstrations.yardstick

    @property
    def demos_record(self) -> DemosRecord | None:
        return None if self.demonstrations is None else self.demonstrations.record

    @property
    def agent_lags(self) -> tuple[int, ...]:
        return (1,) if self.demonstrations is None else self.demonstrations.agent_lags

    @property
    def reference(self) -> np.ndarray | None:
        """The episode whose states episodes start in, where a term wants that."""
        wanted = any(term.starts_from_demos for term in self.config.terms.values())
        return np.asarray(self.expert.reference) if wanted and self.expert is not None else None

    def initial_policy(self) -> KnownPolicy | None:
        """The policy that the run starts from, where the user names one."""
        if self.config.init is None:
            return None
        policy, space = load_policy(self.config.init), self.shape.action_space
        if policy.obs_size != self.shape.obs_size or policy.action_space != space or policy.squashed or policy.uniform:
            raise UserError(
                f"--init {self.config.init}: ppo cannot start from it in {self.spec.id}; take a policy of ppo or bco."
            )
        return KnownPolicy(policy.weights, policy.biases, policy.mean, policy.std)

    def initial_state(self) -> PyTree:
        """What the learner starts from."""
        config = self.config
        state, known = config.learner.init(self.problem, self.expert, key_for(config.seed, Use.INIT)), self.initial_policy()
        return state if known is None else config.learner.start_from(state, known)

    def saved_policy(self, learned: tuple[PolicyNet, Normaliser] | None) -> Policy:
        """The policy as a user keeps it. Nothing of the run's place or time goes in: same run, same bytes."""
        space, origin = self.shape.action_space, self._origin()
        if learned is None:
            return uniform_policy(self.shape.obs_size, space, origin)
        policy, normaliser = learned
        mean, std = jax.device_get(normaliser.own_scale())
        net = jax.device_get(policy.net)
        return Policy(
            mean=np.asarray(mean),
            std=np.asarray(std),
            clip=normaliser.clip,
            weights=tuple(map(np.asarray, net.weights)),
            biases=tuple(map(np.asarray, net.biases)),
            log_std=np.asarray(policy.log_std) if isinstance(policy, GaussianPolicy) else None,
            action_space=space,
            config=origin,
            activation=policy.net.activation,
            squashed=isinstance(policy, SquashedGaussianPolicy),
        )

    def _origin(self) -> dict[str, object]:
        """What a saved policy says of its origin."""
        _, unit = self.config.length
        return {
            "env": self.config.env,
            "max_episode_steps": self.spec.max_episode_steps,
            "env_kwargs": self.spec.kwargs,
            "method": self.config.method,
            "preset": self.config.preset,
            "steps": self.config.steps if unit == "steps" else 0,
            "seed": self.config.seed,
        }


def yardstick_of(run: Run, make: str | MakeEnv | None = None, env_kwargs: Mapping[str, Any] | None = None) -> Yardstick | None:
    """What the closeness of a run's policies is measured with; None where its demonstrations are no longer there, or too few."""
    if run.demos is None:
        return None
    return find_yardstick(run.config, shape_of(run.stored_env.own(make, env_kwargs)), run.demos.sha256)
