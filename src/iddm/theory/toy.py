"""The paper's toy study without training (IDDM, Sec. 5.1, App. B.2): Fig. 1a, and exact measures of a policy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from iddm.errors import UserError
from iddm.theory.divergences import kl
from iddm.theory.maze import MAX_STEPS, NEXT_STATE, TARGET, distances, gridworld_mdp, gridworld_rewards
from iddm.theory.mdp import Array, FiniteMDP, check_policy, occupancy
from iddm.theory.theorems import disagreement_map


@dataclass(frozen=True)
class Estimate:
    """A Monte-Carlo mean with its standard error; mean ± 1.96 · standard_error is the 95 % interval."""

    mean: float
    standard_error: float


def approximate_disagreement(k: int, samples: int = 10_000, seed: int = 0) -> Estimate:
    """E_{θ~N(0,1)^k}[KL(uniform ‖ softmax θ)] = E[log (1/k) Σ_i e^θ_i − mean θ]: IDDM, App. B.2 and Fig. 1a.

    0 at k = 1 and growing with k, towards ½ and never beyond: by Jensen, E log (1/k) Σ e^θ ≤ log E e^θ = ½.
    """
    if k < 1 or samples < 2:
        raise UserError(f"k is {k} and samples is {samples}: expected at least 1 choice and 2 samples.")
    theta = np.random.default_rng(seed).standard_normal((samples, k))
    values = np.log(np.exp(theta).mean(axis=1)) - theta.mean(axis=1)
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(samples)))


@dataclass(frozen=True)
class ExactMeasures:
    """An agent's policy against an expert's in the Gridworld, without sampling. Divergences in nats."""

    disagreement: float
    """KL(ρ_π(a|s,s') ‖ ρ_E(a|s,s')): IDDM, Eq. 5"""
    disagreement_of_bumps: float
    """the part of it from s' = s, bumps into walls: all of it when n = 1, where other transitions name their action"""
    kl_ss: float
    """KL(ρ_π(s,s') ‖ ρ_E(s,s')): IDDM, Eq. 4"""
    kl_sa: float
    """KL(ρ_π(s,a) ‖ ρ_E(s,a)): IDDM, Eq. 3"""
    expected_return: float
    """the agent's return: undiscounted, with the time limit"""
    success: float
    """the probability that the agent reaches the target within the time limit"""


def exact_measures(
    num_choices: int,
    agent_policy: ArrayLike,
    expert_policy: ArrayLike,
    discount: float = 0.99,
    max_steps: int = MAX_STEPS,
) -> ExactMeasures:
    """Two policies [S, 4n] in the Gridworld with n choices, compared exactly.

    Divergences are between discounted occupancy measures, which know no time limit; the return is
    undiscounted and within `max_steps`, as the environment counts it. Softmax policies give finite numbers.
    Against a deterministic expert, an agent that ever leaves its path has infinite KL(s,s') and KL(s,a) and
    an undefined (NaN) disagreement. So does a probability that float32 rounded to 0: compute the softmax in
    float64.
    """
    mdp = gridworld_mdp(num_choices, discount)
    agent = check_policy(mdp, agent_policy, "agent_policy")
    expert = check_policy(mdp, expert_policy, "expert_policy")
    pi, ex = occupancy(mdp, agent), occupancy(mdp, expert)
    value, success = expected_return(mdp, gridworld_rewards(num_choices), agent, max_steps)
    by_transition = disagreement_map(mdp, agent, expert)
    return ExactMeasures(
        disagreement=float(by_transition.sum()),
        disagreement_of_bumps=float(np.trace(by_transition)),
        kl_ss=kl(pi.ss, ex.ss),
        kl_sa=kl(pi.sa, ex.sa),
        expected_return=value,
        success=success,
    )


def relabellings(num_choices: int, policy: ArrayLike) -> list[Array]:
    """The policy [S, 4n] under each rotation of its choices' names: to an observer of states alone, all are the same policy."""
    by_choice = np.asarray(policy, np.float64).reshape(-1, num_choices, 4)
    return [np.roll(by_choice, shift, axis=1).reshape(len(by_choice), -1) for shift in range(num_choices)]


def expected_return(mdp: FiniteMDP, rewards: Array, policy: ArrayLike, max_steps: int) -> tuple[float, float]:
    """E[Σ_{t < max_steps} r(s_t, a_t)], and the probability that the episode has ended by then; r is [S, A]."""
    policy = check_policy(mdp, policy)
    rewards = np.sum(policy * rewards, axis=1)
    step = np.einsum("sa,sat->st", policy, mdp.transitions)
    alive, ended, total = mdp.initial, 0.0, 0.0
    for _ in range(max_steps):
        total += float(alive @ rewards)
        alive = alive @ step
        ended += float(alive[mdp.terminal].sum())
        alive = np.where(mdp.terminal, 0.0, alive)
    return total, min(ended, 1.0)  # rounding may leave 1 + 1e-15


def spread(moves: ArrayLike, choices: ArrayLike) -> Array:
    """π(a|s) = π(move|s) π(choice): a policy over moves [S, 4] and one over choices [n], as one [S, 4n]."""
    moves, choices = np.asarray(moves, np.float64), np.asarray(choices, np.float64)
    return (choices[:, None] * moves[:, None, :]).reshape(len(moves), -1)


def shortest_path_moves(noise: float = 0.1) -> Array:
    """[S, 4]: uniform over the moves that come nearer to the target, with `noise` of uniform over all four."""
    distance = distances()
    nearer = (distance[NEXT_STATE] < distance[:, None]).astype(np.float64)
    nearer[TARGET] = 1.0
    return (1.0 - noise) * nearer / nearer.sum(axis=1, keepdims=True) + noise / 4.0
