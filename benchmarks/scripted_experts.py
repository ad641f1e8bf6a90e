"""The bundled experts that were not learned: a rule each, written as a policy, and ten of its episodes.

`python benchmarks/scripted_experts.py` writes them to src/iddm/bundled. The others are made by `iddm expert TASK`.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from iddm.demos import save_demos
from iddm.envs.spec import resolve, shape_of
from iddm.evaluation import evaluate, record_demos
from iddm.policy import Policy
from iddm.theory.maze import NEXT_STATE, distances

BUNDLED = Path(__file__).resolve().parents[1] / "src" / "iddm" / "bundled"
EPISODES = 10


def shortest_ways() -> Policy:
    """Gridworld: a move towards the target, each that is on a shortest way as likely as the others.

    Logits are −20 times the moves that are left after the move: a detour has odds of e^−40.
    """
    return _policy("Gridworld", (-20.0 * distances()[NEXT_STATE],))


def energy_pumping(force: float = 0.7, speed: float = 0.002) -> Policy:
    """MountainCarContinuous: push in the direction of the motion, a = force · tanh(v / speed)."""
    return _policy("MountainCarContinuous", (np.array([[0.0], [1 / speed]]), np.array([[force]])))


def _policy(task: str, weights: tuple[np.ndarray, ...]) -> Policy:
    """A policy without biases; its observations are used as they are."""
    shape = shape_of(resolve(task))
    space = shape.action_space
    config = {"env": shape.env_id, "env_kwargs": {}, "max_episode_steps": shape.max_episode_steps, "method": "scripted"}
    return Policy(
        mean=np.zeros(shape.obs_size, np.float32),
        std=np.ones(shape.obs_size, np.float32),
        clip=10.0,
        weights=tuple(weight.astype(np.float32) for weight in weights),
        biases=tuple(np.zeros(weight.shape[1], np.float32) for weight in weights),
        log_std=None if space.discrete else np.full(space.size, -2.0, np.float32),
        action_space=space,
        config=config,
    )


def main() -> None:
    for task, policy in (("Gridworld", shortest_ways()), ("MountainCarContinuous", energy_pumping())):
        policy.save(BUNDLED / f"{task}.safetensors")
        draws = policy.action_space.discrete  # between moves that are equally good: the most likely is always the same one
        demos = record_demos(policy, EPISODES, with_actions=draws, stochastic=draws)
        save_demos(demos, BUNDLED / f"{task}.npz")
        print(f"{task}: {evaluate(policy)}; recorded: {demos}, returns {demos.episode_returns}")


if __name__ == "__main__":
    main()
