"""A config with what it names, ready to learn: everything that can be wrong is checked here."""

import importlib.util
from dataclasses import dataclass, replace

import jax
import numpy as np

from iddm.bundled import with_expert_actions
from iddm.config import Config
from iddm.demos import Demos
from iddm.envs import EnvShape, EnvSpec, make_vector, resolve, shape_of
from iddm.envs.spec import MakeEnv, parse_kwargs
from iddm.envs.vector import choose_backend
from iddm.errors import UserError
from iddm.expert import expert_data, find_demos, fit_demos
from iddm.nets import Normaliser, Policy
from iddm.policy import Policy as SavedPolicy
from iddm.rollout import ExpertData


@dataclass(frozen=True)
class Job:
    """A config with the environment's shape and the demonstrations that it names."""

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
        config = replace(config, terms={name: term.fitted(shape) for name, term in config.terms.items()})
        if config.tensorboard and importlib.util.find_spec("tensorboardX") is None:
            raise UserError("TensorBoard event files need an extra: pip install 'iddm[tensorboard]'.")
        if not config.needs_demos:
            return Job(config, spec, shape, None, None)
        bundled = demos is None and config.demos is None
        demos = find_demos(config, demos)
        demos = demos if config.needs_expert_actions else demos.states_only()
        digest = demos.digest()
        if bundled and config.needs_expert_actions:
            demos = with_expert_actions(demos, config.env)
        demos, view = fit_demos(demos, shape, config)
        expert = expert_data(demos, shape, config.needs_expert_actions, config, view)
        job = Job(config, spec, shape, expert, digest, view.agent_lags)
        if job.reference is not None:
            make_vector(spec, 1, 0, config.backend, job.reference).close()  # says so where it cannot be
        return job

    @property
    def reference(self) -> np.ndarray | None:
        """The episode whose states episodes start in, where a term wants that."""
        wanted = any(term.starts_from_demos for term in self.config.terms.values())
        return np.asarray(self.expert.first) if wanted and self.expert and self.expert.first is not None else None

    def export(self, policy: Policy, normaliser: Normaliser) -> SavedPolicy:
        """The policy as a user keeps it. Nothing of the run's place or time goes in: same run, same bytes."""
        mean, std = jax.device_get(normaliser.own_scale())
        net = jax.device_get(policy.net)
        log_std = getattr(policy, "log_std", None)
        return SavedPolicy(
            np.asarray(mean),
            np.asarray(std),
            normaliser.clip,
            tuple(map(np.asarray, net.weights)),
            tuple(map(np.asarray, net.biases)),
            None if log_std is None else np.asarray(log_std),
            self.shape.action_space,
            self.about(),
        )

    def about(self) -> dict[str, object]:
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
