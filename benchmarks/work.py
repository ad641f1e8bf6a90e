"""What an iteration has to do, in floating-point operations: the work below which no implementation gets."""

import itertools

from iddm.config import Config
from iddm.learners import PPO
from iddm.rewards import Adversarial, MutualInformation


def iteration_gflop(config: Config, obs_size: int, action_size: int) -> dict[str, float]:
    """GFLOP of the matrix products by part: 2 a weight and row forward, 6 with the gradient, 12 with its penalty."""
    ppo, steps = config.learner, config.schedule.steps_per_iteration
    assert isinstance(ppo, PPO)
    policy = _weights(obs_size, ppo.hidden, action_size)
    value = _weights(obs_size, ppo.hidden, 1)
    flop = {
        "acting": steps * 2 * policy,
        "ppo": ppo.epochs * steps * 6 * (policy + value),
        "other": steps * 2 * (policy + 2 * value),  # old log-probabilities, values of both ends
    }
    for name, term in config.terms.items():
        if isinstance(term, Adversarial):
            sizes = {"s": obs_size, "s_next": obs_size, "a": action_size}
            net = _weights(sum(sizes[part] for part in term.sees), term.hidden, 1)
            passes = 2 * 6 + (12 if term.gradient_penalty else 0)
            flop[name] = term.updates * term.batch_size * passes * net + steps * 2 * net
        if isinstance(term, MutualInformation):
            critic = _weights(2 * obs_size + action_size, term.hidden, 1)
            flop[name] = term.updates * 2 * term.batch_size * 6 * critic + (2 * 4 * term.batch_size + steps) * 2 * critic
    return {name: x / 1e9 for name, x in flop.items()}


def _weights(inputs: int, hidden: tuple[int, ...], outputs: int) -> int:
    return sum(a * b for a, b in itertools.pairwise([inputs, *hidden, outputs]))
