"""The entropy of the agent's states as a reward, by nearest neighbours: an estimate of H(s) without a critic."""

from dataclasses import dataclass
from math import lgamma, log, pi
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from iddm.rewards.expert import ExpertSampler
from iddm.rewards.rows import AgentRows
from iddm.rewards.term import Metrics, Term
from iddm.utils.settings import WEIGHT, Range, check

NEAREST = 1e-6
"""Distances below this count as this: rows may repeat."""


def log_distance(x: Float[Array, "rows columns"], valid: Float[Array, " rows"], k: int) -> Float[Array, " rows"]:
    """log of the distance from each row to its k-th nearest among the other valid rows."""
    squares = jnp.sum(x**2, axis=-1)
    squared = jnp.maximum(squares[:, None] + squares[None] - 2 * x @ x.T, 0.0)
    squared = jnp.where((valid[None] > 0) & ~jnp.eye(len(x), dtype=bool), squared, jnp.inf)
    nearest, _ = jax.lax.top_k(-squared, k)
    return 0.5 * jnp.log(jnp.maximum(-nearest[:, -1], NEAREST**2))


def entropy_estimate(x: Float[Array, "rows columns"], valid: Float[Array, " rows"], k: int) -> Float[Array, ""]:
    """H ≈ ψ(n) − ψ(k) + log V_d + d E[log distance to the k-th nearest]   (Kozachenko and Leonenko 1987).

    V_d = π^(d/2) / Γ(d/2 + 1) is the volume of the unit ball.
    """
    d, n = x.shape[1], valid.sum()
    volume = 0.5 * d * log(pi) - lgamma(0.5 * d + 1)
    digamma = jax.scipy.special.digamma
    return digamma(n) - digamma(float(k)) + volume + d * (valid @ log_distance(x, valid, k)) / n


@dataclass(frozen=True)
class StateEntropy(Term):
    """λ_s H_π(s): the reward of a step is the logarithm of the distance from s to its k-th nearest among the agent's states.

    It stands in for the paper's I(s;(s',a)), which equals H(s) where (s',a) determines s (IDDM, Eq. 10). Its mean over the
    rows is taken off, so that being alive is not rewarded.
    """

    name: ClassVar[str] = "state_entropy"
    weight: float = 0.01
    """λ_s."""
    neighbour: int = 5
    """k: which neighbour counts."""

    def __post_init__(self) -> None:
        check(self, self.name, weight=WEIGHT, neighbour=Range(1, 100, whole=True))

    def update(
        self,
        state: PyTree,
        agent: AgentRows,
        expert: ExpertSampler | None,
        key: PRNGKeyArray,
    ) -> tuple[PyTree, Metrics]:
        return state, {"entropy": entropy_estimate(agent.transitions.s, agent.valid, self.neighbour)}

    def reward(self, state: PyTree, agent: AgentRows, key: PRNGKeyArray) -> Float[Array, " rows"]:
        distance = log_distance(agent.transitions.s, agent.valid, self.neighbour)
        return self.weight * (distance - (agent.valid @ distance) / agent.valid.sum())
