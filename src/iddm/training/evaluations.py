"""Evaluations during training: how good the policy is by now, and which one to keep.

The environment's reward is only reported. The policy that is kept is the one closest to held-out demonstrations.
"""

import shutil
from dataclasses import replace
from functools import partial
from math import ceil, nan

import jax
import numpy as np
from jaxtyping import Array, Float, PyTree

from iddm.evaluation import run_episodes
from iddm.nets import Normaliser
from iddm.policy import Policy
from iddm.rewards import Adversarial
from iddm.rewards.expert import Expert, ExpertSampler
from iddm.training.metrics_file import Row
from iddm.training.run_dir import Run, closest_evaluation
from iddm.training.setup import Setup
from iddm.utils.files import write_whole

EPISODES, MOST_EPISODES, STEPS = 4, 20, 1_000
"""Episodes of an evaluation: more where they are short, until they have this many steps."""
SEED = 3_000_000
"""Of the first episode; the same starts every time, and none of those that `iddm eval` uses."""
LONGEST = 1_000
"""Steps of an episode where neither environment nor demonstrations have a limit."""
HELD_OUT_ROWS = 1_000
"""Held-out transitions that a discriminator is shown."""


def num_episodes(length: int | None) -> int:
    """Episodes of an evaluation where they have this length."""
    return min(max(EPISODES, ceil(STEPS / (length or STEPS))), MOST_EPISODES)


class Evaluations:
    """Evaluates policies in environments of their own, and keeps each until the run ends."""

    def __init__(self, setup: Setup, run: Run) -> None:
        self._run, self._setup, self._yardstick = run, setup, setup.yardstick
        self._num_iterations = setup.config.schedule.num_iterations
        self._wanted = setup.config.evaluations if setup.config.schedule.rollout_length else 0
        self._stops_at_floor = setup.config.until == "closeness"
        length, horizon = (self._yardstick.length, self._yardstick.horizon) if self._yardstick else (None, None)
        self._num_episodes = num_episodes(length)
        self._spec = replace(setup.spec, max_episode_steps=setup.spec.max_episode_steps or max(horizon or 0, LONGEST))

    def due(self, iteration: int) -> bool:
        """Whether the policy is evaluated after so many iterations: evenly over the run, and at its end."""
        return iteration * self._wanted // self._num_iterations > (iteration - 1) * self._wanted // self._num_iterations

    def evaluate(self, iteration: int, policy: Policy, state: PyTree) -> Row:
        """Return, length, motion and closeness of a few episodes with the most likely actions, and what the learner's
        discriminator makes of held-out demonstrations.
        """
        rng = np.random.default_rng(SEED) if policy.uniform else None
        episodes = run_episodes(lambda obs: policy.predict(obs, rng), self._spec, self._num_episodes, SEED)
        row = NOT_EVALUATED | {
            "evaluation_return": float(np.mean([e.rewards.sum() for e in episodes])),
            "evaluation_length": float(np.mean([len(e.rewards) for e in episodes])),
        }
        if self._yardstick is not None:
            observations = [e.observations for e in episodes]
            row["evaluation_motion"] = self._yardstick.motion(observations)
            row["closeness"] = self._yardstick.closeness(observations, [e.terminated for e in episodes])
            policy.save(self._run.evaluated_policy(iteration))
        return row | {"held_out_accuracy": self._held_out_accuracy(state)}

    def _held_out_accuracy(self, state: PyTree) -> float:
        """Far below its accuracy on the demonstrations that it learns from, where the discriminator knows those by heart."""
        held_out = self._setup.held_out
        term = next((term for term in self._setup.problem.terms if isinstance(term, Adversarial)), None)
        if held_out is None or term is None:
            return nan
        return float(_share_recognised(term, state.terms[term.name], held_out, state.normaliser))

    def enough(self, row: Row) -> bool:
        """Whether the run may stop here: the policy is as close as demonstrations are to each other."""
        return self._stops_at_floor and row["closeness"] >= 1

    def finish(self, last: Policy) -> None:
        """Leave the last policy and the one to keep."""
        closest = closest_evaluation(self._run.metrics())
        if closest is None:
            last.save(self._run.policy_path)
            return
        last.save(self._run.last_policy_path)
        write_whole(self._run.policy_path, self._run.evaluated_policy(closest).read_bytes())
        shutil.rmtree(self._run.evaluated_folder)


NOT_EVALUATED: Row = dict.fromkeys(
    ("evaluation_return", "evaluation_length", "evaluation_motion", "closeness", "held_out_accuracy"), nan
)


@partial(jax.jit, static_argnums=0)
def _share_recognised(term: Adversarial, learned: PyTree, held_out: Expert, scale: Normaliser) -> Float[Array, ""]:
    sampler = ExpertSampler(held_out, partial(scale.mixture_of, columns=held_out.view.columns))
    return term.share_recognised(learned, sampler, jax.random.PRNGKey(0), HELD_OUT_ROWS)
