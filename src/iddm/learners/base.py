"""What a learner is. The training loop drives every learner through this interface and knows none of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray, PyTree

from iddm.envs.rollout import Rollout
from iddm.envs.spaces import ActionSpace
from iddm.errors import UserError
from iddm.learners.replay_buffer import ReplayBuffer
from iddm.nets import Actor, Normaliser, Policy
from iddm.rewards import Term
from iddm.rewards.expert import Expert

Metrics = dict[str, Array]


@dataclass(frozen=True)
class Problem:
    """What is to be learned, apart from data: the sizes of the environment and the terms of the reward."""

    obs_size: int
    action_space: ActionSpace
    terms: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """How a run is divided into iterations."""

    num_iterations: int
    rollout_length: int = 0
    """Steps of each environment per iteration; 0 for a learner that never acts."""
    num_envs: int = 1
    restart_every: int = 0
    """Iterations after which the environments start anew; 0 for never."""
    epochs: int | None = None
    """Epochs of the run, for a learner that never acts."""
    first_rollout_length: int | None = None
    """Of the first iteration, where it differs."""

    @property
    def steps_per_iteration(self) -> int:
        return self.rollout_length * self.num_envs

    def length_of(self, iteration: int) -> int:
        """Steps of each environment in this iteration."""
        return self.rollout_length if iteration or self.first_rollout_length is None else self.first_rollout_length

    def steps_after(self, iterations: int) -> int:
        """Environment steps after so many iterations."""
        more = 0 if self.first_rollout_length is None or not iterations else self.first_rollout_length - self.rollout_length
        return (iterations * self.rollout_length + more) * self.num_envs


class KnownPolicy(NamedTuple):
    """A policy to start from: its layers, and the scale of its observations."""

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    mean: np.ndarray
    std: np.ndarray


class Progress(NamedTuple):
    """Where in the run an iteration is; traced, so that one compiled program serves all iterations."""

    iteration: int
    left: float
    """The part of the run that is left: 1 at the start, 0 at the end."""
    last: bool = False
    """Whether this is the last iteration."""


@runtime_checkable
class Learner(Protocol):
    """A frozen dataclass of settings with pure functions. All that is learned is in its state, a pytree of arrays."""

    name: ClassVar[str]
    checkpoint_every: ClassVar[int] = 32
    """Iterations between checkpoints, unless the user says otherwise."""

    @property
    def needs_demos(self) -> bool:
        """Whether the learner itself, apart from the terms of the reward, learns from demonstrations."""
        return False

    @property
    def needs_expert_actions(self) -> bool:
        return False

    def for_demos(self, end_early: bool) -> "Learner":
        """The learner with what it reads off the demonstrations; `end_early`: most of them end by themselves."""
        return self

    def schedule(self, steps: int) -> Schedule:
        """How `steps` environment steps are divided into iterations."""
        ...

    def check_problem(self, problem: Problem) -> None:
        """Raise where the learner cannot be used."""

    def init(self, problem: Problem, expert: Expert | None, key: PRNGKeyArray) -> PyTree:
        """The state before the first iteration."""
        ...

    def start_from(self, state: PyTree, policy: KnownPolicy) -> PyTree:
        """The state whose policy is the one given, with the learner's own exploration."""
        raise UserError(f"The learner {self.name} cannot start from a policy (--init); use --learner ppo.")

    def actor(self, state: PyTree, progress: Progress) -> tuple[Actor, Normaliser] | None:
        """The policy that samples the iteration's actions; None for uniformly random actions."""
        ...

    def update(
        self,
        problem: Problem,
        state: PyTree,
        rollout: Any,
        expert: Expert | None,
        key: PRNGKeyArray,
        progress: Progress,
    ) -> tuple[PyTree, Metrics]:
        """Learn from an iteration's rollout (None for a learner that never acts; else what `batches` drew); traced.

        The metrics "finite/NAME" say whether each part of the state is finite.
        """
        ...

    def buffer(self, problem: Problem, expert: Expert | None) -> ReplayBuffer | None:
        """Where past transitions are kept; None for a learner that forgets them after the update."""
        return None

    def batches(self, buffer: ReplayBuffer, rollout: Rollout, rng: np.random.Generator) -> Iterator[Any]:
        """Put a rollout into the buffer, and draw what `update` is given in its place: once, or several times."""
        raise TypeError(f"{self.name} has no buffer")

    def policy(self, state: PyTree) -> tuple[Policy, Normaliser] | None:
        """The learned policy; None for uniformly random actions."""
        ...


def all_finite(tree: PyTree) -> Array:
    """Whether every number in a pytree is finite."""
    leaves = [jnp.isfinite(x).all() for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.stack([*leaves, jnp.array(True)]).all()
