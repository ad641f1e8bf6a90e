"""KL(ρ_π(a|s,s') ‖ ρ_E(a|s,s')) from rows of both sides: two inverse dynamics models, cross-fitted   (IDDM, Eq. 5).

Each side's model q(a|s,s') is a network of its own, or one for both sides plus a correction, whichever does better on
held-out rows: where a transition names its action one network says it all, the corrections stay near 0, and so does the
disagreement. Continuous actions are Gaussian given (s,s'), with a covariance per side; choices have a softmax. Rows are
judged by models that were fitted without their episode, so that fitting more does not look like disagreeing more.

A classifier on (s,a,s') against one on (s,s') estimates the same number, and measured worse on linear-Gaussian systems
(docs/claim.md has what was tried).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log, nan, pi, sqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy import special, stats

from iddm.disagreement.fit import STEPS, Loss, Rows, cross_entropy, fit, squared_error
from iddm.errors import UserError

FOLDS = 5
LEVEL = 0.95
SEPARATE = 0.9
"""Share of transitions told apart correctly from which on the expert's model is not trusted on all of the agent's."""

FEWEST = 500
"""Shared rows of either side, counted by their weight, below which nothing is said of them."""


class Episode(NamedTuple):
    """The steps of one episode, or any group of rows that may depend on each other."""

    s: np.ndarray
    a: np.ndarray
    """Components of a Box, or one-hot choices."""
    s_next: np.ndarray


class Estimate(NamedTuple):
    """A mean in nats, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Disagreement:
    """How differently agent and expert act on the same transitions, in nats."""

    everywhere: Estimate
    """Over the agent's transitions: KL(ρ_π(a|s,s') ‖ ρ_E(a|s,s')), IDDM's Eq. 5."""
    shared: Estimate
    """Over the transitions that both make, with weight ρ_π ρ_E / (ρ_π + ρ_E); the same where (s,s') is matched. NaN where
    there are too few."""
    told_apart: float
    """How often a held-out transition (s,s') is recognised as the agent's or the expert's: 0.5 where they are alike."""
    num_rows: int
    """Of the expert."""

    @property
    def caution(self) -> str:
        """What a reader must know before using the numbers; nothing where they are sound."""
        if self.told_apart > SEPARATE:
            left = (
                "so only the number for shared transitions means something"
                if isfinite(self.shared.value)
                else "and few are shared"
            )
            return (
                f"agent and expert make different transitions ({100 * self.told_apart:.0f} % are told apart): on most of the "
                f"agent's the expert's actions are a guess, {left}."
            )
        if self.everywhere.value > log(self.num_rows):
            return (
                f"the disagreement is at least {log(self.num_rows):.1f}, the most that {self.num_rows:,} rows of the expert can "
                "show; beyond that, it rests on actions being Gaussian given (s, s')."
            )
        return ""


class _Rows(NamedTuple):
    """All rows, the agent's first."""

    x: np.ndarray
    """(s, s' − s), each column with mean 0 and deviation 1: says what (s, s') says, and a small step is not lost."""
    a: np.ndarray
    side: np.ndarray
    """0 for the agent's, 1 for the expert's."""
    episode: np.ndarray
    """Counted within each side."""

    @property
    def fold(self) -> np.ndarray:
        return self.episode % FOLDS


def estimate_disagreement(
    agent: Sequence[Episode], expert: Sequence[Episode], discrete: bool, seed: int = 0, steps: int = STEPS
) -> Disagreement:
    """The disagreement of the agent with the expert, from episodes of both; `steps` is how long each network is fitted."""
    for who, episodes in (("agent", agent), ("expert", expert)):
        if len(episodes) < FOLDS:
            raise UserError(f"There are {len(episodes)} episodes of the {who}; cross-fitting needs at least {FOLDS}.")
    rows = _rows_of(agent, expert, discrete)
    keys = jax.random.split(jax.random.PRNGKey(seed), FOLDS)
    x, a, side, of_fold = (jnp.asarray(part) for part in (rows.x, rows.a, rows.side, rows.fold))
    by_fold = [_without_fold(key, fold, x, a, side, of_fold, discrete, steps) for fold, key in enumerate(keys)]
    everywhere, shared, odds = (
        np.stack([np.asarray(part, np.float64) for part in parts]) for parts in zip(*by_fold, strict=True)
    )
    ours = rows.side == 0
    odds = odds[rows.fold, np.arange(len(ours))]
    right = (odds < 0) == ours
    share = special.expit(np.where(ours, odds, -odds))
    enough = min(_effective(share[ours]), _effective(share[~ours])) >= FEWEST
    return Disagreement(
        everywhere=_mean_ratio(rows, everywhere, np.ones(ours.sum())),
        shared=_mean_ratio(rows, shared, share[ours]) if enough else Estimate(nan, nan, nan),
        told_apart=0.5 * float(right[ours].mean() + right[~ours].mean()),
        num_rows=int((~ours).sum()),
    )


def _effective(weight: np.ndarray) -> float:
    """(Σw)² / Σw²: how many rows of equal weight say as much."""
    return float(weight.sum() ** 2 / (weight**2).sum())


def _rows_of(agent: Sequence[Episode], expert: Sequence[Episode], discrete: bool) -> _Rows:
    both = [*agent, *expert]
    x = _standardised(np.concatenate([np.concatenate([e.s, e.s_next - e.s], axis=1) for e in both]))
    a = np.concatenate([e.a for e in both])
    episode = [np.full(len(e.s), number) for episodes in (agent, expert) for number, e in enumerate(episodes)]
    side = np.repeat([0, 1], [sum(len(e.s) for e in episodes) for episodes in (agent, expert)])
    a = a.astype(np.float32) if discrete else _standardised(a)  # a change of units leaves the disagreement as it is
    return _Rows(x, a, side, np.concatenate(episode))


def _standardised(columns: np.ndarray) -> np.ndarray:
    deviation = columns.std(axis=0)
    return ((columns - columns.mean(axis=0)) / np.where(deviation > 1e-8, deviation, 1.0)).astype(np.float32)


def _without_fold(
    key: PRNGKeyArray, left_out: int, x: Array, a: Array, side: Array, fold: Array, discrete: bool, steps: int
) -> tuple[Float[Array, "sides rows"], Float[Array, "sides rows"], Float[Array, " rows"]]:
    """By models fitted without a fold: log q(a|s,s') of each side, everywhere and on shared transitions, and log-odds.

    The log-odds of (s,s') are for the expert. A row's share in what both sides do is the other side's probability of it.
    """
    loss = cross_entropy if discrete else squared_error
    balance = jnp.where(side == 0, 1 / (side == 0).sum(), 1 / (side == 1).sum())
    k_sides, k_common, k_agent, k_expert = jax.random.split(key, 4)
    stopping = (left_out + 1) % FOLDS
    held_out = (fold == stopping).astype(float)
    known = ((fold != stopping) & (fold != left_out)).astype(float)

    def fitted(key: PRNGKeyArray, target: Array, base: Array, weight: Array, loss: Loss) -> tuple[Array, Array]:
        """Predictions, and the loss of the held-out ones."""
        net = fit(key, Rows(x, target, base, known * weight), Rows(x, target, base, held_out * weight), loss, steps)
        return base + net(x), (held_out * weight) @ loss(base + net(x), target)

    sides = jax.nn.one_hot(side, 2)
    logits, _ = fitted(k_sides, sides, jnp.zeros_like(sides), balance, cross_entropy)
    odds = logits[:, 1] - logits[:, 0]
    share = jax.nn.sigmoid(jnp.where(side == 0, odds, -odds))

    common, _ = fitted(k_common, a, jnp.zeros_like(a), balance, loss)
    everywhere, shared = [], []
    for i, k_side in enumerate((k_agent, k_expert)):
        own = (side == i).astype(float)
        corrected, error = fitted(k_side, a, common, own, loss)
        alone, error_alone = fitted(k_side, a, jnp.zeros_like(a), own, loss)
        predicted = jnp.where(error_alone < error, alone, corrected)
        for log_q, weight in ((everywhere, own), (shared, own * share)):
            log_q.append(-cross_entropy(predicted, a) if discrete else _gaussian(a - predicted, held_out * weight))
    return jnp.stack(everywhere), jnp.stack(shared), odds


@jax.jit
def _gaussian(error: Float[Array, "rows actions"], weight: Float[Array, " rows"]) -> Float[Array, " rows"]:
    """log N(error; 0, C) with the covariance C of the rows that have weight."""
    covariance = (error.T * weight) @ error / weight.sum() + 1e-6 * jnp.eye(error.shape[1])
    root = jnp.linalg.cholesky(covariance)
    z = jax.scipy.linalg.solve_triangular(root, error.T, lower=True)
    return -0.5 * jnp.sum(z**2, axis=0) - jnp.log(jnp.diag(root)).sum() - 0.5 * error.shape[1] * log(2 * pi)


def _mean_ratio(rows: _Rows, log_q: Float[np.ndarray, "folds sides rows"], weight: Float[np.ndarray, " agent"]) -> Estimate:
    """The weighted mean of log q_π − log q_E over the agent's rows, each by the models that did not see its fold.

    Its variance has two parts: from the agent's episodes, and from how the folds' models of the expert differ. These share
    some of their rows, so their mean is taken to vary half as much as one of them, not a fifth.
    """
    place, agent = np.arange(len(rows.side)), rows.side == 0
    ratio = (log_q[rows.fold, 0, place] - log_q[rows.fold, 1, place])[agent]
    weight = weight / weight.sum()
    value = float(weight @ ratio)
    by_episode = np.bincount(rows.episode[agent], weights=weight * (ratio - value))
    num_episodes = len(by_episode)
    of_agent = num_episodes / (num_episodes - 1) * float((by_episode**2).sum())
    of_expert = float((log_q[:, 1, agent] @ weight).var(ddof=1)) / 2
    variance = max(of_agent + of_expert, 1e-300)
    freedom = variance**2 / max(of_agent**2 / (num_episodes - 1) + of_expert**2 / (FOLDS - 1), 1e-300)
    half = float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * sqrt(variance)
    return Estimate(value, value - half, value + half)
